//! How well the stacks of each image were unwound.

use stackpulse_export::{Place, Stacks, module_name};
use stackpulse_spool::text;
use std::collections::BTreeMap;

/// What became of the stacks that have to do with an image.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Health {
    /// The image's name.
    pub(crate) module: String,
    /// Samples whose innermost frame is in it.
    pub(crate) samples: u64,
    /// Those of them whose stack reaches its root.
    pub(crate) complete: u64,
    /// Stacks, wherever they begin, that end in it before their root, by why.
    pub(crate) stopped: BTreeMap<&'static str, u64>,
}

impl Health {
    fn stopped_total(&self) -> u64 {
        self.stopped.values().sum()
    }
}

/// Returns the health of each image with frames, those first in which most stacks stop.
pub(crate) fn by_image(stacks: &Stacks) -> Vec<Health> {
    let mut images: Vec<Health> = stacks
        .images
        .iter()
        .map(|image| Health { module: module_name(image), ..Health::default() })
        .collect();
    for (&stack, &count) in &stacks.counts {
        let places: Vec<Place> = stacks
            .places_of(stack)
            .filter_map(|at| stacks.places.get(at as usize))
            .copied()
            .collect();
        let reason = match places.last() {
            Some(Place::Truncated(reason)) => Some(text::truncation(*reason)),
            _ => None,
        };
        let image = |place: &Place| match place {
            Place::Code { image, .. } => Some(*image as usize),
            _ => None,
        };
        if let Some(health) = places.first().and_then(image).and_then(|at| images.get_mut(at)) {
            health.samples += count;
            health.complete += if reason.is_none() { count } else { 0 };
        }
        let outermost = places.iter().rev().find_map(image).and_then(|at| images.get_mut(at));
        if let (Some(reason), Some(health)) = (reason, outermost) {
            *health.stopped.entry(reason).or_default() += count;
        }
    }
    images.retain(|health| health.samples > 0 || !health.stopped.is_empty());
    images.sort_by_key(|health| std::cmp::Reverse((health.stopped_total(), health.samples)));
    images
}
