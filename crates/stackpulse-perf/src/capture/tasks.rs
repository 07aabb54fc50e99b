//! Which processes and threads there are, as `/proc` tells.

use crate::error::{OpenError, OpenStep};
use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Read};
use std::path::Path;

/// Refuses what cannot be attached to; says why.
pub(crate) fn check_target(pid: u32, may_be_self: bool) -> Result<(), OpenError> {
    if pid == std::process::id() && !may_be_self {
        return Err(OpenError::Itself);
    }
    let status = match fs::read(format!("/proc/{pid}/status")) {
        Ok(status) => status,
        Err(error) if is_gone(&error) => return Err(OpenError::NoSuchProcess { pid }),
        Err(error) => return Err(super::limits::refused(OpenStep::Inspect { pid }, error, pid)),
    };
    let status = String::from_utf8_lossy(&status);
    let value = |name: &str| {
        status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
    };
    if let Some(leader) = value("Tgid").and_then(|tgid| tgid.parse().ok())
        && leader != pid
    {
        return Err(OpenError::NotALeader { tid: pid, pid: leader });
    }
    // A leader that has ended while other threads run is a zombie too, but its process lives.
    let ended = value("State").is_some_and(|state| state.starts_with(['Z', 'X']));
    if ended && threads(pid).is_ok_and(|threads| threads.len() <= 1) {
        return Err(OpenError::Zombie { pid });
    }
    if is_kernel_thread(pid) {
        return Err(OpenError::KernelThread { pid });
    }
    Ok(())
}

/// Returns the process's threads.
pub(crate) fn threads(pid: u32) -> io::Result<Vec<u32>> {
    let entries = fs::read_dir(format!("/proc/{pid}/task"))?;
    let tids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    Ok(tids.collect())
}

/// Returns a thread's comm, empty if it has ended.
pub(crate) fn comm(pid: u32, tid: u32) -> Box<[u8]> {
    let mut comm = fs::read(format!("/proc/{pid}/task/{tid}/comm")).unwrap_or_default();
    if comm.last() == Some(&b'\n') {
        comm.pop();
    }
    comm.into()
}

/// Returns all living processes below `root`, and their parents, asking each for its children. `None` where the kernel does
/// not tell them. It is quick however much else runs, but sure to be complete only while the processes stand still: one that
/// ends meanwhile may hide others (proc_pid_children(5)).
pub(crate) fn children_below(root: u32) -> Option<Vec<(u32, Option<u32>)>> {
    let mut below: Vec<(u32, Option<u32>)> = Vec::new();
    let mut next = vec![root];
    while let Some(parent) = next.pop() {
        for tid in threads(parent).unwrap_or_default() {
            let children = match fs::read_to_string(format!("/proc/{parent}/task/{tid}/children")) {
                Ok(children) => children,
                // A thread that has ended has none; where even this thread's is missing, it is the kernel's choice.
                Err(_) if fs::exists("/proc/thread-self/children").unwrap_or(false) => continue,
                Err(_) => return None,
            };
            let pids = children.split_ascii_whitespace().filter_map(|pid| pid.parse().ok());
            let living = pids.filter(|&pid| self::parent(pid).is_some());
            let living: Vec<u32> = living.collect();
            below.extend(living.iter().map(|&pid| (pid, Some(parent))));
            next.extend(living);
        }
    }
    Some(below)
}

/// Returns all living processes below `root`, and their parents, by looking at all there are.
pub(crate) fn descendants(root: u32) -> Vec<(u32, Option<u32>)> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    let all: Vec<(u32, u32)> = pids.filter_map(|pid| Some((pid, parent(pid)?))).collect();
    let mut found = BTreeSet::from([root]);
    let mut below = Vec::new();
    loop {
        let before = below.len();
        for &(pid, parent) in &all {
            if found.contains(&parent) && found.insert(pid) {
                below.push((pid, Some(parent)));
            }
        }
        if below.len() == before {
            return below;
        }
    }
}

/// Returns a process's parent, unless the process has ended.
pub(crate) fn parent(pid: u32) -> Option<u32> {
    let stat = Stat::read(pid)?;
    (stat.field(0)? != "Z").then(|| stat.field(1)?.parse().ok()).flatten()
}

/// Whether it is a thread of the kernel's. One that is ending has no memory any more either, so that does not tell.
fn is_kernel_thread(pid: u32) -> bool {
    /// `include/linux/sched.h`; of the flags in `/proc/PID/stat` the one that never changed.
    const PF_KTHREAD: u32 = 0x0020_0000;
    let flags = Stat::read(pid).and_then(|stat| stat.field(6)?.parse::<u32>().ok());
    flags.is_some_and(|flags| flags & PF_KTHREAD != 0)
}

