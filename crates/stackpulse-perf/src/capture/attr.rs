//! From options to the attributes of events.

use super::options::CaptureOptions;
use crate::error::OpenStep;
use crate::event::Task;
use crate::layout::{SampleLayout, field};
use crate::regs::Arch;
use perf_event_open::config::{
    CallChain, Cgroup, Clock, Cpu, ExtraRecord, Inherit, Mmap, OnExecve, Opts, Priv, Proc,
    RecordIdFormat, RegsMask, SampleFormat, SampleOn, Size, StatFormat, UseBuildId, WakeUp,
    WakeUpOn,
};
use perf_event_open::count::Counter;
use perf_event_open::event::hw::Hardware;
use perf_event_open::event::sw::Software;
use std::fs::File;
use std::io;

/// The event that is sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SampledEvent {
    /// Hardware cycles.
    Cycles,
    /// The CPU clock.
    CpuClock,
}

impl SampledEvent {
    /// The event's name, as perf spells it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Cycles => "cycles",
            Self::CpuClock => "cpu-clock",
        }
    }
}

/// When an event begins to count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    /// When it is enabled.
    ByRequest,
    /// When its task execs.
    OnExec,
}

/// Whose events are opened on a CPU.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Target<'a> {
    /// A thread's, and what it creates.
    Thread(Task),
    /// Those of all that runs on the CPU.
    Everything,
    /// Those of what the control group of this directory runs on the CPU.
    Cgroup(&'a File),
}

impl Target<'_> {
    fn on(self, cpu: u32) -> perf_event_open::config::Target {
        match self {
            Self::Thread(task) => (Proc(task.tid), Cpu(cpu)).into(),
            Self::Everything => (Proc::ALL, Cpu(cpu)).into(),
            Self::Cgroup(directory) => (Cgroup(directory), Cpu(cpu)).into(),
        }
    }

    /// What is attempted when its event on a CPU is opened.
    pub(crate) fn open_step(self, cpu: u32) -> OpenStep {
        match self {
            Self::Thread(Task { pid, tid }) => OpenStep::OpenEvent { pid, tid, cpu },
            Self::Everything | Self::Cgroup(_) => OpenStep::OpenCpu { cpu },
        }
    }

    /// The process, of which advice on a refusal may depend.
    pub(crate) fn pid(self) -> Option<u32> {
        match self {
            Self::Thread(task) => Some(task.pid),
            Self::Everything | Self::Cgroup(_) => None,
        }
    }
}

/// What all events of a recording have in common, once it is known what this kernel grants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Granted {
    pub(crate) event: SampledEvent,
    pub(crate) kernel: bool,
    /// Whether the kernel counts what it drops (`PERF_FORMAT_LOST`, since 6.0).
    pub(crate) counts_lost: bool,
}

/// Makes the events of one recording.
#[derive(Clone, Debug)]
pub(crate) struct Attributes {
    options: CaptureOptions,
    pub(crate) granted: Granted,
    /// Bytes in a sample ring at which its reader is woken.
    watermark_bytes: u32,
}

impl Attributes {
    pub(crate) fn new(options: &CaptureOptions, granted: Granted, ring_bytes: usize) -> Self {
        let watermark_bytes = u32::try_from(ring_bytes / 4).unwrap_or(u32::MAX);
        Self { options: options.clone(), granted, watermark_bytes }
    }

    /// The same for rings of another size.
    pub(crate) fn with_ring_bytes(&self, ring_bytes: usize) -> Self {
        Self::new(&self.options, self.granted, ring_bytes)
    }

    /// Whether a ring of that size holds what comes in while its reader sorts and its consumer works: then samples may
    /// stay in it meanwhile.
    pub(crate) fn outlasts_consumers(&self, ring_bytes: usize, arch: Arch) -> bool {
        let sample = self.layout(arch).largest_sample_bytes(self.options.stack_size_bytes) as u64;
        let per_second = sample.saturating_mul(u64::from(self.options.frequency_hz));
        per_second / 1000 * CONSUMER_MS <= ring_bytes as u64
    }

