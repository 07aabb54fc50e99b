//! Names for a profile: those stored in the spool, else looked up on this machine.

use crate::args::SymbolArgs;
use rustc_hash::FxHashMap;
use stackpulse_export::{NamedCall, Naming, Place, Profile, Stacks, module_name};
use stackpulse_spool::{
    Answer, ImageKey, NamedCall as StoredCall, SymbolTable, SymbolTableBuilder,
};
use stackpulse_symbolize::{
    Call, ImageQuery, Lookup, Origin, Reason, Symbolizer, SymbolizerOptions, demangle,
};
use std::cmp::Reverse;
use std::path::PathBuf;
use std::sync::Arc;

/// Names every place of the stacks.
pub(crate) fn resolve(
    stacks: Stacks,
    stored: Option<&SymbolTable>,
    boot_id: Vec<u8>,
    args: &SymbolArgs,
) -> Profile {
    Namer::new(boot_id, args).name(stacks, stored)
}

/// Names stacks that may grow meanwhile: what was looked up on this machine once is not looked up again.
pub(crate) struct Namer {
    symbolizer: Symbolizer,
    readable: Readable,
    known: FxHashMap<(u32, u64), Lookup>,
    hides_inlined: bool,
}

impl Namer {
    pub(crate) fn new(boot_id: Vec<u8>, args: &SymbolArgs) -> Self {
        let symbolizer = Symbolizer::new(SymbolizerOptions {
            debug_dirs: args.debug_dir.clone(),
            symfs: args.symfs.clone(),
            boot_id,
            debuginfod_cache: debuginfod_cache(),
            ..SymbolizerOptions::default()
        });
        Self {
            symbolizer,
            readable: Readable::default(),
            known: FxHashMap::default(),
            hides_inlined: args.no_inline,
        }
    }

    /// Names every place of the stacks, whose images are those of the calls before, or follow them.
    pub(crate) fn name(&mut self, stacks: Stacks, stored: Option<&SymbolTable>) -> Profile {
        let Self { symbolizer, readable, known, hides_inlined } = self;
        let recorded = RecordedNames::of(&stacks);
        let mut profile = Profile::new(stacks, |stacks, image, addresses| {
            let found = lookups(stacks, image, addresses, stored, &recorded, |missing| {
                let is_new = |address: &&u64| !known.contains_key(&(image, **address));
                let new: Vec<u64> = missing.iter().filter(is_new).copied().collect();
                if !new.is_empty() {
                    let fresh = symbolizer.symbolize(&query(stacks, image), &new);
                    known.extend(new.iter().map(|&address| (image, address)).zip(fresh));
                }
                missing
                    .iter()
                    .filter_map(|&address| known.get(&(image, address)))
                    .cloned()
                    .collect()
            });
            found.into_iter().map(|lookup| readable.naming(lookup)).collect()
        });
        if *hides_inlined {
            profile.hide_inlined();
        }
        profile
    }
}

fn query(stacks: &Stacks, image: u32) -> ImageQuery {
    ImageQuery::from(&stacks.images[image as usize].as_image())
}

/// Looks up every place of the stacks, for storing.
pub(crate) fn table(stacks: &Stacks, boot_id: Vec<u8>, symfs: Option<PathBuf>) -> SymbolTable {
    let options = SymbolizerOptions {
        boot_id,
        symfs,
        debuginfod_cache: debuginfod_cache(),
        ..SymbolizerOptions::default()
    };
    let mut symbolizer = Symbolizer::new(options);
    let recorded = RecordedNames::of(stacks);
    let mut builder = SymbolTableBuilder::new();
    for (image, places) in (0u32..).zip(stacks.places_by_image()) {
        let addresses: Vec<u64> = places.into_iter().map(|(address, _)| address).collect();
        if addresses.is_empty() {
            continue;
        }
        let found = lookups(stacks, image, &addresses, None, &recorded, |missing| {
            symbolizer.symbolize(&query(stacks, image), missing)
        });
        for (&address, lookup) in addresses.iter().zip(&found) {
            for &(epoch, id) in &stacks.image_ids[image as usize] {
                store(&mut builder, ImageKey { epoch, image: id }, address, lookup);
            }
        }
    }
    builder.build()
}

