//! What is said of one image's addresses.

use crate::image::{self, Effort, Named};
use crate::locate::Files;
use crate::lookup::{Call, Lookup, Origin, Reason};
use rustc_hash::FxHashSet;
use stackpulse_spool::ImageKind;
use std::path::PathBuf;

/// Answers for one image.
#[derive(Clone, Debug)]
pub struct ImageAnswer {
    /// One for each address, in the order they were asked.
    pub lookups: Vec<Lookup>,
    /// The files that gave names, with what kind of names: those of best quality first.
    pub files: Vec<(PathBuf, Origin)>,
}

impl ImageAnswer {
    /// Names addresses of an image whose files were found; `None` if that takes more than a part of the effort.
    pub(crate) fn of(
        files: &Files,
        kind: ImageKind,
        addresses: &[u64],
        effort: &Effort,
    ) -> Option<Self> {
        let is_offset = kind == ImageKind::File;
        if !is_offset && addresses.is_sorted_by(|a, b| a < b) {
            let Named { lookups, origins } = image::name(files, addresses.to_vec(), effort)?;
            return Some(Self { lookups, files: origins.best_first() });
        }
        // Each distinct address once, in ascending order; the others are told by their place in it.
        let svma_of = |address| if is_offset { files.svma_of(address) } else { Some(address) };
        let wanted: Vec<Option<u64>> = addresses.iter().map(|&address| svma_of(address)).collect();
        let mut svmas: Vec<u64> = wanted.iter().copied().flatten().collect();
        svmas.sort_unstable();
        svmas.dedup();
        let Named { lookups: answers, origins } = image::name(files, svmas.clone(), effort)?;
        let lookups = wanted.into_iter().map(|svma| {
            let at = svma.and_then(|svma| svmas.binary_search(&svma).ok());
            let mut lookup =
                at.map_or(Lookup::unresolved(Reason::NoSymbol), |at| answers[at].clone());
            if let Lookup::Unresolved { start: Some(start), .. } = &mut lookup
                && is_offset
            {
                *start = files.offset_of(*start).unwrap_or(*start);
            }
            lookup
        });
        Some(Self { lookups: lookups.collect(), files: origins.best_first() })
    }

    /// No name for any of so many addresses, for one reason.
    pub(crate) fn nameless(addresses: usize, reason: Reason) -> Self {
        Self { lookups: vec![Lookup::unresolved(reason); addresses], files: Vec::new() }
    }

    /// What the calls take in memory, with their texts.
    pub(crate) fn text_bytes(&self) -> u64 {
        let mut texts = FxHashSet::default();
        let calls = self.lookups.iter().flat_map(|lookup| match lookup {
            Lookup::Resolved { calls, .. } => calls.as_slice(),
            Lookup::Unresolved { .. } => &[],
        });
        let mut sizes = calls.map(|call| {
            let texts: u64 = [&call.function, &call.file]
                .into_iter()
                .flatten()
                // Most texts are shared by many calls.
                .filter(|text| texts.insert(text.as_ptr()))
                .map(|text| text.len() as u64)
                .sum();
            texts + size_of::<Call>() as u64
        });
        sizes.by_ref().fold(0, u64::saturating_add)
    }
}
