//! Counters of the engine: one for each way a sample can go.

use stackpulse_spool::Truncation;
use stackpulse_unwind::Steps;

/// What the engine has met so far. Counters saturate; every sample seen is written or skipped, in one place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Statistics {
    /// Sample events handled.
    pub samples_seen: u64,
    /// Samples written.
    pub samples_written: u64,
    /// Samples without pid and tid.
    pub skipped_without_task: u64,
    /// Samples of the idle task.
    pub skipped_idle: u64,
    /// Samples in the kernel, while kernel frames are off.
    pub skipped_kernel: u64,
    /// Samples from which no frame came.
    pub skipped_without_frame: u64,
    /// Stacks that end with a marker, by reason, in the order of [`REASONS`](Self::REASONS).
    pub truncated: [u64; 7],
    /// Stacks that were cut and joined to callers known from before: these have no marker.
    pub joined: u64,
    /// Samples without user registers.
    pub without_registers: u64,
    /// Samples of 32-bit code.
    pub with_32_bit_registers: u64,
    /// Addresses of the kernel's user callchain that were ignored.
    pub user_callchain_ignored: u64,
    /// Steps by frame pointer, where generated code has no call frame information.
    pub frame_pointer_generated: u64,
    /// Steps by frame pointer, where an image has none for the address.
    pub frame_pointer_image: u64,
    /// Images whose file could not be read.
    pub images_unreadable: u64,
    /// How often a process's maps were read anew.
    pub maps_refreshed: u64,
    /// Spans in which lifecycle events may be missing.
    pub gaps: u64,
}

impl Statistics {
    /// The reasons for truncation, in the order they are counted.
    pub const REASONS: [Truncation; 7] = [
        Truncation::OutsideCapture,
        Truncation::NoUnwindInfo,
        Truncation::BadCfa,
        Truncation::NullReturnAddress,
        Truncation::DepthLimit,
        Truncation::Loop,
        Truncation::NoRegisters,
    ];

    /// Returns all counters with the names that spools give them.
    #[must_use]
    pub fn counters(&self) -> Vec<(String, u64)> {
        let named = [
            ("frame_pointer.generated", self.frame_pointer_generated),
            ("frame_pointer.image", self.frame_pointer_image),
            ("images_unreadable", self.images_unreadable),
            ("lifecycle_gaps", self.gaps),
            ("maps_refreshed", self.maps_refreshed),
            ("samples_seen", self.samples_seen),
            ("samples_written", self.samples_written),
            ("skipped.idle", self.skipped_idle),
            ("skipped.kernel_mode", self.skipped_kernel),
            ("skipped.without_frame", self.skipped_without_frame),
            ("skipped.without_task", self.skipped_without_task),
            ("stacks_joined", self.joined),
            ("user_callchain_ignored", self.user_callchain_ignored),
            ("with_32_bit_registers", self.with_32_bit_registers),
            ("without_registers", self.without_registers),
        ];
        let truncated = Self::REASONS.iter().zip(self.truncated).map(|(&reason, count)| {
            (format!("truncated.{}", stackpulse_spool::text::truncation(reason)), count)
        });
        named.map(|(name, value)| (name.to_owned(), value)).into_iter().chain(truncated).collect()
    }

    /// Adds the steps of a stack that no unwind information led to.
    pub(crate) fn add_steps(&mut self, steps: Steps) {
        let add = |sum: &mut u64, more: u32| *sum = sum.saturating_add(u64::from(more));
        add(&mut self.frame_pointer_generated, steps.frame_pointer_generated);
        add(&mut self.frame_pointer_image, steps.frame_pointer_image);
    }

    pub(crate) fn saw_truncation(&mut self, reason: Truncation) {
        let at = Self::REASONS.iter().position(|&known| known == reason);
        if let Some(count) = at.and_then(|at| self.truncated.get_mut(at)) {
            *count = count.saturating_add(1);
        }
    }
}
