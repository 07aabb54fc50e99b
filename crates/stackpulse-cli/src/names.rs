//! Names for a profile: those stored in the spool, else looked up on this machine.

mod debt;
mod refresh;

pub(crate) use debt::{Unnamed, UnnamedModule, unnamed};
pub(crate) use refresh::{Refreshed, refresh};

use crate::args::SymbolArgs;
use crate::render::progress::{Audience, shown};
use rustc_hash::FxHashMap;
use stackpulse_export::{NamedCall, Naming, Profile, Stacks};
use stackpulse_spool::{
    Answer, ImageKey, NamedCall as StoredCall, SymbolTable, SymbolTableBuilder,
};
use stackpulse_symbolize::{
    Call, ImageAnswer, ImageQuery, Lookup, Origin, Question, Reason, Symbolizer, SymbolizerOptions,
    demangle,
};
use std::path::PathBuf;
use std::sync::Arc;

/// Names every place of the stacks.
pub(crate) fn resolve(
    stacks: Stacks,
    stored: Option<&SymbolTable>,
    boot_id: Vec<u8>,
    args: &SymbolArgs,
) -> Profile {
    let mut symbolizer = symbolizer(boot_id, args);
    let recorded = RecordedNames::of(&stacks);
    let known = |image, address| {
        stored_answer(&stacks, image, address, stored).or_else(|| recorded.lookup(image, address))
    };
    let found = lookups(&stacks, known, &mut symbolizer, Audience::Terminal);
    profile(stacks, found, &mut Readable::default(), args)
}

fn symbolizer(boot_id: Vec<u8>, args: &SymbolArgs) -> Symbolizer {
    Symbolizer::new(SymbolizerOptions {
        debug_dirs: args.debug_dir.clone(),
        symfs: args.symfs.clone(),
        boot_id,
        debuginfod_cache: debuginfod_cache(),
        ..SymbolizerOptions::default()
    })
}

fn profile(
    stacks: Stacks,
    mut found: Vec<Vec<(u64, Lookup)>>,
    readable: &mut Readable,
    args: &SymbolArgs,
) -> Profile {
    let mut profile = Profile::new(stacks, |_, image, _| {
        let found = std::mem::take(&mut found[image as usize]);
        found.into_iter().map(|(_, lookup)| readable.naming(lookup)).collect()
    });
    if args.no_inline {
        profile.hide_inlined();
    }
    profile
}

/// Names stacks that grow meanwhile: what was looked up on this machine once is not looked up again.
pub(crate) struct Namer {
    symbolizer: Symbolizer,
    readable: Readable,
    found: FxHashMap<(u32, u64), Lookup>,
}

impl Namer {
    pub(crate) fn new(boot_id: Vec<u8>, args: &SymbolArgs) -> Self {
        Self {
            symbolizer: symbolizer(boot_id, args),
            readable: Readable::default(),
            found: FxHashMap::default(),
        }
    }

    /// Names every place of the stacks, whose images are those of the calls before, or follow them.
    pub(crate) fn name(
        &mut self,
        stacks: Stacks,
        stored: Option<&SymbolTable>,
        args: &SymbolArgs,
    ) -> Profile {
        let recorded = RecordedNames::of(&stacks);
        let known = |image, address| {
            stored_answer(&stacks, image, address, stored)
                .or_else(|| recorded.lookup(image, address))
                .or_else(|| self.found.get(&(image, address)).cloned())
        };
        let found = lookups(&stacks, known, &mut self.symbolizer, Audience::Nobody);
        for (image, found) in (0u32..).zip(&found) {
            for (address, lookup) in found {
                self.found.entry((image, *address)).or_insert_with(|| lookup.clone());
            }
        }
        profile(stacks, found, &mut self.readable, args)
    }
}

/// Looks up every place of the stacks, for storing.
pub(crate) fn table(
    stacks: &Stacks,
    boot_id: Vec<u8>,
    symfs: Option<PathBuf>,
    audience: Audience,
) -> SymbolTable {
    let options = SymbolizerOptions {
        boot_id,
        symfs,
        debuginfod_cache: debuginfod_cache(),
        ..SymbolizerOptions::default()
    };
    let recorded = RecordedNames::of(stacks);
    let known = |image, address| recorded.lookup(image, address);
    let found = lookups(stacks, known, &mut Symbolizer::new(options), audience);
    let mut builder = SymbolTableBuilder::new();
    for (ids, found) in stacks.image_ids.iter().zip(&found) {
        for (address, lookup) in found {
            for &(epoch, image) in ids {
                store(&mut builder, ImageKey { epoch, image }, *address, lookup);
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

/// Answers for all addresses, by image and in ascending order: what is known already, else what this machine tells.
fn lookups(
    stacks: &Stacks,
    known: impl Fn(u32, u64) -> Option<Lookup>,
    symbolizer: &mut Symbolizer,
    audience: Audience,
) -> Vec<Vec<(u64, Lookup)>> {
    let addresses = addresses_by_image(stacks);
    let mut answers: Vec<Vec<Option<Lookup>>> = (0u32..)
        .zip(&addresses)
        .map(|(image, addresses)| addresses.iter().map(|&at| known(image, at)).collect())
        .collect();
    let is_missing = |answer: &Option<Lookup>| answer.is_none();
    let mut images = Vec::new();
    let mut questions = Vec::new();
    for (image, answers) in answers.iter().enumerate().filter(|(_, it)| it.iter().any(is_missing)) {
        let missing = addresses[image].iter().zip(answers).filter(|(_, it)| is_missing(it));
        images.push(image);
        questions.push(Question {
            image: ImageQuery::from(&stacks.images[image].as_image()),
            addresses: missing.map(|(&address, _)| address).collect(),
        });
    }
    let found = ask(&questions, symbolizer, audience);
    for (image, found) in images.into_iter().zip(found) {
        let missing = answers[image].iter_mut().filter(|answer| answer.is_none());
        for (answer, lookup) in missing.zip(found.lookups) {
            *answer = Some(lookup);
        }
    }
    let told = |(address, answer): (u64, Option<Lookup>)| {
        (address, answer.unwrap_or(Lookup::unresolved(Reason::UnknownCode)))
    };
    addresses
        .into_iter()
        .zip(answers)
        .map(|(addresses, answers)| addresses.into_iter().zip(answers).map(told).collect())
        .collect()
}

/// Every image's addresses, in ascending order.
fn addresses_by_image(stacks: &Stacks) -> Vec<Vec<u64>> {
    let places = stacks.places_by_image().into_iter();
    places.map(|places| places.into_iter().map(|(address, _)| address).collect()).collect()
}

/// Asks while the audience sees how far that is.
fn ask(
    questions: &[Question],
    symbolizer: &mut Symbolizer,
    audience: Audience,
) -> Vec<ImageAnswer> {
    if questions.is_empty() {
        return Vec::new();
    }
    shown("naming", audience, |progress| symbolizer.answer_all(questions, progress))
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
