//! The limits that stand in the way, and the smallest change that would help.

use crate::error::{Advice, OpenError, OpenStep};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;

/// Makes an error of the kernel's answer, with advice. `pid` is the process concerned, if it is about one.
pub(crate) fn refused(step: OpenStep, source: io::Error, pid: impl Into<Option<u32>>) -> OpenError {
    let advice = Advice(advice(&step, &source, pid.into()));
    OpenError::Refused { step, source, advice }
}

fn advice(step: &OpenStep, error: &io::Error, pid: Option<u32>) -> Option<String> {
    Some(match (step, error.raw_os_error()?) {
        (OpenStep::MapRing { .. }, libc::EPERM | libc::ENOMEM) => memory_lock(),
        (_, libc::EPERM | libc::EACCES) => permission(step, pid),
        (_, libc::EMFILE) => format!(
            "this process may open {} files (ulimit -n), and needs two for each thread and CPU: raise that limit",
            super::sys::open_files_limit().unwrap_or_default()
        ),
        (_, libc::ENFILE) => format!(
            "the system may open {} files (sysctl fs.file-max): raise that limit",
            number("/proc/sys/fs/file-max").unwrap_or_default()
        ),
        (_, libc::ENOMEM) => format!(
            "the kernel has no memory for it: {} KiB are available (MemAvailable); use fewer or smaller stacks",
            available_kib().unwrap_or_default()
        ),
        (_, libc::ENOSYS) => "this kernel has no perf events (CONFIG_PERF_EVENTS), or a seccomp filter hides them: use a \
             kernel that has, or allow perf_event_open"
            .to_owned(),
        (_, libc::EOPNOTSUPP | libc::ENOENT | libc::ENODEV) => {
            "this machine does not count that event: sample cpu-clock".to_owned()
        }
        (_, libc::E2BIG) => format!(
            "the kernel is {}, older than what is asked of it: use 5.13 or later",
            release().unwrap_or_default()
        ),
        (OpenStep::Prepare, libc::ENOSPC) => format!(
            "a user may wait on {} descriptors (sysctl fs.epoll.max_user_watches): raise that limit",
            number("/proc/sys/fs/epoll/max_user_watches").unwrap_or_default()
        ),
        (_, libc::ENOSPC) => {
            "all counters of the machine are taken: end who uses them, or sample cpu-clock".to_owned()
        }
        (_, libc::EBUSY) => {
            "another program has the counter to itself: end it, or sample cpu-clock".to_owned()
        }
        (_, libc::EINVAL) => format!(
            "the kernel is {}, which may be too old: 5.13 or later is needed",
            release().unwrap_or_default()
        ),
        _ => return None,
    })
}

fn memory_lock() -> String {
    format!(
        "an ordinary user may lock {} KiB a CPU (sysctl kernel.perf_event_mlock_kb) and beyond it {} bytes \
         (ulimit -l): raise either, or use fewer or smaller stacks",
        number("/proc/sys/kernel/perf_event_mlock_kb").unwrap_or_default(),
        limit("Max locked memory").unwrap_or_else(|| "no".to_owned()),
    )
}

/// Finds the layer that forbids sampling.
fn permission(step: &OpenStep, pid: Option<u32>) -> String {
    let owner = |path: &str| fs::metadata(path).ok().map(|metadata| metadata.uid());
    let own = owner("/proc/self");
    let theirs = pid.and_then(|pid| owner(&format!("/proc/{pid}")));
    let is_root = own == Some(0);
    let level = number("/proc/sys/kernel/perf_event_paranoid").unwrap_or(2);
    if let (Some(pid), Some(own), Some(theirs)) = (pid, own, theirs)
        && !is_root
        && own != theirs
    {
        return format!(
            "process {pid} belongs to user {theirs} and this is user {own}: record as that user or as root"
        );
    }
    // Whole CPUs take more than the processes of one's own.
    let most = if matches!(step, OpenStep::OpenCpu { .. }) { 0 } else { 2 };
    if level > most && !is_root {
        return format!(
            "kernel.perf_event_paranoid is {level}: set it to {most} or less (sysctl kernel.perf_event_paranoid={most}), \
             or grant CAP_PERFMON"
        );
    }
    if own_status("Seccomp").is_some_and(|mode| mode == "2") {
        return "a seccomp filter, such as a container's, forbids perf_event_open: allow that system call, or record \
                from outside the container"
            .to_owned();
    }
    "grant CAP_PERFMON and CAP_SYS_PTRACE, or record as root".to_owned()
}

/// Bytes that this process may lock for rings in all, as far as can be known before: what other recordings of the user lock
/// is not. `None` if there is no limit.
pub(crate) fn lockable_bytes(online_cpus: usize) -> Option<u64> {
    /// `include/uapi/linux/capability.h`
    const CAP_IPC_LOCK: u32 = 14;
    let capabilities = u64::from_str_radix(&own_status("CapEff")?, 16).ok()?;
    if capabilities & 1 << CAP_IPC_LOCK != 0
        || number("/proc/sys/kernel/perf_event_paranoid").is_some_and(|level| level < 0)
    {
        return None;
    }
    let each_kib = u64::try_from(number("/proc/sys/kernel/perf_event_mlock_kb")?).ok()?;
    // "unlimited" is no number.
    let beyond: u64 = limit("Max locked memory")?.parse().ok()?;
    Some((each_kib << 10).saturating_mul(online_cpus as u64).saturating_add(beyond))
}

/// The soft limit of that name in `/proc/self/limits`.
fn limit(name: &str) -> Option<String> {
    let limits = fs::read_to_string("/proc/self/limits").ok()?;
    let line = limits.lines().find_map(|line| line.strip_prefix(name))?;
    Some(line.split_whitespace().next()?.to_owned())
}

/// A field of `/proc/thread-self/status`.
fn own_status(name: &str) -> Option<String> {
    let status = fs::read_to_string("/proc/thread-self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    Some(line.trim().to_owned())
}

fn available_kib() -> Option<u64> {
    let memory = fs::read_to_string("/proc/meminfo").ok()?;
    let line = memory.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.split_whitespace().next()?.parse().ok()
}

fn release() -> Option<String> {
    fs::read_to_string("/proc/sys/kernel/osrelease").ok().map(|release| release.trim().to_owned())
}

fn number(path: &str) -> Option<i64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}
