//! Fewer samples for a smaller file, evenly over time.

use crate::timeline::{TimedSample, Timeline};

/// A sample that stands for itself and for those left out around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Thinned {
    pub(super) sample: TimedSample,
    /// How many samples it stands for.
    pub(super) count: u32,
    /// The sum of their weights.
    pub(super) weight: u64,
}

/// Keeps one sample of each `stratum` that follow one another in a thread, with the weight of all of them.
///
/// Which one is kept is chosen by a hash of the place in the thread, so that a program that does the same every few samples
/// is not always met at the same point.
pub(super) fn thin(timeline: &Timeline, samples: &[u32], stratum: usize) -> Vec<Thinned> {
    let chunks = samples.chunks(stratum.max(1)).enumerate();
    chunks
        .map(|(at, chunk)| {
            let chosen = scatter(at as u64) % chunk.len() as u64;
            let chosen = chunk[usize::try_from(chosen).unwrap_or_default()];
            let weights = chunk.iter().map(|&at| timeline.samples[at as usize].weight);
            Thinned {
                sample: timeline.samples[chosen as usize],
                count: u32::try_from(chunk.len()).unwrap_or(u32::MAX),
                weight: weights.fold(0, u64::saturating_add),
            }
        })
        .collect()
}

/// A number that looks random; the same for the same place.
fn scatter(at: u64) -> u64 {
    let mixed = (at + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 16
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stacks::{Actor, StackKey};

    fn timeline(samples: u64) -> (Timeline, Vec<u32>) {
        let mut timeline = Timeline::default();
        let actor = Actor { thread: 0, comm: 0 };
        for at in 0..samples {
            timeline.push(at * 1000, 10 + at, 0, StackKey { actor, callers: 0, leaf: 0 });
        }
        let at = (0..).take(timeline.samples.len()).collect();
        (timeline, at)
    }

    #[test]
    fn thinning_keeps_samples_weights_and_order() {
        let (timeline, at) = timeline(1003);
        let all: u64 = timeline.samples.iter().map(|sample| sample.weight).sum();
        for stratum in [1, 2, 7, 100, 5000] {
            let thinned = thin(&timeline, &at, stratum);
            assert_eq!(thinned.len(), 1003usize.div_ceil(stratum));
            assert_eq!(thinned.iter().map(|kept| kept.count).sum::<u32>(), 1003);
            assert_eq!(thinned.iter().map(|kept| kept.weight).sum::<u64>(), all);
            assert!(thinned.is_sorted_by_key(|kept| kept.sample.time_ns));
        }
    }

    #[test]
    fn what_repeats_is_not_always_met_at_the_same_point() {
        let (timeline, at) = timeline(1000);
        let points: std::collections::BTreeSet<u64> =
            thin(&timeline, &at, 4).iter().map(|kept| kept.sample.time_ns / 1000 % 4).collect();
        assert_eq!(points.len(), 4);
    }
}
