//! What `top` shows, and what keys do to it.

use super::source::Facts;
use crate::analysis::{Count, totals};
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::widgets::TableState;
use rustc_hash::FxHashMap;
use stackpulse_export::{Function, Mode, Profile};
use std::time::Instant;

/// What comes after a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Stay,
    Leave,
}

/// By what the rows are sorted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    Own,
    Total,
    Name,
}

/// One function.
#[derive(Clone, Debug)]
pub(super) struct Line {
    pub(super) function: Function,
    pub(super) count: Count,
}

/// The state of the screen.
pub(super) struct View {
    pub(super) name: String,
    pub(super) facts: Facts,
    /// Samples a second, between the last two looks.
    pub(super) rate: u64,
    pub(super) order: Order,
    /// What names must contain.
    pub(super) search: String,
    /// Whether keys go into the search.
    pub(super) is_searching: bool,
    /// Whether shares are coloured.
    pub(super) is_coloured: bool,
    frozen: bool,
    /// The function whose callers are shown, and the callers gone through.
    pub(super) chain: Vec<Function>,
    pub(super) lines: Vec<Line>,
    pub(super) table: TableState,
    profile: Option<Profile>,
    looked: Option<(Instant, u64)>,
    percent_limit: f64,
}

impl View {
    pub(super) fn new(name: String, percent_limit: f64) -> Self {
        Self {
            name,
            facts: Facts::default(),
            rate: 0,
            order: Order::Own,
            search: String::new(),
            is_searching: false,
            is_coloured: false,
            frozen: false,
            chain: Vec::new(),
            lines: Vec::new(),
            table: TableState::default().with_selected(0),
            profile: None,
            looked: None,
            percent_limit,
        }
    }

    pub(super) fn is_frozen(&self) -> bool {
        self.frozen
    }

    /// All samples that are shown.
    pub(super) fn samples(&self) -> u64 {
        self.profile.as_ref().map_or(0, |profile| profile.stacks.total)
    }

    /// Takes newer samples.
    pub(super) fn refresh(&mut self, profile: Profile, facts: Facts) {
        let now = Instant::now();
        if let Some((then, samples)) = self.looked {
            let milliseconds = now.duration_since(then).as_millis().max(1);
            let rate = u128::from(facts.samples.saturating_sub(samples)) * 1000 / milliseconds;
            self.rate = u64::try_from(rate).unwrap_or(u64::MAX);
        }
        self.looked = Some((now, facts.samples));
        self.facts = facts;
        self.profile = Some(profile);
        self.count();
    }

    /// Does what a key asks for.
    pub(super) fn key(&mut self, key: KeyEvent) -> Step {
        if key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c') {
            return Step::Leave;
        }
        if self.is_searching {
            self.search_key(key.code);
            return Step::Stay;
        }
        match key.code {
            KeyCode::Char('q') => return Step::Leave,
            KeyCode::Char('s') => self.sort(Order::Own),
            KeyCode::Char('t') => self.sort(Order::Total),
            KeyCode::Char('n') => self.sort(Order::Name),
            KeyCode::Char(' ') => self.frozen = !self.frozen,
            KeyCode::Char('/') => self.is_searching = true,
            KeyCode::Char('j') | KeyCode::Down => self.table.select_next(),
            KeyCode::Char('k') | KeyCode::Up => self.table.select_previous(),
            KeyCode::PageDown => self.table.scroll_down_by(10),
            KeyCode::PageUp => self.table.scroll_up_by(10),
            KeyCode::Home => self.table.select_first(),
            KeyCode::End => self.table.select_last(),
            KeyCode::Enter | KeyCode::Right => self.drill(),
            KeyCode::Esc | KeyCode::Backspace | KeyCode::Left => self.back(),
            _ => {}
        }
        Step::Stay
    }

    fn search_key(&mut self, code: KeyCode) {
        match code {
            KeyCode::Enter => self.is_searching = false,
            KeyCode::Esc => {
                self.is_searching = false;
                self.search.clear();
            }
            KeyCode::Backspace => {
                self.search.pop();
            }
            KeyCode::Char(c) => self.search.push(c),
            _ => {}
        }
        self.table.select_first();
        self.count();
    }

    fn sort(&mut self, order: Order) {
        self.order = order;
        self.count();
    }

    /// Goes to the callers of the chosen function.
    fn drill(&mut self) {
        let chosen = self.table.selected().and_then(|at| self.lines.get(at));
        if let Some(line) = chosen {
            self.chain.push(line.function.clone());
            self.search.clear();
            self.table.select_first();
            self.count();
        }
    }

    /// Goes back by one step: out of a search, or towards where it was come from.
    fn back(&mut self) {
        if self.search.is_empty() {
            self.chain.pop();
        }
        self.search.clear();
        self.table.select_first();
        self.count();
    }

    fn count(&mut self) {
        let Some(profile) = &self.profile else { return };
        // Rows move; what was chosen stays chosen. The first row is where one starts, whatever is in it.
        let chosen = self.table.selected().filter(|&at| at > 0).and_then(|at| self.lines.get(at));
        let chosen = chosen.map(|line| line.function.clone());
        let counts = if self.chain.is_empty() {
            totals(profile, profile.functions.len(), |call| call.function.0 as usize)
        } else {
            callers(profile, &self.chain)
        };
        let wanted = self.search.to_lowercase();
        let least = crate::select::least_samples(self.percent_limit, profile.stacks.total).max(1);
        self.lines = profile
            .functions
            .iter()
            .zip(counts)
            .filter(|(function, count)| {
                function.mode != Mode::Marker
                    && count.total >= least
                    && (wanted.is_empty() || function.label().to_lowercase().contains(&wanted))
            })
            .map(|(function, count)| Line { function: function.clone(), count })
            .collect();
        let order = self.order;
        self.lines.sort_by(|a, b| {
            let by_name = || a.function.label().cmp(&b.function.label());
            match order {
                Order::Own => (b.count.own, b.count.total)
                    .cmp(&(a.count.own, a.count.total))
                    .then_with(by_name),
                Order::Total => (b.count.total, b.count.own)
                    .cmp(&(a.count.total, a.count.own))
                    .then_with(by_name),
                Order::Name => by_name(),
            }
        });
        if let Some(chosen) = chosen {
            let at = self.lines.iter().position(|line| line.function == chosen);
            self.table.select(Some(at.unwrap_or(0)));
        }
    }
}

/// For each function the samples in which it called the first of the chain, through the others; `own` is where it did so directly
/// from the innermost.
fn callers(profile: &Profile, chain: &[Function]) -> Vec<Count> {
    let ids: FxHashMap<&Function, u32> =
        (0u32..).zip(&profile.functions).map(|(id, function)| (function, id)).collect();
    let mut counts = vec![Count::default(); profile.functions.len()];
    let Some(chain) =
        chain.iter().map(|function| ids.get(function).copied()).collect::<Option<Vec<u32>>>()
    else {
        return counts;
    };
    for (&stack, &samples) in &profile.stacks.counts {
        let functions: Vec<u32> = profile.calls_of(stack).map(|call| call.function.0).collect();
        let found = functions
            .windows(chain.len() + 1)
            .position(|window| window[..chain.len()] == chain[..]);
        if let Some(at) = found {
            let count = &mut counts[functions[at + chain.len()] as usize];
            count.total += samples;
            if at == 0 {
                count.own += samples;
            }
        }
    }
    counts
}
