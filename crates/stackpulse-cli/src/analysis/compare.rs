//! How much of the time functions take on two sides, and how sure the difference is.

/// Samples of one window of time, or of one run: the unit that is drawn.
#[derive(Clone, Debug, Default)]
pub(crate) struct Unit {
    /// All samples.
    pub(crate) samples: u64,
    /// For each function the samples that are its.
    pub(crate) counts: Vec<u64>,
}

/// The share of one function on both sides, in percent.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Change {
    pub(crate) before: f64,
    pub(crate) after: f64,
    /// The bounds of the change: its 95 % interval.
    pub(crate) low: f64,
    pub(crate) high: f64,
}

impl Change {
    /// After minus before, in percent of all samples.
    pub(crate) fn change(&self) -> f64 {
        self.after - self.before
    }

    /// Whether chance in what was drawn does not explain it.
    pub(crate) fn is_sure(&self) -> bool {
        self.low > 0.0 || self.high < 0.0
    }
}

/// How often both sides are drawn anew.
const ROUNDS: usize = 2000;
/// The part of the rounds that lies outside the interval, on each side.
const OUTSIDE: f64 = 0.025;

/// Compares all functions. The same units give the same answer: chance has a fixed seed.
pub(crate) fn compare(before: &[Unit], after: &[Unit], functions: usize) -> Vec<Change> {
    let mut chance = Chance(0x5eed);
    let mut draws = |units: &[Unit]| -> Vec<Draw> {
        (0..ROUNDS).map(|_| Draw::of(units, chance.draw(units.len()))).collect()
    };
    let (before_draws, after_draws) = (draws(before), draws(after));
    let whole = |units: &[Unit]| Draw::of(units, (0..units.len()).collect());
    let (before_whole, after_whole) = (whole(before), whole(after));
    let compare_one = |function: usize| {
        let mut changes: Vec<f64> = before_draws
            .iter()
            .zip(&after_draws)
            .map(|(a, b)| b.share(after, function) - a.share(before, function))
            .collect();
        changes.sort_by(f64::total_cmp);
        let at = rank(changes.len());
        Change {
            before: before_whole.share(before, function),
            after: after_whole.share(after, function),
            low: changes[at],
            high: changes[changes.len() - 1 - at],
        }
    };
    (0..functions).map(compare_one).collect()
}

/// Some of the units, and how many samples they hold together.
struct Draw {
    units: Vec<usize>,
    samples: u64,
}

impl Draw {
    fn of(units: &[Unit], drawn: Vec<usize>) -> Self {
        Self { samples: drawn.iter().map(|&at| units[at].samples).sum(), units: drawn }
    }

    /// A function's share in them, in percent; nothing of nothing is zero.
    #[expect(clippy::cast_precision_loss, reason = "counts of samples")]
    fn share(&self, units: &[Unit], function: usize) -> f64 {
        let count: u64 = self.units.iter().map(|&at| units[at].counts[function]).sum();
        count as f64 * 100.0 / self.samples.max(1) as f64
    }
}

#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a place among some thousand"
)]
fn rank(rounds: usize) -> usize {
    (rounds as f64 * OUTSIDE) as usize
}

/// A small generator of random numbers (splitmix64).
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// As many of `units` as there are, with repetition.
    fn draw(&mut self, units: usize) -> Vec<usize> {
        let below = units as u64;
        (0..units).map(|_| usize::try_from(self.next() % below).unwrap_or_default()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn units(counts: &[u64]) -> Vec<Unit> {
        counts.iter().map(|&count| Unit { samples: 100, counts: vec![count] }).collect()
    }

    #[test]
    fn a_change_beyond_the_noise_is_sure() {
        let change = compare(&units(&[20, 22, 18, 20, 21]), &units(&[30, 29, 31, 32, 30]), 1)[0];
        assert!((change.change() - 10.2).abs() < 1e-9, "{change:?}");
        assert!(change.is_sure() && change.low > 8.0 && change.high < 13.0, "{change:?}");
    }

    #[test]
    fn a_change_within_the_noise_is_not() {
        let change = compare(&units(&[0, 40, 10, 60, 20]), &units(&[50, 0, 45, 5, 40]), 1)[0];
        assert!(!change.is_sure(), "{change:?}");
    }

    /// In how many of many pairs from one source the interval holds the truth, which is no change.
    #[test]
    fn the_interval_holds_the_truth_about_as_often_as_it_says() {
        let mut chance = Chance(7);
        let mut side = || units(&(0..40).map(|_| 10 + chance.next() % 20).collect::<Vec<_>>());
        let sure = (0..100).filter(|_| compare(&side(), &side(), 1)[0].is_sure()).count();
        assert!((1..=14).contains(&sure), "{sure} of 100 are called sure");
    }
}
