//! One sample, its bulk left where it was read.

use crate::event::Task;
use crate::payload::Payload;
use crate::regs::{Arch, RegsAbi, UserRegs};
use std::ops::Range;

/// The processor's state when the sample was taken (`PERF_RECORD_MISC_CPUMODE_MASK`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CpuMode {
    /// Not told.
    Unknown,
    /// In the kernel.
    Kernel,
    /// In user code.
    User,
    /// In the hypervisor.
    Hypervisor,
    /// In a guest's kernel.
    GuestKernel,
    /// In a guest's user code.
    GuestUser,
}

/// The small facts of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampleHead {
    /// Whose sample it is; `None` where the record has no task or says pid or tid -1.
    pub task: Option<Task>,
    /// The interrupted instruction.
    pub ip_avma: u64,
    /// Where the processor was.
    pub cpu_mode: CpuMode,
    /// What the sample stands for, in the event's unit.
    pub period: u64,
}

/// Where a sample's parts lie in its payload, in bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SampleParts {
    /// The callchain's addresses and context markers, eight bytes each.
    pub callchain: Range<usize>,
    /// The user registers' values, eight bytes each; `None` if the kernel delivered none.
    pub regs: Option<(RegsAbi, Range<usize>)>,
    /// The user stack, innermost first, as many bytes as were really copied.
    pub stack: Range<usize>,
}

/// A sample: small facts, and the bulk as a lease on the memory it was read into.
///
/// Dropping it gives that memory back. It may be sent to another thread, and dropped in any order.
#[derive(Debug)]
pub struct Sample {
    head: SampleHead,
    arch: Arch,
    regs_mask: u64,
    parts: SampleParts,
    payload: Payload,
}

impl Sample {
    /// Puts a sample together from its payload and the places of the parts in it. A part that
    /// does not lie within the payload reads as empty.
    #[must_use]
    pub fn new(
        head: SampleHead,
        arch: Arch,
        regs_mask: u64,
        parts: SampleParts,
        payload: Payload,
    ) -> Self {
        Self { head, arch, regs_mask, parts, payload }
    }

    /// Returns the small facts.
    #[must_use]
    pub fn head(&self) -> &SampleHead {
        &self.head
    }

    /// Returns the user registers, or `None` if the kernel delivered none.
    #[must_use]
    pub fn user_regs(&self) -> Option<UserRegs<'_>> {
        let (abi, range) = self.parts.regs.as_ref()?;
        UserRegs::new(self.arch, *abi, self.regs_mask, self.bytes(range))
    }

    /// Returns the copied part of the user stack, from the stack pointer upwards.
    #[must_use]
    pub fn user_stack(&self) -> &[u8] {
        self.bytes(&self.parts.stack)
    }

    /// Returns the kernel's callchain: addresses, innermost first, between context markers
    /// (see [`callchain`](crate::callchain)).
    pub fn callchain(&self) -> impl Iterator<Item = u64> + '_ {
        self.bytes(&self.parts.callchain)
            .chunks_exact(8)
            .filter_map(|bytes| bytes.first_chunk().copied())
            .map(u64::from_ne_bytes)
    }

    #[cfg(feature = "capture")]
    pub(crate) fn payload(&self) -> &Payload {
        &self.payload
    }

    /// Puts the same bytes from another place.
    #[cfg(feature = "capture")]
    pub(crate) fn replace_payload(&mut self, payload: Payload) {
        self.payload = payload;
    }

    fn bytes(&self, range: &Range<usize>) -> &[u8] {
        self.payload.bytes().get(range.clone()).unwrap_or_default()
    }
}
