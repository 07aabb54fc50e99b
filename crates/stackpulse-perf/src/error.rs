//! Why capturing could not begin, or go on.

use std::{fmt, io};
use thiserror::Error;

/// Why a process cannot be captured.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OpenError {
    /// There is no such process, or it ended before it could be attached to.
    #[error("there is no process {pid}")]
    NoSuchProcess {
        /// The pid asked for.
        pid: u32,
    },
    /// The id is that of a thread, not of a process.
    #[error("{tid} is a thread of process {pid}; attach to {pid}")]
    NotALeader {
        /// The id asked for.
        tid: u32,
        /// The process it belongs to.
        pid: u32,
    },
    /// The process has ended and waits to be reaped by its parent.
    #[error("process {pid} has already ended (it is a zombie)")]
    Zombie {
        /// The pid asked for.
        pid: u32,
    },
    /// The process is a kernel thread, which has no user code.
    #[error("process {pid} is a kernel thread; it has no user code to sample")]
    KernelThread {
        /// The pid asked for.
        pid: u32,
    },
    /// The process is not followed.
    #[error("process {pid} is not being followed")]
    NotFollowed {
        /// The pid asked for.
        pid: u32,
    },
    /// An option's value is out of its range.
    #[error("{option} is {value}, which is not within {least} to {most}")]
    OptionOutOfRange {
        /// The option, with its unit.
        option: &'static str,
        /// Its value.
        value: u32,
        /// The least value there is.
        least: u32,
        /// The greatest.
        most: u32,
    },
    /// A CPU of the list is not there, or cannot be sampled because it is offline.
    #[error("there is no CPU {cpu} online")]
    NoSuchCpu {
        /// The CPU asked for.
        cpu: u32,
    },
    /// The capture follows everything, or a control group: what that is does not change.
    #[error("this capture follows {followed}; capture process {pid} with one of its own")]
    FixedScope {
        /// The process asked for.
        pid: u32,
        /// What is followed.
        followed: &'static str,
    },
    /// A process cannot stop itself.
    #[error("a process can attach to itself only while it runs")]
    Itself,
    /// This architecture has no register table here.
    #[error("sampling stacks is not supported on this architecture")]
    UnsupportedArchitecture,
    /// Rings of this size are refused.
    #[error(
        "{wanted_bytes} bytes of ring memory are above the limit of {limit_bytes}; lower the stack size or the number of stacks"
    )]
    RingTooLarge {
        /// What the options amount to.
        wanted_bytes: u64,
        /// The limit.
        limit_bytes: u64,
    },
    /// The kernel refused a step.
    #[error("{step}: {source}{advice}")]
    Refused {
        /// What was attempted, on what.
        step: OpenStep,
        /// The kernel's answer.
        source: io::Error,
        /// What would help; empty where that is not known.
        advice: Advice,
    },
}

/// What was attempted when the kernel refused.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OpenStep {
    /// Opening an event of a thread on a CPU.
    OpenEvent {
        /// The process.
        pid: u32,
        /// The thread.
        tid: u32,
        /// The CPU.
        cpu: u32,
    },
    /// Opening an event of everything that runs on a CPU, or of what a control group runs there.
    OpenCpu {
        /// The CPU.
        cpu: u32,
    },
    /// Opening a control group's directory.
    OpenCgroup,
    /// Mapping the ring of a CPU.
    MapRing {
        /// The CPU.
        cpu: u32,
        /// Its size.
        bytes: u64,
    },
    /// Sending an event's records into the ring of its CPU.
    Redirect {
        /// The process.
        pid: u32,
        /// The thread.
        tid: u32,
        /// The CPU.
        cpu: u32,
    },
    /// Letting events count.
    Enable,
    /// Reading facts of a process.
    Inspect {
        /// The process.
        pid: u32,
    },
    /// Making what the capture itself needs: descriptors to wait on.
    Prepare,
}

impl fmt::Display for OpenStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OpenEvent { pid, tid, cpu } => {
                write!(f, "open a perf event for thread {tid} of process {pid} on CPU {cpu}")
            }
            Self::OpenCpu { cpu } => write!(f, "open a perf event for all of CPU {cpu}"),
            Self::OpenCgroup => f.write_str("open the control group"),
            Self::MapRing { cpu, bytes } => {
                write!(f, "map {bytes} bytes of ring memory for CPU {cpu}")
            }
            Self::Redirect { pid, tid, cpu } => {
                write!(f, "send events of thread {tid} of process {pid} into the ring of CPU {cpu}")
            }
            Self::Enable => f.write_str("enable sampling"),
            Self::Inspect { pid } => write!(f, "inspect process {pid}"),
            Self::Prepare => f.write_str("prepare to wait for events"),
        }
    }
}

/// What would make a refused step succeed: shown after the error.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Advice(pub(crate) Option<String>);

impl fmt::Display for Advice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(advice) => write!(f, "; {advice}"),
            None => Ok(()),
        }
    }
}

/// Why capturing cannot go on.
#[derive(Debug, Error)]
#[error("{attempt}: {source}")]
pub struct CaptureError {
    /// What was attempted.
    pub(crate) attempt: &'static str,
    /// The kernel's answer.
    pub(crate) source: io::Error,
}