/// Where debuginfod clients keep what they fetched (debuginfod-client-config(7)).
fn debuginfod_cache() -> Option<PathBuf> {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    let below = |name, path| variable(name).map(|home| PathBuf::from(home).join(path));
    variable("DEBUGINFOD_CACHE_PATH")
        .map(PathBuf::from)
        .or_else(|| below("XDG_CACHE_HOME", "debuginfod_client"))
        .or_else(|| below("HOME", ".cache/debuginfod_client"))
}

fn store(builder: &mut SymbolTableBuilder, key: ImageKey, address: u64, lookup: &Lookup) {
    match lookup {
        Lookup::Resolved { calls, origin } => {
            let bytes = |text: &Option<Arc<str>>| text.clone().unwrap_or_default();
            let owned: Vec<_> =
                calls.iter().map(|call| (bytes(&call.function), bytes(&call.file), call)).collect();
            let stored: Vec<_> = owned
                .iter()
                .map(|(function, file, call)| StoredCall {
                    function: function.as_bytes(),
                    file: file.as_bytes(),
                    line: call.line.unwrap_or_default(),
                    column: call.column.unwrap_or_default(),
                })
                .collect();
            builder.insert(key, address, address, origin.number(), &stored);
        }
        Lookup::Unresolved { reason, start } => {
            builder.insert(key, address, start.unwrap_or(address), reason.number(), &[]);
        }
    }
}

/// Answers for an image's addresses: what the spool has stored, else what this machine tells.
fn lookups(
    stacks: &Stacks,
    image: u32,
    addresses: &[u64],
    stored: Option<&SymbolTable>,
    recorded: &RecordedNames,
    look_up: impl FnOnce(&[u64]) -> Vec<Lookup>,
) -> Vec<Lookup> {
    let mut answers: Vec<Option<Lookup>> = addresses
        .iter()
        .map(|&address| {
            stored_answer(stacks, image, address, stored)
                .or_else(|| recorded.lookup(image, address))
        })
        .collect();
    let missing: Vec<u64> = addresses
        .iter()
        .zip(&answers)
        .filter(|(_, answer)| answer.is_none())
        .map(|(&address, _)| address)
        .collect();
    if !missing.is_empty() {
        let mut found = look_up(&missing).into_iter();
        for answer in answers.iter_mut().filter(|answer| answer.is_none()) {
            *answer = found.next();
        }
    }
    let none = Lookup::unresolved(Reason::UnknownCode);
    answers.into_iter().map(|answer| answer.unwrap_or_else(|| none.clone())).collect()
}

fn stored_answer(
    stacks: &Stacks,
    image: u32,
    address: u64,
    stored: Option<&SymbolTable>,
) -> Option<Lookup> {
    let ids = &stacks.image_ids[image as usize];
    let answer =
        ids.iter().find_map(|&(epoch, image)| stored?.get(ImageKey { epoch, image }, address))?;
    Some(lookup_of(address, answer))
}

fn lookup_of(address: u64, answer: Answer<'_>) -> Lookup {
    let text = |bytes: &[u8]| -> Option<Arc<str>> {
        (!bytes.is_empty()).then(|| String::from_utf8_lossy(bytes).into())
    };
    let calls: Vec<Call> = answer
        .calls()
        .map(|call| Call {
            function: text(call.function),
            file: text(call.file),
            line: (call.line > 0).then_some(call.line),
            column: (call.column > 0).then_some(call.column),
        })
        .collect();
    if calls.is_empty() {
        let reason = Reason::from_number(answer.origin()).unwrap_or(Reason::UnknownCode);
        let start = (answer.start() != address).then(|| answer.start());
        return Lookup::Unresolved { reason, start };
    }
    let origin = Origin::from_number(answer.origin()).unwrap_or(Origin::Recording);
    Lookup::Resolved { calls, origin }
}

