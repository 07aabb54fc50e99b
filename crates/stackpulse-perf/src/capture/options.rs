//! What to capture.

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
    /// Bytes of user stack with each sample: a multiple of eight, below 64 KiB; zero for none.
    pub stack_size_bytes: u32,
    /// How many samples with full stacks a ring holds at least.
    pub ring_buffer_stacks: u32,
    /// Whether kernel frames are wanted; without permission it goes on without them.
    pub include_kernel: bool,
    /// Whether children are followed.
    pub inherit_children: bool,
    /// Whether sampling begins at once; else with [`Capture::enable`](super::Capture::enable).
    pub start_enabled: bool,
}
