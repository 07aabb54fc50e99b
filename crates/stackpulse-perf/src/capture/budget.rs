//! How much ring memory a recording asks for, and how much it may have: known before anything is opened.

use super::limits;
use super::options::CaptureOptions;
use crate::error::OpenError;
use crate::layout::SampleLayout;

/// At most this much ring memory a CPU, and in all.
const MAX_RING_BYTES: u64 = 256 << 20;
const MAX_ALL_RINGS_BYTES: u64 = 1 << 30;

/// Length of a lifecycle ring in bytes: about a thousand mappings.
const LIFECYCLE_RING_BYTES: usize = 128 << 10;

/// The same where it tells of all processes of a CPU.
const CPU_LIFECYCLE_RING_BYTES: usize = 1 << 20;

/// How many rings there are to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RingCounts {
    /// Lifecycle rings: one a CPU.
    pub(crate) lifecycle: usize,
    /// Sample rings: one a CPU that is sampled.
    pub(crate) samples: usize,
    /// Whether they tell of all that runs on their CPUs.
    pub(crate) are_of_cpus: bool,
}

/// Ring memory, in pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Budget {
    /// Bytes of a page.
    pub(crate) page: usize,
    /// Data pages of a sample ring: a power of two.
    pub(crate) sample_pages: usize,
    /// Data pages of a lifecycle ring: a power of two.
    pub(crate) lifecycle_pages: usize,
    /// The least data pages that hold the largest sample.
    least_pages: usize,
    rings: RingCounts,
    /// Whether sample rings are smaller than asked for.
    pub(crate) is_reduced: bool,
    /// What this process may lock in all; `None` if as much as it likes.
    pub(crate) lockable_bytes: Option<u64>,
}

impl Budget {
    /// Plans rings for a number of CPUs and of sampled ones: as large as the options say, or halved until they are within
    /// what may be locked. What is known only to the kernel may make it refuse even so: then [`halve`](Self::halve).
    pub(crate) fn plan(
        options: &CaptureOptions,
        layout: &SampleLayout,
        page: usize,
        rings: RingCounts,
        online_cpus: usize,
    ) -> Result<Self, OpenError> {
        Self::within(options, layout, page, rings, limits::lockable_bytes(online_cpus))
    }

    fn within(
        options: &CaptureOptions,
        layout: &SampleLayout,
        page: usize,
        rings: RingCounts,
        lockable_bytes: Option<u64>,
    ) -> Result<Self, OpenError> {
        let largest = layout.largest_sample_bytes(options.stack_size_bytes) as u64;
        let wanted = (options.stack_size_bytes as usize).max(page) as u64
            * u64::from(options.ring_buffer_stacks.max(1));
        let sample_pages = pages(wanted.max(largest), page);
        let per_cpu = (sample_pages as u64).saturating_mul(page as u64);
        for (wanted_bytes, limit_bytes) in [
            (per_cpu, MAX_RING_BYTES),
            (per_cpu.saturating_mul(rings.samples as u64), MAX_ALL_RINGS_BYTES),
        ] {
            if wanted_bytes > limit_bytes {
                return Err(OpenError::RingTooLarge { wanted_bytes, limit_bytes });
            }
        }
        let lifecycle_bytes =
            if rings.are_of_cpus { CPU_LIFECYCLE_RING_BYTES } else { LIFECYCLE_RING_BYTES };
        let lifecycle_pages = (lifecycle_bytes / page).max(1).min(sample_pages);
        let least_pages = pages(largest, page);
        let mut budget = Self {
            page,
            sample_pages,
            lifecycle_pages,
            least_pages,
            rings,
            is_reduced: false,
            lockable_bytes,
        };
        while lockable_bytes.is_some_and(|limit| budget.bytes() > limit) && budget.halve() {}
        Ok(budget)
    }

    /// Halves the sample rings, unless they would not hold the largest sample any more.
    pub(crate) fn halve(&mut self) -> bool {
        let may_be_halved = self.sample_pages / 2 >= self.least_pages;
        if may_be_halved {
            self.sample_pages /= 2;
            self.lifecycle_pages = self.lifecycle_pages.min(self.sample_pages);
            self.is_reduced = true;
        }
        may_be_halved
    }

    /// Bytes of a sample ring's data.
    pub(crate) fn sample_ring_bytes(&self) -> usize {
        self.sample_pages.saturating_mul(self.page)
    }

    /// Bytes of all rings, each with its page of metadata: what counts against what may be locked.
    pub(crate) fn bytes(&self) -> u64 {
        let RingCounts { lifecycle, samples, .. } = self.rings;
        let pages = (self.lifecycle_pages + 1) * lifecycle + (self.sample_pages + 1) * samples;
        pages as u64 * self.page as u64
    }
}

/// Power-of-two pages for that many bytes.
fn pages(bytes: u64, page: usize) -> usize {
    usize::try_from(bytes.div_ceil(page as u64)).unwrap_or(usize::MAX / 2).next_power_of_two()
}

#[cfg(test)]
mod tests;
