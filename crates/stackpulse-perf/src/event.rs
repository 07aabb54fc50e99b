//! What the kernel told, as plain data.

use crate::sample::Sample;

/// A thread and the process (thread group) it belongs to, in the recorder's pid namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Task {
    /// The process: the tid of its leader.
    pub pid: u32,
    /// The thread.
    pub tid: u32,
}

/// Something that happened, when, and on which CPU.
#[derive(Debug)]
pub struct Event {
    /// Nanoseconds of `CLOCK_MONOTONIC`.
    pub time_ns: u64,
    /// The CPU it happened on, where that is known.
    pub cpu: Option<u32>,
    /// What happened.
    pub kind: EventKind,
}

/// What happened.
#[derive(Debug)]
#[non_exhaustive]
pub enum EventKind {
    /// A process is followed from here on: what it was when its events were opened.
    Attached(AttachedProcess),
    /// A thread was interrupted and its state copied.
    Sample(Sample),
    /// A range of memory was mapped (`PERF_RECORD_MMAP2`, or `PERF_RECORD_MMAP`).
    Mmap(Mmap),
    /// A thread's comm changed (`PERF_RECORD_COMM`).
    Comm {
        /// The thread.
        task: Task,
        /// Its new comm, without the NUL.
        comm: Box<[u8]>,
        /// Whether an exec was the reason (`PERF_RECORD_MISC_COMM_EXEC`).
        exec: bool,
    },
    /// A thread or a process was created (`PERF_RECORD_FORK`): a process if the pids differ.
    Fork {
        /// The new thread.
        child: Task,
        /// The thread that created it.
        parent: Task,
    },
    /// A thread ended (`PERF_RECORD_EXIT`). The end of a leader is not the end of its process.
    Exit {
        /// The thread that ended.
        task: Task,
    },
    /// The last thread of a process has ended, as its pidfd told.
    ProcessExit {
        /// The process.
        pid: u32,
    },
    /// The kernel dropped events before this one.
    Lost {
        /// How many.
        events: u64,
        /// Whether what was dropped may have been lifecycle events, not only samples.
        lifecycle: bool,
    },
    /// The kernel slowed sampling (`true`) or resumed its rate (`false`).
    Throttle {
        /// Whether sampling is slowed from here on.
        throttled: bool,
    },
    /// Sampling was paused (`true`) or resumed (`false`) by request.
    Pause {
        /// Whether sampling is paused from here on.
        paused: bool,
    },
}

/// A process as it was when it was attached to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AttachedProcess {
    /// The process.
    pub pid: u32,
    /// The process that created it, where known.
    pub parent_pid: Option<u32>,
    /// Its threads and their comms.
    pub threads: Vec<(u32, Box<[u8]>)>,
    /// The text of `/proc/PID/maps`; empty for a process that is about to exec.
    pub maps: Box<[u8]>,
}

/// A range of a process's memory that was mapped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mmap {
    /// Who mapped it.
    pub task: Task,
    /// First address.
    pub start_avma: u64,
    /// Length in bytes.
    pub len_bytes: u64,
    /// The offset in the file that the first address shows.
    pub file_offset: u64,
    /// Whether it may be executed.
    pub executable: bool,
    /// Which file, where the record says so.
    pub file: FileIdentity,
    /// The file's path as the process sees it, or a name such as `[vdso]` or `//anon`.
    pub path: Box<[u8]>,
}

/// What a mapping record says of its file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileIdentity {
    /// Device number, major and minor.
    pub device: (u32, u32),
    /// Inode number.
    pub inode: u64,
    /// Inode generation.
    pub inode_generation: u64,
    /// GNU build id (`PERF_RECORD_MISC_MMAP_BUILD_ID`); then the fields above are zero.
    pub build_id: Option<Box<[u8]>>,
}
