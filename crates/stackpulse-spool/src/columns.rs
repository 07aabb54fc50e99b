//! The columns of a block of records, and what predicts their numbers.
//!
//! Encoder and decoder keep the same [`Predictor`]; it starts afresh with each block, so that a block can
//! be read whatever became of those before it.

use crate::encode::Start;
use crate::tables::Counts;
use rustc_hash::FxHashMap;

/// One byte a record.
pub(crate) const TAGS: usize = 0;
/// Numbers of all records that have no columns of their own.
pub(crate) const NUMBERS: usize = 1;
/// The bytes of all strings, without lengths.
pub(crate) const STRINGS: usize = 2;
/// A frame's kind and image.
pub(crate) const FRAME_IMAGE: usize = 3;
/// A frame's address.
pub(crate) const FRAME_ADDRESS: usize = 4;
/// A run's parent node and length.
pub(crate) const RUN: usize = 5;
/// The frames of runs.
pub(crate) const RUN_FRAMES: usize = 6;
/// The low byte of a sample's time residual.
pub(crate) const TIME_LOW: usize = 7;
/// The rest of it.
pub(crate) const TIME_HIGH: usize = 8;
/// A sample's thread.
pub(crate) const THREAD: usize = 9;
/// A sample's CPU.
pub(crate) const CPU: usize = 10;
/// A sample's weight.
pub(crate) const WEIGHT: usize = 11;
/// A sample's leaf frame.
pub(crate) const LEAF: usize = 12;
/// A sample's callers.
pub(crate) const CALLERS: usize = 13;
/// How many there are.
pub(crate) const COUNT: usize = 14;

/// Whether a column holds nothing but parts of samples.
pub(crate) fn is_of_samples(column: usize) -> bool {
    (TIME_LOW..=CALLERS).contains(&column)
}

/// How many CPUs are predicted apart; others share by remainder.
const CPU_SLOTS: usize = 64;

/// What has been seen on one CPU.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CpuState {
    /// Near the latest sample's time, without the jitter.
    pub(crate) time_ns: u64,
    /// Distance between samples.
    pub(crate) interval_ns: u64,
    pub(crate) thread: u64,
    pub(crate) weight: u64,
    pub(crate) callers: u32,
}

impl CpuState {
    /// Returns the expected time of the next sample.
    pub(crate) fn expected_ns(&self) -> u64 {
        self.time_ns.wrapping_add(self.interval_ns)
    }

    /// Takes a sample in that was so far from its expected time.
    ///
    /// Samples jitter around the moments of a timer, so that half of a small residual is taken for jitter. A large one shows
    /// that samples are missing or late: the interval then goes to the median of the distances, not to their mean. A
    /// much shorter distance shows that the interval was begun with a pause.
    #[inline(always)]
    pub(crate) fn saw(&mut self, time_ns: u64, residual: i64) {
        let interval = self.interval_ns;
        let distance = time_ns.wrapping_sub(self.time_ns);
        if residual.unsigned_abs() < interval >> 6 && distance >= interval - (interval >> 2) {
            self.time_ns = self.expected_ns().wrapping_add((residual >> 1).cast_unsigned());
            self.interval_ns = interval.wrapping_add((residual >> 6).cast_unsigned());
            return;
        }
        self.time_ns = time_ns;
        self.interval_ns = if interval == 0 {
            // The first distance is from the block's base time: no interval yet.
            if distance < FIRST_INTERVAL_LIMIT_NS { distance } else { 0 }
        } else if distance < interval - (interval >> 2) {
            distance
        } else if residual > 0 {
            interval.saturating_add(interval >> 14)
        } else {
            interval - (interval >> 14)
        };
    }
}

/// Longer first distances are not taken for a sampling interval: one second.
const FIRST_INTERVAL_LIMIT_NS: u64 = 1_000_000_000;

/// What the next numbers of a block are written relative to.
#[derive(Clone, Debug)]
pub(crate) struct Predictor {
    /// The time of the latest record that is no sample.
    pub(crate) time_ns: u64,
    /// The end of the latest mapping.
    pub(crate) mapping_avma: u64,
    /// Above the highest frame that was referred to.
    fresh_frame: u32,
    /// Frames defined as of the latest sample.
    frames_at_sample: u32,
    cpus: Box<[CpuState; CPU_SLOTS]>,
    /// The latest address of each image.
    addresses: FxHashMap<u32, u64>,
}

