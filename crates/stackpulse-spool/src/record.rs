//! The vocabulary of a spool: everything that a recording can say.
//!
//! A spool is a sequence of [`Record`]s. Some records *define* a thing (an image, a process, a
//! thread, a frame, a run of stack nodes); the thing's id is not written but implied: ids are dense and
//! count up in order of definition, apart for each kind, from zero within an *epoch* (stack nodes from
//! one: node zero is the empty stack). [`Record::Epoch`] ends all ids.
//!
//! Times are nanoseconds of `CLOCK_MONOTONIC`. Paths, comms and symbol names are bytes.

/// Names an image (a file or another source of code) defined earlier in the epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ImageId(pub u32);

/// Names a process generation defined earlier in the epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProcessId(pub u32);

/// Names a thread defined earlier in the epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ThreadId(pub u32);

/// Names a frame defined earlier in the epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FrameId(pub u32);

/// Names a stack node: a frame and the node of its callers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StackId(pub u32);

impl StackId {
    /// The empty stack: the parent of every outermost frame.
    pub const EMPTY: Self = Self(0);
}

/// One statement of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record<'a> {
    /// Starts ids afresh: everything used later is defined again later.
    Epoch,
    /// How the recording was made.
    Settings(Settings<'a>),
    /// The machine it was made on.
    Host(Host<'a>),
    /// Defines the next [`ImageId`].
    Image(Image<'a>),
    /// Defines the next [`ProcessId`].
    Process(Process),
    /// Defines the next [`ThreadId`].
    Thread(Thread),
    /// Defines the next [`FrameId`].
    Frame(Frame),
    /// Defines one [`StackId`] for each of its frames.
    Stack(StackRun<'a>),
    /// A thread was seen running.
    Sample(Sample),
    /// A process got this comm (`/proc/PID/comm`).
    Comm {
        /// Which process.
        process: ProcessId,
        /// When.
        time_ns: u64,
        /// The comm.
        comm: &'a [u8],
    },
    /// A process's arguments, each ended by a NUL byte, as in `/proc/PID/cmdline`.
    CommandLine {
        /// Which process.
        process: ProcessId,
        /// When.
        time_ns: u64,
        /// The arguments.
        arguments: &'a [u8],
    },
    /// A thread got this name.
    ThreadName {
        /// Which thread.
        thread: ThreadId,
        /// When.
        time_ns: u64,
        /// The name.
        name: &'a [u8],
    },
    /// `child` started as a copy of `parent`, sharing all its mappings until it execs.
    Fork {
        /// The process that forked.
        parent: ProcessId,
        /// Its copy.
        child: ProcessId,
        /// When.
        time_ns: u64,
    },
    /// The process replaced its program: all its earlier mappings ended.
    Exec {
        /// Which process.
        process: ProcessId,
        /// When.
        time_ns: u64,
    },
    /// The process's last thread has ended.
    ProcessExit {
        /// Which process.
        process: ProcessId,
        /// When.
        time_ns: u64,
    },
    /// The thread has ended.
    ThreadExit {
        /// Which thread.
        thread: ThreadId,
        /// When.
        time_ns: u64,
    },
    /// A range of a process's addresses shows an image.
    Mapping(Mapping),
    /// A range of a process's addresses shows nothing any more.
    Unmapping {
        /// Which process.
        process: ProcessId,
        /// When.
        time_ns: u64,
        /// First address.
        start_avma: u64,
        /// First address after the range.
        end_avma: u64,
    },
    /// The kernel dropped events here, on this CPU.
    Lost {
        /// When.
        time_ns: u64,
        /// The CPU, where known.
        cpu: Option<u32>,
        /// How many.
        events: u64,
    },
    /// The kernel slowed (`true`) or resumed (`false`) sampling on this CPU.
    Throttle {
        /// When.
        time_ns: u64,
        /// The CPU, where known.
        cpu: Option<u32>,
        /// Whether sampling is slowed from here on.
        throttled: bool,
    },
    /// Lifecycle events may be missing in this span; state was read anew at its end.
    Gap {
        /// From when.
        start_ns: u64,
        /// Until when.
        end_ns: u64,
    },
    /// Sampling was paused (`true`) or resumed (`false`) by request.
    Pause {
        /// When.
        time_ns: u64,
        /// Whether sampling is paused from here on.
        paused: bool,
    },
    /// Code made at run time: a name for `[address, address + size)` of `image`.
    GeneratedName {
        /// In which image.
        image: ImageId,
        /// When.
        time_ns: u64,
        /// First address, in the sense of the image's kind.
        address: u64,
        /// Length in bytes.
        size: u64,
        /// The name.
        name: &'a [u8],
    },
    /// A symbol captured while recording, of the vDSO or the kernel: `[address, address + size)`.
    /// Size zero: not known.
    Symbol {
        /// In which image.
        image: ImageId,
        /// First address, in the sense of the image's kind.
        address: u64,
        /// Length in bytes.
        size: u64,
        /// The name.
        name: &'a [u8],
    },
    /// A remark on a process, such as the language runtime in it: `key` and `value` are for readers
    /// that know the key.
    Annotation {
        /// Which process.
        process: ProcessId,
        /// When.
        time_ns: u64,
        /// What the remark is about.
        key: &'a [u8],
        /// The remark.
        value: &'a [u8],
    },
    /// A total of the recording, such as the number of events lost.
    Counter {
        /// What is counted.
        name: &'a [u8],
        /// How many.
        value: u64,
    },
    /// The recording ended here: its last record.
    End {
        /// When.
        time_ns: u64,
    },
}

/// How samples were taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings<'a> {
    /// The event sampled, such as `cpu-clock` or `cycles`.
    pub event: &'a [u8],
    /// Samples per second and CPU asked for.
    pub rate_hz: u32,
    /// Bytes of user stack asked for with each sample.
    pub stack_size_bytes: u32,
    /// Whether kernel frames were recorded.
    pub kernel_frames: bool,
    /// Whether children of the process were followed.
    pub follows_children: bool,
    /// The recording's first moment, `CLOCK_MONOTONIC`.
    pub start_monotonic_ns: u64,
    /// The same moment as nanoseconds since 1970-01-01 UTC.
    pub start_realtime_ns: u64,
}

/// Facts of the machine, as far as they could be read (empty where not).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Host<'a> {
    /// The machine's architecture as `uname -m` names it.
    pub architecture: &'a [u8],
    /// `uname -r`.
    pub kernel_release: &'a [u8],
    /// `/proc/sys/kernel/random/boot_id`, as text.
    pub boot_id: &'a [u8],
    /// The kernel's build id, from `/sys/kernel/notes`.
    pub kernel_build_id: &'a [u8],
    /// The processor's model name.
    pub cpu_model: &'a [u8],
    /// Online CPUs when the recording started.
    pub online_cpus: u32,
}

/// Where code comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Image<'a> {
    /// What sort of thing it is, and how addresses in it are to be read.
    pub kind: ImageKind,
    /// The path as the process sees it, without any `(deleted)`; empty where there is none.
    pub path: &'a [u8],
    /// The GNU build id, empty where there is none.
    pub build_id: &'a [u8],
    /// Device number, major and minor; zero where not known.
    pub device: (u32, u32),
    /// Inode number; zero where not known.
    pub inode: u64,
    /// File size in bytes; zero where not known.
    pub file_size: u64,
    /// Last modification, nanoseconds since 1970-01-01 UTC; zero where not known.
    pub modified_ns: u64,
}

