//! Names that were not to be had when a spool was recorded.

use super::{RecordedNames, addresses_by_image, ask, debuginfod_cache, store, stored_answer};
use crate::render::progress::Audience;
use stackpulse_export::Stacks;
use stackpulse_spool::{ImageKey, SymbolTable, SymbolTableBuilder};
use stackpulse_symbolize::{Lookup, Origin, Question, Symbolizer, SymbolizerOptions};
use std::path::PathBuf;

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
    let recorded = RecordedNames::of(stacks);
    let mut builder = SymbolTableBuilder::new();
    let (mut addresses, mut named, mut better) = (0, 0, 0);
    let mut files: Vec<(PathBuf, Origin)> = Vec::new();
    let asked = addresses_by_image(stacks).into_iter().zip(&stacks.images);
    let questions: Vec<Question> = asked
        .map(|(addresses, image)| Question { image: (&image.as_image()).into(), addresses })
        .collect();
    let answers = ask(&questions, &mut Symbolizer::new(options), Audience::Terminal);
    for ((image, question), answer) in (0u32..).zip(&questions).zip(answers) {
        let mut gained = Vec::new();
        for (&address, fresh) in question.addresses.iter().zip(answer.lookups) {
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
