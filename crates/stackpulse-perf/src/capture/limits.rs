//! The limits that stand in the way, and the smallest change that would help.

use crate::error::{Advice, OpenError, OpenStep};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;

/// Makes an error of the kernel's answer, with advice.
pub(crate) fn refused(step: OpenStep, source: io::Error, pid: u32) -> OpenError {
    let advice = Advice(advice(&step, &source, pid));
    OpenError::Refused { step, source, advice }
}

fn advice(step: &OpenStep, error: &io::Error, pid: u32) -> Option<String> {
    match (step, error.raw_os_error()?) {
        (OpenStep::MapRing { .. }, libc::EPERM | libc::ENOMEM) => {
            let limit = number("/proc/sys/kernel/perf_event_mlock_kb").unwrap_or_default();
            Some(format!(
                "an ordinary user may lock {limit} KiB a CPU (kernel.perf_event_mlock_kb) and RLIMIT_MEMLOCK \
                 beyond it: raise either, or use fewer or smaller stacks"
            ))
        }
        (_, libc::EPERM | libc::EACCES) => permission(pid),
        (_, libc::EMFILE) => Some("raise the limit of open files (ulimit -n)".to_owned()),
        (_, libc::ENFILE) => {
            Some("the system's limit of open files (fs.file-max) is reached".to_owned())
        }
        (_, libc::ENOSYS) => Some(
            "this kernel has no perf events (CONFIG_PERF_EVENTS), or a seccomp filter hides them"
                .to_owned(),
        ),
        (_, libc::EOPNOTSUPP | libc::ENOENT | libc::ENODEV) => {
            Some("this machine does not count that event; sample cpu-clock".to_owned())
        }
        (_, libc::E2BIG) => Some("the kernel is older than what this asks of it".to_owned()),
        (OpenStep::Prepare, libc::ENOSPC) => {
            Some("raise the limit of descriptors waited on (fs.epoll.max_user_watches)".to_owned())
        }
        (_, libc::ENOSPC) => Some(
            "all breakpoints or counters of the machine are taken; end who uses them".to_owned(),
        ),
        (_, libc::EBUSY) => Some("another program uses the counter alone; end it".to_owned()),
        (_, libc::EINVAL) => Some("the kernel may be too old (5.13 or later is needed)".to_owned()),
        _ => None,
    }
}

/// Finds the layer that forbids sampling this process.
fn permission(pid: u32) -> Option<String> {
    let owner = |path: String| fs::metadata(path).ok().map(|metadata| metadata.uid());
    let own = owner("/proc/self".to_owned());
    let theirs = owner(format!("/proc/{pid}"));
    let paranoid = number("/proc/sys/kernel/perf_event_paranoid");
    let privileged = own == Some(0);
    if !privileged && own.is_some() && theirs.is_some() && own != theirs {
        return Some(format!(
            "process {pid} belongs to another user: record as that user or as root"
        ));
    }
    match paranoid {
        Some(level) if level > 2 && !privileged => Some(format!(
            "kernel.perf_event_paranoid is {level}: set it to 2 or less (sysctl kernel.perf_event_paranoid=2), or \
             grant CAP_PERFMON"
        )),
        _ if seccomp_filtered() => Some(
            "a seccomp filter, such as a container's, forbids perf_event_open: allow that system call, or record \
             from outside the container"
                .to_owned(),
        ),
        _ => Some("grant CAP_PERFMON and CAP_SYS_PTRACE, or record as root".to_owned()),
    }
}

fn seccomp_filtered() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    status.lines().any(|line| line.strip_prefix("Seccomp:").is_some_and(|mode| mode.trim() == "2"))
}

fn number(path: &str) -> Option<i64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}
