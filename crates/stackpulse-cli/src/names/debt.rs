//! What has no name, and which files would name it.

use rustc_hash::FxHashMap;
use stackpulse_export::{Place, Stacks, module_name};
use stackpulse_spool::{ImageKey, SymbolTable};
use stackpulse_symbolize::Reason;
use std::cmp::Reverse;

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