/// The text of `/proc/PID/stat` after the comm, which may hold anything (proc_pid_stat(5)).
struct Stat(String);

impl Stat {
    fn read(pid: u32) -> Option<Self> {
        // It is read at once, and longer than it can be: a comm of 64 bytes, and 50 numbers.
        let mut stat = [0; 2048];
        let len = fs::File::open(format!("/proc/{pid}/stat")).ok()?.read(&mut stat).ok()?;
        let stat = stat.get(..len)?;
        let after = stat.iter().rposition(|&byte| byte == b')')? + 1;
        Some(Self(std::str::from_utf8(stat.get(after..)?).ok()?.to_owned()))
    }

    /// Returns a field; the first is the state.
    fn field(&self, at: usize) -> Option<&str> {
        self.0.split_ascii_whitespace().nth(at)
    }
}

/// A field of a process's status.
fn status(pid: u32, name: &str) -> Option<String> {
    let status = fs::read(format!("/proc/{pid}/status")).ok()?;
    let status = String::from_utf8_lossy(&status);
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    Some(line.trim().to_owned())
}

/// Whether a process runs, and nobody traces it who would be told of a stop.
pub(crate) fn may_be_stopped(pid: u32) -> bool {
    let is_running =
        status(pid, "State").is_some_and(|state| !state.starts_with(['T', 't', 'Z', 'X']));
    is_running && status(pid, "TracerPid").is_some_and(|tracer| tracer == "0")
}

/// Whether every thread of a process stands still by a signal, or has ended.
pub(crate) fn is_stopped(pid: u32) -> bool {
    let is_still = |&tid: &u32| {
        let state = status(tid, "State");
        state.is_none_or(|state| state.starts_with(['T', 'Z', 'X']))
    };
    threads(pid).is_ok_and(|threads| threads.iter().all(is_still))
}

/// Whether a signal that stops waits to be delivered to a process.
pub(crate) fn has_pending_stop(pid: u32) -> bool {
    let stops = [libc::SIGSTOP, libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU];
    let stops = stops.iter().fold(0u64, |mask, signal| mask | 1 << (signal - 1));
    let pending = |name| status(pid, name).and_then(|mask| u64::from_str_radix(&mask, 16).ok());
    ["ShdPnd", "SigPnd"].into_iter().filter_map(pending).any(|mask| mask & stops != 0)
}

/// Returns the text of the process's maps.
pub(crate) fn maps(pid: u32) -> io::Result<Box<[u8]>> {
    fs::read(format!("/proc/{pid}/maps")).map(Into::into)
}

/// Returns the CPUs that are `online`, `present` or `possible`.
pub(crate) fn cpus(which: &str) -> io::Result<Vec<u32>> {
    let text = fs::read_to_string(format!("/sys/devices/system/cpu/{which}"))?;
    parse_cpus(text.trim())
        .ok_or_else(|| io::Error::other(format!("the list of {which} CPUs is malformed")))
}

/// Returns all processes, with their parents: without threads of the kernel's, and those that have ended.
pub(crate) fn all() -> Vec<(u32, Option<u32>)> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    let user = pids.filter(|&pid| !is_kernel_thread(pid));
    user.filter_map(|pid| Some((pid, Some(parent(pid)?)))).collect()
}

/// Returns the processes in a control group of version 2 and those below it, with their parents.
pub(crate) fn in_cgroup(directory: &Path) -> Vec<(u32, Option<u32>)> {
    let list = |name| fs::read_to_string(directory.join(name)).unwrap_or_default();
    let mut found: Vec<_> = list("cgroup.procs")
        .lines()
        .filter_map(|line| line.parse().ok())
        .filter_map(|pid| Some((pid, Some(parent(pid)?))))
        .collect();
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            found.extend(in_cgroup(&entry.path()));
        }
    }
    found
}

/// Reads `0-3,5`.
fn parse_cpus(text: &str) -> Option<Vec<u32>> {
    let mut cpus = Vec::new();
    for range in text.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        cpus.extend(first.parse::<u32>().ok()?..=last.parse().ok()?);
    }
    Some(cpus)
}

/// Whether an error says that a process or thread has ended.
pub(crate) fn is_gone(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ESRCH | libc::ENOENT))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_lists_are_ranges_and_numbers() {
        assert_eq!(parse_cpus("0-3,5"), Some(vec![0, 1, 2, 3, 5]));
        assert_eq!(parse_cpus("0"), Some(vec![0]));
        assert_eq!(parse_cpus(""), None);
    }

    #[test]
    fn this_process_lists_its_threads_and_parent() {
        let own = std::process::id();
        assert!(threads(own).unwrap().contains(&own));
        assert_eq!(parent(own), Some(std::os::unix::process::parent_id()));
    }
}
