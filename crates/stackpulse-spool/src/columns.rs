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
/// How far a sample's time is from the expected one.
pub(crate) const TIME: usize = 7;
/// A sample's thread.
pub(crate) const THREAD: usize = 8;
/// A sample's CPU.
pub(crate) const CPU: usize = 9;
/// A sample's weight.
pub(crate) const WEIGHT: usize = 10;
/// A sample's leaf frame.
pub(crate) const LEAF: usize = 11;
/// A sample's callers.
pub(crate) const CALLERS: usize = 12;
/// How many there are.
pub(crate) const COUNT: usize = 13;

/// Whether a column holds nothing but parts of samples.
pub(crate) fn is_of_samples(column: usize) -> bool {
    (TIME..=CALLERS).contains(&column)
}

/// How many CPUs are predicted apart; others share by remainder.
const CPU_SLOTS: usize = 64;

/// For how many leaves the callers are predicted apart; others share by remainder.
const LEAF_SLOTS: usize = 4096;

/// What has been seen on one CPU.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CpuState {
    /// The latest sample's time.
    time_ns: u64,
    /// How long it came after the one before.
    distance_ns: u64,
    /// How long a sample mostly comes after the one before.
    interval_ns: u64,
    pub(crate) thread: u64,
    pub(crate) weight: u64,
}

impl CpuState {
    fn idle(time_ns: u64, interval_ns: u64) -> Self {
        Self { time_ns, distance_ns: 0, interval_ns, thread: 0, weight: 0 }
    }

    /// Returns how many units a time lies after the expected one; every time is a multiple of 2^shift.
    #[inline(always)]
    pub(crate) fn residual(&self, time_ns: u64, shift: u32) -> i64 {
        let units = time_ns.wrapping_sub(self.time_ns).cast_signed() >> shift;
        units.wrapping_sub((self.interval_ns >> shift).cast_signed())
    }

    /// Returns the time that lies so many units after the expected one.
    #[inline(always)]
    pub(crate) fn time_ns(&self, residual: i64, shift: u32) -> u64 {
        let units = residual.wrapping_add((self.interval_ns >> shift).cast_signed());
        self.time_ns.wrapping_add((units << shift).cast_unsigned())
    }

    /// Takes a sample in.
    ///
    /// A timer that jitters moves the interval a little. One that is far from it says nothing: a sample was late, or missing. Two
    /// like distances after each other, though, are an interval.
    #[inline(always)]
    pub(crate) fn saw(&mut self, time_ns: u64) {
        let distance = time_ns.wrapping_sub(self.time_ns);
        let residual = distance.wrapping_sub(self.interval_ns).cast_signed();
        if residual.unsigned_abs() < self.interval_ns >> 6 {
            self.interval_ns = self.interval_ns.wrapping_add((residual >> 6).cast_unsigned());
        } else if distance < LONGEST_INTERVAL_NS
            && distance.abs_diff(self.distance_ns) < distance >> 6
        {
            self.interval_ns = distance;
        }
        self.distance_ns = distance;
        self.time_ns = time_ns;
    }
}

/// Longer distances are not taken for a sampling interval: one second.
const LONGEST_INTERVAL_NS: u64 = 1_000_000_000;

/// What the next numbers of a block are written relative to.
#[derive(Clone, Debug)]
pub(crate) struct Predictor {
    /// The time of the latest record that is no sample.
    pub(crate) time_ns: u64,
    /// Times are told in units of 2^shift nanoseconds.
    pub(crate) time_shift: u32,
    /// The end of the latest mapping.
    pub(crate) mapping_avma: u64,
    /// Above the highest frame that was referred to.
    fresh_frame: u32,
    /// Frames defined as of the latest sample.
    frames_at_sample: u32,
    cpus: Box<[CpuState; CPU_SLOTS]>,
    /// The latest callers of each leaf.
    callers: Box<[u32; LEAF_SLOTS]>,
    /// The latest address of each image.
    addresses: FxHashMap<u32, u64>,
}

impl Predictor {
    pub(crate) fn new() -> Self {
        Self {
            time_ns: 0,
            time_shift: 0,
            mapping_avma: 0,
            fresh_frame: 0,
            frames_at_sample: 0,
            cpus: Box::new([CpuState::idle(0, 0); CPU_SLOTS]),
            callers: Box::new([0; LEAF_SLOTS]),
            addresses: FxHashMap::default(),
        }
    }

    /// Starts afresh for a block.
    pub(crate) fn restart(&mut self, start: &Start) {
        let &Start { base_ns, interval_ns, time_shift, counts: Counts { frames, .. }, .. } = start;
        self.time_ns = base_ns;
        self.time_shift = time_shift;
        self.mapping_avma = 0;
        self.start_epoch();
        self.fresh_frame = frames;
        self.frames_at_sample = frames;
        self.cpus.fill(CpuState::idle(base_ns, interval_ns));
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
        }
        self.callers.fill(0);
    }

    #[inline]
    pub(crate) fn cpu(&mut self, cpu: u32) -> &mut CpuState {
        &mut self.cpus[cpu as usize % CPU_SLOTS]
    }

    /// The callers that a leaf had last; none at first.
    #[inline(always)]
    pub(crate) fn callers(&mut self, leaf: u32) -> &mut u32 {
        &mut self.callers[leaf as usize % LEAF_SLOTS]
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