    /// What samples look like.
    pub(crate) fn layout(&self, arch: Arch) -> SampleLayout {
        SampleLayout::for_recording(arch, self.options.stack_size_bytes, self.granted.kernel)
    }

    /// What records of the lifecycle rings look like.
    pub(crate) fn lifecycle_layout(arch: Arch) -> SampleLayout {
        SampleLayout {
            fields: field::TID | field::TIME | field::CPU,
            user_regs_mask: 0,
            arch,
            id_all: true,
            read_format: 0,
            branch_format: 0,
        }
    }

    /// Opens the sampling event of a target on a CPU; it does not count yet.
    pub(crate) fn open_sampling(
        &self,
        arch: Arch,
        (target, cpu): (Target<'_>, u32),
        start: Start,
    ) -> io::Result<Counter> {
        let layout = self.layout(arch);
        let call_chain = CallChain {
            exclude_user: true,
            exclude_kernel: false,
            defer_user: false,
            max_stack_frames: 0,
        };
        let opts = Opts {
            exclude: Priv {
                kernel: !self.granted.kernel,
                hv: !self.granted.kernel,
                ..Priv::default()
            },
            on_execve: (start == Start::OnExec).then_some(OnExecve::Enable),
            stat_format: StatFormat {
                lost_records: self.granted.counts_lost,
                ..StatFormat::default()
            },
            sample_on: SampleOn::Freq(u64::from(self.options.frequency_hz)),
            sample_format: SampleFormat {
                code_addr: true,
                period: true,
                call_chain: layout.has(field::CALLCHAIN).then_some(call_chain),
                user_regs: layout.has(field::REGS_USER).then_some(RegsMask(layout.user_regs_mask)),
                user_stack: layout
                    .has(field::STACK_USER)
                    .then_some(Size(self.options.stack_size_bytes)),
                ..SampleFormat::default()
            },
            wake_up: WakeUp { on: WakeUpOn::Bytes(self.watermark_bytes), ..WakeUp::default() },
            ..self.common(target)
        };
        let target = target.on(cpu);
        match self.granted.event {
            SampledEvent::Cycles => Counter::new(Hardware::CpuCycle, target, opts),
            SampledEvent::CpuClock => Counter::new(Software::CpuClock, target, opts),
        }
    }

    /// Opens the event that tells of mappings, comms, forks and exits on a CPU.
    pub(crate) fn open_lifecycle(&self, target: Target<'_>, cpu: u32) -> io::Result<Counter> {
        let opts = Opts {
            exclude: Priv { kernel: true, hv: true, ..Priv::default() },
            enable: true,
            extra_record: ExtraRecord {
                task: true,
                comm: true,
                mmap: Mmap { code: true, data: false, ext: Some(UseBuildId(false)) },
                ..ExtraRecord::default()
            },
            wake_up: WakeUp { on: WakeUpOn::Bytes(LIFECYCLE_WATERMARK_BYTES), ..WakeUp::default() },
            ..self.common(target)
        };
        Counter::new(Software::Dummy, target.on(cpu), opts)
    }

    fn common(&self, target: Target<'_>) -> Opts {
        let inherit = match target {
            Target::Thread(_) if self.options.inherit_children => Some(Inherit::NewChild),
            Target::Thread(_) => Some(Inherit::NewThread),
            // A CPU's event sees all that runs there.
            Target::Everything | Target::Cgroup(_) => None,
        };
        Opts {
            inherit,
            record_id_all: true,
            record_id_format: RecordIdFormat {
                task: true,
                time: true,
                cpu: true,
                ..RecordIdFormat::default()
            },
            timer: Some(Clock::Monotonic),
            ..Opts::default()
        }
    }
}

/// How long a consumer may not come to run, in milliseconds: on a machine with more work than CPUs an ordinary thread waits that
/// long now and then, and what it has in its hands stays in the ring meanwhile.
const CONSUMER_MS: u64 = 250;

/// Lifecycle records are few; they are read with the samples, and wake the reader when many have come.
const LIFECYCLE_WATERMARK_BYTES: u32 = 16 << 10;