/// Names that were recorded with the samples: generated code, and the vDSO.
struct RecordedNames {
    /// For each image: start, length, name; sorted by start, later ones of the same start after earlier ones.
    by_image: FxHashMap<u32, Vec<(u64, u64, Arc<str>)>>,
}

impl RecordedNames {
    fn of(stacks: &Stacks) -> Self {
        let mut by_image: FxHashMap<u32, Vec<(u64, u64, Arc<str>)>> = FxHashMap::default();
        for name in &stacks.names {
            let text = String::from_utf8_lossy(&name.name).into();
            by_image.entry(name.image).or_default().push((name.address, name.size, text));
        }
        for names in by_image.values_mut() {
            names.sort_by_key(|&(start, ..)| start);
        }
        Self { by_image }
    }

    fn lookup(&self, image: u32, address: u64) -> Option<Lookup> {
        let names = self.by_image.get(&image)?;
        let after = names.partition_point(|&(start, ..)| start <= address);
        let (start, size, name) = names.get(after.checked_sub(1)?)?;
        if *size != 0 && address - start >= *size {
            return None;
        }
        let call = Call { function: Some(Arc::clone(name)), ..Call::default() };
        Some(Lookup::Resolved { calls: vec![call], origin: Origin::Recording })
    }
}

/// Readable names, each made once.
#[derive(Default)]
struct Readable {
    names: FxHashMap<Arc<str>, Arc<str>>,
}

impl Readable {
    fn naming(&mut self, lookup: Lookup) -> Naming {
        match lookup {
            Lookup::Unresolved { start, .. } => Naming::Unnamed { start },
            Lookup::Resolved { calls, .. } => Naming::Named(
                calls
                    .into_iter()
                    .map(|call| NamedCall {
                        name: call.function.map(|raw| self.name(&raw)),
                        file: call.file,
                        line: call.line,
                    })
                    .collect(),
            ),
        }
    }

    fn name(&mut self, raw: &Arc<str>) -> Arc<str> {
        if let Some(known) = self.names.get(raw) {
            return Arc::clone(known);
        }
        let readable: Arc<str> = demangle(raw).into();
        self.names.insert(Arc::clone(raw), Arc::clone(&readable));
        readable
    }
}

/// Samples whose innermost frame has no name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unnamed {
    pub(crate) samples: u64,
    /// The modules that most of them are in, at most three, the one with most first.
    pub(crate) modules: Vec<UnnamedModule>,
}

/// A module with samples whose innermost frame has no name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UnnamedModule {
    pub(crate) module: String,
    /// Its build id; empty if it has none.
    pub(crate) build_id: Box<[u8]>,
    pub(crate) samples: u64,
    /// Why, for most of them.
    pub(crate) reason: Reason,
}

/// So many modules without names are told.
const MOST_UNNAMED: usize = 3;