impl Predictor {
    pub(crate) fn new() -> Self {
        let idle = CpuState { time_ns: 0, interval_ns: 0, thread: 0, weight: 0, callers: 0 };
        Self {
            time_ns: 0,
            mapping_avma: 0,
            fresh_frame: 0,
            frames_at_sample: 0,
            cpus: Box::new([idle; CPU_SLOTS]),
            addresses: FxHashMap::default(),
        }
    }

    /// Starts afresh for a block.
    pub(crate) fn restart(&mut self, start: &Start) {
        let &Start { base_ns, interval_ns, counts: Counts { frames, .. }, .. } = start;
        self.time_ns = base_ns;
        self.mapping_avma = 0;
        self.start_epoch();
        self.fresh_frame = frames;
        self.frames_at_sample = frames;
        let idle = CpuState { time_ns: base_ns, interval_ns, thread: 0, weight: 0, callers: 0 };
        self.cpus.fill(idle);
    }

    /// Returns the interval of the CPU that was sampled last; zero: not known.
    pub(crate) fn latest_interval_ns(&self) -> u64 {
        let latest = self.cpus.iter().max_by_key(|cpu| cpu.time_ns);
        latest.map_or(0, |cpu| cpu.interval_ns)
    }

    /// Forgets what refers to ids.
    pub(crate) fn start_epoch(&mut self) {
        self.addresses.clear();
        self.fresh_frame = 0;
        self.frames_at_sample = 0;
        for cpu in &mut *self.cpus {
            cpu.thread = 0;
            cpu.callers = 0;
        }
    }

    #[inline]
    pub(crate) fn cpu(&mut self, cpu: u32) -> &mut CpuState {
        &mut self.cpus[cpu as usize % CPU_SLOTS]
    }

    /// Returns the number that stands for a frame in a run.
    #[inline]
    pub(crate) fn frame_in_run(&mut self, frame: u32) -> u64 {
        // New frames are mostly used in the order of their definition; the leaf's comes first and is used last.
        let code = match frame.checked_sub(self.fresh_frame) {
            Some(ahead @ 0..=1) => u64::from(ahead),
            _ => u64::from(frame) + 2,
        };
        self.refer_to(frame);
        code
    }

    /// Returns the frame in a run that a number stands for; `None` if it would not be an id.
    #[inline]
    pub(crate) fn frame_of_run(&mut self, code: u64) -> Option<u32> {
        let frame = match code {
            0 | 1 => u64::from(self.fresh_frame) + code,
            _ => code - 2,
        };
        let frame = u32::try_from(frame).ok()?;
        self.refer_to(frame);
        Some(frame)
    }

    /// Returns the number that stands for a sample's leaf when `frames` are defined.
    #[inline(always)]
    pub(crate) fn leaf(&mut self, leaf: u32, frames: u32) -> u64 {
        let code = if leaf == self.frames_at_sample {
            0
        } else if self.frames_at_sample < frames && leaf == frames - 1 {
            1
        } else {
            u64::from(leaf) + 2
        };
        self.refer_to(leaf);
        self.frames_at_sample = frames;
        code
    }

    /// Returns the leaf that a number stands for when `frames` are defined; `None` if it would not be an id.
    #[inline(always)]
    pub(crate) fn leaf_of(&mut self, code: u64, frames: u32) -> Option<u32> {
        let leaf = match code {
            0 => self.frames_at_sample,
            1 => frames.checked_sub(1)?,
            _ => u32::try_from(code - 2).ok()?,
        };
        self.refer_to(leaf);
        self.frames_at_sample = frames;
        Some(leaf)
    }

    #[inline]
    fn refer_to(&mut self, frame: u32) {
        self.fresh_frame = self.fresh_frame.max(frame.saturating_add(1));
    }

    /// The latest address of an image; zero at first.
    pub(crate) fn address(&mut self, image: u32) -> &mut u64 {
        self.addresses.entry(image).or_default()
    }
}
