//! What to capture.

use crate::error::OpenError;

/// The most bytes of user stack the kernel copies with a sample: below 64 KiB, a multiple of eight.
pub const MAX_STACK_SIZE_BYTES: u32 = 65_528;

/// Which event is sampled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum EventChoice {
    /// Hardware cycles where the machine counts them, else the CPU clock.
    #[default]
    Automatic,
    /// Hardware cycles, or fail.
    Cycles,
    /// A timer of CPU time.
    CpuClock,
}

/// How to begin following a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AttachMode {
    /// While it runs: threads are listed and opened until a pass finds no new one.
    Running,
    /// While all its threads stand still, for as long as opening takes.
    StopWhileAttaching,
    /// A suspended launch: sampling begins with its exec.
    OnExec,
}

/// What to capture, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaptureOptions {
    /// Samples per second and CPU.
    pub frequency_hz: u32,
    /// Which event.
    pub event: EventChoice,
    /// Bytes of user stack with each sample, rounded up to eight: at most [`MAX_STACK_SIZE_BYTES`]; zero for none.
    pub stack_size_bytes: u32,
    /// How many samples with full stacks a ring holds at least.
    pub ring_buffer_stacks: u32,
    /// Whether kernel frames are wanted; without permission it goes on without them.
    pub include_kernel: bool,
    /// Whether children are followed.
    pub inherit_children: bool,
    /// The CPUs to sample; `None` for all. What processes do is followed on all CPUs.
    pub cpus: Option<Vec<u32>>,
    /// Whether sampling begins at once; else with [`Capture::enable`](super::Capture::enable).
    pub start_enabled: bool,
}

impl Default for CaptureOptions {
    /// 1,000 Hz, 32 KiB of stack, 32 stacks a ring; no kernel frames, no children, all CPUs.
    fn default() -> Self {
        Self {
            frequency_hz: 1000,
            event: EventChoice::Automatic,
            stack_size_bytes: 32 << 10,
            ring_buffer_stacks: 32,
            include_kernel: false,
            inherit_children: false,
            cpus: None,
            start_enabled: true,
        }
    }
}

impl CaptureOptions {
    /// Returns them with the stack size the kernel takes, or says which value is out of range.
    pub(crate) fn checked(&self) -> Result<Self, OpenError> {
        let within = |option, value: u32, least, most| {
            if (least..=most).contains(&value) {
                return Ok(value);
            }
            Err(OpenError::OptionOutOfRange { option, value, least, most })
        };
        within("the frequency in Hz", self.frequency_hz, 1, u32::MAX)?;
        within("the stack size in bytes", self.stack_size_bytes, 0, MAX_STACK_SIZE_BYTES)?;
        within("the number of stacks a ring holds", self.ring_buffer_stacks, 1, u32::MAX)?;
        let stack_size_bytes = self.stack_size_bytes.next_multiple_of(8);
        Ok(Self { stack_size_bytes, ..self.clone() })
    }
}