/// Counts the samples that the table has no name for.
pub(crate) fn unnamed(stacks: &Stacks, table: &SymbolTable) -> Option<Unnamed> {
    let mut by_image: FxHashMap<u32, FxHashMap<Reason, u64>> = FxHashMap::default();
    for (stack, &count) in &stacks.counts {
        let Place::Code { image, address } = stacks.places[stack.leaf as usize] else { continue };
        let Some(&(epoch, id)) = stacks.image_ids.get(image as usize).and_then(|ids| ids.first())
        else {
            continue;
        };
        let answer = table.get(ImageKey { epoch, image: id }, address);
        if answer.is_none_or(|answer| answer.calls().len() == 0) {
            let reason = answer.and_then(|answer| Reason::from_number(answer.origin()));
            let reasons = by_image.entry(image).or_default();
            *reasons.entry(reason.unwrap_or(Reason::UnknownCode)).or_default() += count;
        }
    }
    let mut images: Vec<_> = by_image
        .into_iter()
        .filter_map(|(image, reasons)| {
            let samples: u64 = reasons.values().sum();
            let (reason, _) =
                reasons.into_iter().max_by_key(|&(reason, count)| (count, Reverse(reason)))?;
            Some((samples, image, reason))
        })
        .collect();
    images.sort_by_key(|&(samples, image, _)| (Reverse(samples), image));
    let samples = images.iter().map(|&(samples, ..)| samples).sum();
    let modules = images.into_iter().take(MOST_UNNAMED).map(|(samples, image, reason)| {
        let image = &stacks.images[image as usize];
        UnnamedModule {
            module: module_name(image),
            build_id: image.build_id.clone(),
            samples,
            reason,
        }
    });
    let modules: Vec<_> = modules.collect();
    (!modules.is_empty()).then_some(Unnamed { samples, modules })
}

/// Names looked up again, beside those that were stored.
pub(crate) struct Refreshed {
    /// The better of both.
    pub(crate) table: SymbolTable,
    pub(crate) addresses: u64,
    pub(crate) named: u64,
    /// Addresses with a better answer than the stored one.
    pub(crate) better: u64,
    /// Files that gave better names, and what they are.
    pub(crate) files: Vec<(PathBuf, Origin)>,
}

/// Looks up every place of the stacks again, and keeps what was stored where that is as good.
pub(crate) fn refresh(
    stacks: &Stacks,
    stored: Option<&SymbolTable>,
    options: SymbolizerOptions,
) -> Refreshed {
    let options = SymbolizerOptions { debuginfod_cache: debuginfod_cache(), ..options };
    let mut symbolizer = Symbolizer::new(options);
    let recorded = RecordedNames::of(stacks);
    let mut builder = SymbolTableBuilder::new();
    let (mut addresses, mut named, mut better) = (0, 0, 0);
    let mut files: Vec<(PathBuf, Origin)> = Vec::new();
    for (image, places) in (0u32..).zip(stacks.places_by_image()) {
        let asked: Vec<u64> = places.into_iter().map(|(address, _)| address).collect();
        if asked.is_empty() {
            continue;
        }
        let answer = symbolizer.answer(&query(stacks, image), &asked);
        let mut gained = Vec::new();
        for (&address, fresh) in asked.iter().zip(answer.lookups) {
            let old = stored_answer(stacks, image, address, stored);
            let fresh = recorded.lookup(image, address).unwrap_or(fresh);
            let is_better = is_better(&fresh, old.as_ref());
            if is_better {
                better += 1;
                gained.extend(fresh.origin());
            }
            let chosen = if is_better { fresh } else { old.unwrap_or(fresh) };
            addresses += 1;
            named += u64::from(chosen.origin().is_some());
            for &(epoch, id) in &stacks.image_ids[image as usize] {
                store(&mut builder, ImageKey { epoch, image: id }, address, &chosen);
            }
        }
        let useful = answer.files.into_iter().filter(|(_, origin)| gained.contains(origin));
        files.extend(useful);
    }
    files.sort();
    files.dedup();
    Refreshed { table: builder.build(), addresses, named, better, files }
}

/// Whether a fresh answer says more than the stored one.
fn is_better(fresh: &Lookup, stored: Option<&Lookup>) -> bool {
    let lines = |lookup: &Lookup| match lookup {
        Lookup::Resolved { calls, .. } => calls.iter().filter(|call| call.line.is_some()).count(),
        Lookup::Unresolved { .. } => 0,
    };
    match (fresh.origin(), stored) {
        (None, _) => false,
        (Some(_), None) => true,
        (Some(fresh_origin), Some(stored)) => stored.origin().is_none_or(|origin| {
            fresh_origin < origin || (fresh_origin == origin && lines(fresh) > lines(stored))
        }),
    }
}
