//! Which samples of a spool are looked at.
//!
//! What a sample itself tells (time, process, thread) is decided while it is loaded, by a [`SampleFilter`]; what only
//! names tell is decided when there are names, by a [`NameFilter`].

use crate::profile::{Call, Function, FunctionId, Profile};
use crate::stacks::{Node, StackKey};
use regex::Regex;
use rustc_hash::FxHashMap;

/// Which samples are counted, and how much of their stacks. The default counts all, whole.
#[derive(Clone, Debug, Default)]
pub struct SampleFilter {
    /// Only from this moment on: nanoseconds of `CLOCK_MONOTONIC`, as in the spool.
    pub from_ns: Option<u64>,
    /// Only before this moment.
    pub until_ns: Option<u64>,
    /// Only these processes; empty: all.
    pub pids: Vec<u32>,
    /// Only these threads; empty: all.
    pub tids: Vec<u32>,
    /// Only processes whose comm at that time matches.
    pub comm: Option<Regex>,
    /// Only threads whose name at that time matches; a thread without a name of its own has its process's comm.
    pub thread: Option<Regex>,
    /// Only this many innermost frames of each stack; what is cut off is marked.
    pub max_depth: Option<usize>,
}

impl SampleFilter {
    /// Whether a sample of this time, pid and tid is counted.
    pub(crate) fn admits(&self, time_ns: u64, (pid, tid): (u32, u32)) -> bool {
        self.from_ns.is_none_or(|from| time_ns >= from)
            && self.until_ns.is_none_or(|until| time_ns < until)
            && (self.pids.is_empty() || self.pids.contains(&pid))
            && (self.tids.is_empty() || self.tids.contains(&tid))
    }
}

/// Which of many names a pattern matches, asked once for each.
#[derive(Debug, Default)]
pub(crate) struct NameMatches(Vec<Option<bool>>);

impl NameMatches {
    /// Whether `names[at]` matches; without a pattern everything does.
    pub(crate) fn matches(&mut self, pattern: Option<&Regex>, names: &[Vec<u8>], at: u32) -> bool {
        let Some(pattern) = pattern else { return true };
        let at = at as usize;
        if self.0.len() <= at {
            self.0.resize(at + 1, None);
        }
        *self.0[at].get_or_insert_with(|| pattern.is_match(&String::from_utf8_lossy(&names[at])))
    }
}

/// Which stacks are kept, by the names in them. The default keeps all.
#[derive(Clone, Debug, Default)]
pub struct NameFilter {
    /// Only stacks whose innermost function is in a module that matches.
    pub module: Option<Regex>,
    /// Only stacks with a function that matches, for each of these.
    pub include: Vec<Regex>,
    /// No stacks with a function that matches one of these.
    pub exclude: Vec<Regex>,
}

impl Profile {
    /// Leaves out the stacks that the filter does not keep.
    pub fn keep(&mut self, filter: &NameFilter) {
        if let Some(module) = &filter.module {
            let is_in = |function: &Function| module.is_match(&function.module);
            let leaves = self.functions_that(is_in);
            let innermost = |profile: &Self, stack: StackKey| {
                profile.calls[stack.leaf as usize]
                    .first()
                    .is_some_and(|call| leaves[call.function.0 as usize])
            };
            self.retain(innermost);
        }
        for include in &filter.include {
            let having = self.stacks_with(include);
            self.retain(|_, stack| having.has(stack));
        }
        for exclude in &filter.exclude {
            let having = self.stacks_with(exclude);
            self.retain(|_, stack| !having.has(stack));
        }
    }

