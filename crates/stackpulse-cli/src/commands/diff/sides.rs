//! The two sides of a comparison: samples by function, in units that can be drawn anew.

use crate::analysis::compare::Unit;
use crate::analysis::{folded_module, totals};
use crate::args::SelectArgs;
use crate::failure::Failure;
use crate::open;
use rustc_hash::FxHashMap;
use stackpulse_export::{Mode, Profile, StackKey};
use stackpulse_symbolize::without_suffixes;
use std::path::{Path, PathBuf};

/// Into how many windows of time a run is cut.
const WINDOWS: usize = 50;
/// From this many runs on, a side is drawn by runs: they differ in more than time.
const RUNS: usize = 3;

/// A function as both sides know it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Function {
    /// Without hash and clone suffixes; `None`: code without a name.
    pub(super) name: Option<String>,
    /// Without hash and version.
    pub(super) module: String,
}

impl Function {
    /// What to call it.
    pub(super) fn label(&self) -> String {
        self.name.clone().unwrap_or_else(|| format!("[unknown] {}", self.module))
    }
}

/// One side.
pub(super) struct Side {
    pub(super) files: Vec<PathBuf>,
    pub(super) samples: u64,
    /// What is drawn: `run` or `window`.
    pub(super) unit: &'static str,
    pub(super) own: Vec<Unit>,
    pub(super) total: Vec<Unit>,
    pub(super) notes: Vec<String>,
    pub(super) profiles: Vec<Profile>,
}

/// Both sides, which count their functions alike.
pub(super) struct Sides {
    pub(super) before: Side,
    pub(super) after: Side,
    index: FxHashMap<Function, usize>,
}

impl Sides {
    /// Reads all runs of both sides.
    pub(super) fn load(files: [&[PathBuf]; 2], args: &SelectArgs) -> Result<Self, Failure> {
        let mut index = FxHashMap::default();
        let [before, after] = files;
        let before_profiles = read(before, args)?;
        let after_profiles = read(after, args)?;
        let names = Moved::between(&before_profiles, &after_profiles);
        let before = side(before, before_profiles, &names, &mut index);
        let after = side(after, after_profiles, &names, &mut index);
        let mut sides = Self { before, after, index };
        let functions = sides.index.len();
        for side in [&mut sides.before, &mut sides.after] {
            for unit in side.own.iter_mut().chain(&mut side.total) {
                unit.counts.resize(functions, 0);
            }
        }
        Ok(sides)
    }

    /// The functions, in the order they are counted.
    pub(super) fn functions(&mut self) -> Vec<Function> {
        let mut functions: Vec<(Function, usize)> = self.index.drain().collect();
        functions.sort_by_key(|&(_, at)| at);
        functions.into_iter().map(|(function, _)| function).collect()
    }
}

/// A profile with its notes.
type Read = (Profile, Vec<String>);

fn read(files: &[PathBuf], args: &SelectArgs) -> Result<Vec<Read>, Failure> {
    files.iter().map(|file| read_one(file, args)).collect()
}

fn read_one(file: &Path, args: &SelectArgs) -> Result<Read, Failure> {
    let opened = open::profile_over_time(file, args)?;
    if opened.profile.stacks.total == 0 {
        return Err(Failure::new(format!(
            "{}: 0 samples because {}; there is nothing to compare",
            file.display(),
            opened.why_none()
        )));
    }
    let notes = opened.notes.iter().map(|note| format!("{}: {note}", file.display())).collect();
    Ok((opened.profile, notes))
}

fn side(
    files: &[PathBuf],
    profiles: Vec<Read>,
    names: &Moved,
    index: &mut FxHashMap<Function, usize>,
) -> Side {
    let by_run = files.len() >= RUNS;
    let mut side = Side {
        files: files.to_vec(),
        samples: profiles.iter().map(|(profile, _)| profile.stacks.total).sum(),
        unit: if by_run { "run" } else { "window" },
        own: Vec::new(),
        total: Vec::new(),
        notes: Vec::new(),
        profiles: Vec::new(),
    };
    for (mut profile, notes) in profiles {
        let key_of: Vec<usize> = profile
            .functions
            .iter()
            .map(|function| {
                let next = index.len();
                *index.entry(names.function(function)).or_insert(next)
            })
            .collect();
        let markers: Vec<bool> =
            profile.functions.iter().map(|function| function.mode == Mode::Marker).collect();
        let windows = if by_run { 1 } else { WINDOWS };
        let whole = std::mem::take(&mut profile.stacks.counts);
        for counts in by_window(&profile, &whole, windows) {
            let samples = counts.values().sum();
            profile.stacks.counts = counts;
            // One more key takes what stands for no function.
            let sums = totals(&profile, index.len() + 1, |call| {
                let function = call.function.0 as usize;
                if markers[function] { index.len() } else { key_of[function] }
            });
            let unit = |of: fn(&crate::analysis::Count) -> u64| Unit {
                samples,
                counts: sums[..index.len()].iter().map(of).collect(),
            };
            side.own.push(unit(|count| count.own));
            side.total.push(unit(|count| count.total));
        }
        profile.stacks.counts = whole;
        profile.stacks.timeline = None;
        side.notes.extend(notes);
        side.profiles.push(profile);
    }
    side
}

/// The samples of each of so many windows of equal length.
fn by_window(
    profile: &Profile,
    kept: &FxHashMap<StackKey, u64>,
    windows: usize,
) -> Vec<FxHashMap<StackKey, u64>> {
    let Some(timeline) = &profile.stacks.timeline else { return Vec::new() };
    let times = || timeline.samples.iter().map(|sample| sample.time_ns);
    let (first, last) = (times().min().unwrap_or(0), times().max().unwrap_or(0));
    let width_ns = (last - first) / windows as u64 + 1;
    let mut counts = vec![FxHashMap::default(); windows];
    for sample in &timeline.samples {
        let stack = timeline.stacks[sample.stack as usize];
        if kept.contains_key(&stack) {
            let window = usize::try_from((sample.time_ns - first) / width_ns).unwrap_or_default();
            *counts[window].entry(stack).or_default() += 1;
        }
    }
    counts
}

/// Names that are in one module before and in another after, and nowhere else: they are one function.
struct Moved(FxHashMap<String, String>);

impl Moved {
    fn between(before: &[Read], after: &[Read]) -> Self {
        let modules = |side: &[Read]| {
            let mut modules: FxHashMap<String, Vec<String>> = FxHashMap::default();
            for function in side.iter().flat_map(|(profile, _)| &profile.functions) {
                let Some(name) = &function.name else { continue };
                let module = folded_module(&function.module).into_owned();
                let of_name = modules.entry(without_suffixes(name).to_owned()).or_default();
                if !of_name.contains(&module) {
                    of_name.push(module);
                }
            }
            modules
        };
        let (before, after) = (modules(before), modules(after));
        let moved = before.into_iter().filter_map(|(name, from)| {
            match (&from[..], after.get(&name).map(|to| &to[..])) {
                ([from], Some([to])) if from != to => Some((name, to.clone())),
                _ => None,
            }
        });
        Self(moved.collect())
    }

    fn function(&self, function: &stackpulse_export::Function) -> Function {
        let name = function.name.as_deref().map(|name| without_suffixes(name).to_owned());
        let moved = name.as_ref().and_then(|name| self.0.get(name)).cloned();
        let module = moved.unwrap_or_else(|| folded_module(&function.module).into_owned());
        Function { name, module }
    }
}
