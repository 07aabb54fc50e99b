//! Addresses to be named, sorted, and found by range in a few steps.

use std::ops::Range;

/// Entries of the coarse table.
const COARSE: u64 = 1 << 14;

/// Sorted distinct addresses.
#[derive(Debug)]
pub(crate) struct Addresses {
    sorted: Vec<u64>,
    /// For each piece of the span the number of addresses before it.
    coarse: Vec<u32>,
    base: u64,
    shift: u32,
}

impl Addresses {
    /// `sorted` is sorted and has no duplicates.
    pub(crate) fn new(sorted: Vec<u64>) -> Self {
        let base = sorted.first().copied().unwrap_or_default();
        let span = sorted.last().copied().unwrap_or_default() - base;
        let shift = (span / COARSE + 1).next_power_of_two().ilog2();
        let mut coarse = Vec::new();
        for (at, &address) in (0u32..).zip(&sorted) {
            let piece = usize::try_from((address - base) >> shift).unwrap_or(usize::MAX);
            if coarse.len() <= piece {
                coarse.resize(piece + 1, at);
            }
        }
        coarse.push(u32::try_from(sorted.len()).unwrap_or(u32::MAX));
        Self { sorted, coarse, base, shift }
    }

    pub(crate) fn as_slice(&self) -> &[u64] {
        &self.sorted
    }

    /// How many addresses are below `bound`.
    #[inline]
    pub(crate) fn below(&self, bound: u64) -> usize {
        let Some(into) = bound.checked_sub(self.base) else { return 0 };
        let Ok(piece) = usize::try_from(into >> self.shift) else { return self.sorted.len() };
        let Some(&end) = self.coarse.get(piece.saturating_add(1)) else { return self.sorted.len() };
        let (start, end) = (self.coarse[piece] as usize, end as usize);
        start + self.sorted[start..end].partition_point(|&address| address < bound)
    }

    /// Indexes of the addresses in `start..end`.
    #[inline]
    pub(crate) fn range(&self, start: u64, end: u64) -> Range<usize> {
        if start >= end {
            return 0..0;
        }
        let first = self.below(start);
        // Most ranges hold no address.
        match self.sorted.get(first) {
            Some(&address) if address < end => first..self.below(end),
            _ => first..first,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn ranges_are_those_of_a_plain_search() {
        for (count, step) in [(0u64, 1u64), (1, 1), (7, 3), (1000, 0x1_0001), (300, u64::MAX / 302)]
        {
            let sorted: BTreeSet<u64> = (0..count).map(|at| 5 + at * step).collect();
            let sorted: Vec<u64> = sorted.into_iter().collect();
            let addresses = Addresses::new(sorted.clone());
            let bounds = sorted.iter().flat_map(|&at| [at - 1, at, at + 1]).chain([0, u64::MAX]);
            for bound in bounds {
                let expected = sorted.partition_point(|&address| address < bound);
                assert_eq!(addresses.below(bound), expected, "{bound} of {count}");
                let range = addresses.range(bound, bound.saturating_add(step));
                assert!(sorted[range].iter().all(|&at| at >= bound && at - bound < step));
            }
        }
    }
}