    /// Cuts off the innermost calls that fewer than `least` samples share; their samples stay, at the caller.
    ///
    /// A stack that is rare from its root on keeps its outermost place.
    pub fn cut_rare(&mut self, least: u64) {
        let mut paths = Paths { nodes: vec![(0, 0)], ..Paths::default() };
        paths.path(0, FunctionId(u32::MAX));
        // A parent's index is smaller than its children's.
        for node in &self.stacks.nodes[1..] {
            let (_, inside) = paths.nodes[node.parent as usize];
            let ends = paths.descend(inside, &self.calls[node.place as usize]);
            paths.nodes.push(ends);
        }
        let mut leaves = Vec::with_capacity(self.stacks.counts.len());
        for (&stack, &count) in &self.stacks.counts {
            let (_, inside) = paths.nodes[stack.callers as usize];
            let (outermost, innermost) = paths.descend(inside, &self.calls[stack.leaf as usize]);
            paths.samples[innermost as usize] += count;
            leaves.push((stack, count, outermost));
        }
        paths.sum_up();
        let mut counts: FxHashMap<StackKey, u64> = FxHashMap::default();
        let mut shortened: FxHashMap<StackKey, StackKey> = FxHashMap::default();
        for (stack, count, outermost) in leaves {
            let mut kept = stack;
            let mut samples = paths.samples[outermost as usize];
            while samples < least && kept.callers != 0 {
                let Node { parent, place } = self.stacks.nodes[kept.callers as usize];
                samples = paths.samples[paths.nodes[kept.callers as usize].0 as usize];
                kept = StackKey { callers: parent, leaf: place, ..stack };
            }
            *counts.entry(kept).or_default() += count;
            if kept != stack {
                shortened.insert(stack, kept);
            }
        }
        if let Some(timeline) = &mut self.stacks.timeline {
            for stack in &mut timeline.stacks {
                *stack = shortened.get(stack).copied().unwrap_or(*stack);
            }
        }
        self.stacks.counts = counts;
    }

    fn functions_that(&self, is_so: impl Fn(&Function) -> bool) -> Vec<bool> {
        self.functions.iter().map(is_so).collect()
    }

    /// Leaves out stacks for which `keeps` says no.
    fn retain(&mut self, keeps: impl Fn(&Self, StackKey) -> bool) {
        let mut counts = std::mem::take(&mut self.stacks.counts);
        counts.retain(|&stack, _| keeps(self, stack));
        let kept: u64 = counts.values().sum();
        self.stacks.left_out += self.stacks.total - kept;
        self.stacks.total = kept;
        if let Some(timeline) = &mut self.stacks.timeline {
            timeline.retain(|stack| counts.contains_key(&stack));
        }
        self.stacks.counts = counts;
    }

    /// Finds the stacks with a function that matches. Every function is asked once, and every node of the tree.
    fn stacks_with(&self, pattern: &Regex) -> Having {
        let functions = self.functions_that(|function| pattern.is_match(&function.label()));
        let has = |calls: &Vec<Call>| calls.iter().any(|call| functions[call.function.0 as usize]);
        let places: Vec<bool> = self.calls.iter().map(has).collect();
        let mut nodes = vec![false; self.stacks.nodes.len()];
        // A parent's index is smaller than its children's.
        for (at, node) in self.stacks.nodes.iter().enumerate().skip(1) {
            nodes[at] = nodes[node.parent as usize] || places[node.place as usize];
        }
        Having { places, nodes }
    }
}

/// Chains of functions from the outermost in, whatever the addresses in them.
#[derive(Default)]
struct Paths {
    index: FxHashMap<(u32, FunctionId), u32>,
    /// The chain one function shorter: a smaller index.
    parents: Vec<u32>,
    /// Samples of the chain, and of those that go on from it.
    samples: Vec<u64>,
    /// For each node the chains that end at its outermost and at its innermost call.
    nodes: Vec<(u32, u32)>,
}

impl Paths {
    fn path(&mut self, parent: u32, function: FunctionId) -> u32 {
        let next = u32::try_from(self.parents.len()).expect("fewer than 2^32 chains");
        let at = *self.index.entry((parent, function)).or_insert(next);
        if at == next {
            self.parents.push(parent);
            self.samples.push(0);
        }
        at
    }

    /// Goes on by a place's calls, which are innermost first: the chains at the outermost and the innermost.
    fn descend(&mut self, from: u32, calls: &[Call]) -> (u32, u32) {
        let mut ends = None;
        let mut at = from;
        for call in calls.iter().rev() {
            at = self.path(at, call.function);
            ends.get_or_insert(at);
        }
        (ends.unwrap_or(at), at)
    }

    fn sum_up(&mut self) {
        for at in (1..self.samples.len()).rev() {
            self.samples[self.parents[at] as usize] += self.samples[at];
        }
    }
}

/// Where a function that matches is met.
struct Having {
    /// At these places.
    places: Vec<bool>,
    /// At these nodes, or outside them.
    nodes: Vec<bool>,
}

impl Having {
    fn has(&self, stack: StackKey) -> bool {
        self.places[stack.leaf as usize] || self.nodes[stack.callers as usize]
    }
}