/// What an image is, and what an address in one of its frames means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum ImageKind {
    /// An ELF file whose program headers were read: addresses are SVMAs, as the file states them.
    Elf,
    /// A mapped file that could not be read as ELF: addresses are file offsets.
    File,
    /// The vDSO: addresses are SVMAs.
    Vdso,
    /// The kernel and its modules: addresses are those of the running kernel.
    Kernel,
    /// Executable memory of one process that belongs to no file: addresses are AVMAs.
    Generated,
    /// Addresses outside everything known of one process: addresses are AVMAs.
    Unknown,
}

/// A process from its start or last reuse of the pid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process {
    /// The pid in the recorder's namespace.
    pub pid: u32,
    /// How many earlier processes of this recording had the same pid.
    pub generation: u32,
    /// The process that created it, where known.
    pub parent: Option<ProcessId>,
    /// When it was first seen: fork time, or attach time.
    pub time_ns: u64,
}

/// A thread of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thread {
    /// The process it belongs to.
    pub process: ProcessId,
    /// The tid in the recorder's namespace.
    pub tid: u32,
    /// When it was first seen.
    pub time_ns: u64,
}

/// One place in a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Frame {
    /// Code: the address to look up, in the sense of the image's kind. For a caller it is the
    /// return address minus one; for the innermost frame, and one interrupted by a signal, it is exact.
    Code {
        /// In which image.
        image: ImageId,
        /// The address to look up.
        address: u64,
    },
    /// In the place of what is missing: the walk ended here without reaching a root.
    Truncated(Truncation),
    /// All frames outside this one were joined from an earlier stack of the thread.
    Joined,
}

/// Why a walk ended before the root of the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Truncation {
    /// The next return address lies outside the captured stack bytes.
    OutsideCapture,
    /// No unwind information covers the address, and no fallback was plausible.
    NoUnwindInfo,
    /// The unwind information gave a frame address that cannot be.
    BadCfa,
    /// The return address was null although the frame was not marked as the last.
    NullReturnAddress,
    /// The walk passed the depth limit.
    DepthLimit,
    /// The walk came back to where it had been.
    Loop,
    /// The sample carried no user registers.
    NoRegisters,
}

/// Several stack nodes, each the caller of the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StackRun<'a> {
    /// The node of the first frame's callers.
    pub parent: StackId,
    /// Outermost first: frame `i + 1` was called by frame `i`. Never empty.
    pub frames: &'a [FrameId],
}

/// A moment in a thread's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// When.
    pub time_ns: u64,
    /// Who.
    pub thread: ThreadId,
    /// On which CPU.
    pub cpu: u32,
    /// How much it stands for, in the event's unit (nanoseconds of CPU time for `cpu-clock`).
    pub weight: u64,
    /// The innermost frame.
    pub leaf: FrameId,
    /// The node of its callers.
    pub callers: StackId,
}

/// A range of addresses of a process that shows part of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// Whose addresses.
    pub process: ProcessId,
    /// Since when.
    pub time_ns: u64,
    /// First address.
    pub start_avma: u64,
    /// First address after the range; above `start_avma`.
    pub end_avma: u64,
    /// The offset in the file that `start_avma` shows.
    pub file_offset: u64,
    /// What is shown.
    pub image: ImageId,
}
