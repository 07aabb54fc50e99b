//! What this process may do: it tries to record itself, and looks for who forbids it.

use super::proc_file::{has_capability, limit, number, status};
use super::{Check, State};
use crate::render::bytes;
use stackpulse_record::{AttachMode, Recorder, RecorderOptions, SampledEvent, Settings};
use std::fs;
use std::io;

const CAP_IPC_LOCK: u32 = 14;
const CAP_SYS_PTRACE: u32 = 19;
const CAP_SYS_ADMIN: u32 = 21;
const CAP_SYSLOG: u32 = 34;
const CAP_PERFMON: u32 = 38;

const CAPABILITIES: [(u32, &str); 5] = [
    (CAP_PERFMON, "CAP_PERFMON"),
    (CAP_SYS_ADMIN, "CAP_SYS_ADMIN"),
    (CAP_SYS_PTRACE, "CAP_SYS_PTRACE"),
    (CAP_SYSLOG, "CAP_SYSLOG"),
    (CAP_IPC_LOCK, "CAP_IPC_LOCK"),
];

/// The initial namespaces have fixed inode numbers (linux/proc_ns.h).
const INITIAL_NAMESPACES: [(&str, &str); 2] =
    [("pid", "pid:[4026531836]"), ("user", "user:[4026531837]")];

/// Files below this number leave no room for a few threads on a few CPUs.
const FEW_FILES: u64 = 1024;

pub(super) fn checks() -> Vec<Check> {
    let tried = try_recording(std::process::id());
    let mut checks = vec![recording(&tried)];
    checks.extend(seccomp(tried.is_ok()));
    checks.push(capabilities());
    checks.push(counters(tried.as_ref().ok()));
    checks.push(rings(tried.as_ref().ok()));
    checks.push(files());
    checks.push(namespaces());
    checks
}

/// May this process sample at all, or see all that is sampled?
pub(super) fn is_privileged() -> bool {
    has_capability(CAP_PERFMON) || has_capability(CAP_SYS_ADMIN)
}

pub(super) fn may_trace_all() -> bool {
    has_capability(CAP_SYS_PTRACE)
}

/// Opens everything a recording opens, for a moment, into nothing. The target is not paused, and no sample is taken.
pub(super) fn try_recording(pid: u32) -> Result<Settings, String> {
    let mut options = RecorderOptions::default();
    options.include_kernel = true;
    options.start_enabled = false;
    let recorder = Recorder::attach_with_writer(pid, io::sink(), AttachMode::Running, &options)
        .map_err(|error| error.to_string())?;
    let settings = recorder.settings();
    recorder.finish().map_err(|error| error.to_string())?;
    Ok(settings)
}

fn recording(tried: &Result<Settings, String>) -> Check {
    match tried {
        Ok(settings) if settings.kernel_frames => Check::good(
            "recording",
            format!(
                "works, with kernel frames ({} on {} CPUs)",
                settings.event.name(),
                settings.cpus
            ),
        ),
        Ok(settings) => Check::limited(
            "recording",
            format!(
                "works, without kernel frames ({} on {} CPUs)",
                settings.event.name(),
                settings.cpus
            ),
            "for kernel frames: sysctl kernel.perf_event_paranoid=1, or CAP_PERFMON",
        ),
        Err(error) => {
            // The recorder's own advice comes after the cause.
            Check::blocked("recording", error.clone(), "see the other lines marked NO or some")
        }
    }
}

/// A filter that answers for the kernel: nothing that is set in the kernel helps then.
fn seccomp(works: bool) -> Option<Check> {
    let is_filtered = status("self", "Seccomp").is_some_and(|mode| mode == "2");
    match (is_filtered, works) {
        (false, _) => None,
        (true, true) => {
            Some(Check::good("seccomp", "a filter is set, and lets perf_event_open through"))
        }
        (true, false) => Some(Check::blocked(
            "seccomp",
            "a seccomp filter is set, as containers and services do; it may refuse perf_event_open",
            "allow perf_event_open: docker run --cap-add PERFMON (or --security-opt seccomp=PROFILE), systemd SystemCallFilter=perf_event_open",
        )),
    }
}

fn capabilities() -> Check {
    let held: Vec<&str> = CAPABILITIES
        .iter()
        .filter(|&&(number, _)| has_capability(number))
        .map(|&(_, name)| name)
        .collect();
    if is_privileged() {
        return Check::good("capabilities", held.join(", "));
    }
    let found = if held.is_empty() { "none of use here".to_owned() } else { held.join(", ") };
    Check {
        id: "capabilities",
        state: State::Good,
        found: format!("{found}: own programs only, within kernel.perf_event_paranoid"),
        remedy: Some(
            "for other users' programs: run as root, or setcap cap_perfmon,cap_sys_ptrace,cap_syslog+ep on this program"
                .to_owned(),
        ),
    }
}

fn counters(settings: Option<&Settings>) -> Check {
    let is_there = fs::read_dir("/sys/bus/event_source/devices").is_ok_and(|devices| {
        devices.flatten().any(|device| {
            let name = device.file_name();
            let name = name.to_string_lossy();
            name == "cpu" || name.starts_with("cpu_") || name.contains("_pmu")
        })
    });
    let counts = settings.is_none_or(|settings| settings.event == SampledEvent::Cycles);
    if is_there && counts {
        return Check::good("counters", "the processor counts cycles");
    }
    Check::limited(
        "counters",
        "the processor's counters are not usable here, as in most virtual machines; a timer is used (cpu-clock)",
        "none is needed; for cycles use a machine, or a virtual one, with a PMU",
    )
}

fn rings(settings: Option<&Settings>) -> Check {
    let kilobytes = number("/proc/sys/kernel/perf_event_mlock_kb").unwrap_or_default();
    let locked = limit("Max locked memory").map_or(Some(0), |(soft, _)| soft);
    let lockable = locked.map_or_else(|| "any amount".to_owned(), bytes);
    let limits = format!("kernel.perf_event_mlock_kb {kilobytes}, RLIMIT_MEMLOCK {lockable}");
    match settings {
        Some(settings) if settings.rings_reduced => Check::limited(
            "memory",
            format!(
                "rings of {} a CPU, less than wanted ({limits})",
                bytes(settings.ring_bytes as u64)
            ),
            "ulimit -l unlimited, or sysctl kernel.perf_event_mlock_kb=4096; else fast recordings lose samples sooner",
        ),
        Some(settings) => Check::good(
            "memory",
            format!("rings of {} a CPU fit ({limits})", bytes(settings.ring_bytes as u64)),
        ),
        None => Check::good("memory", limits),
    }
}

fn files() -> Check {
    let (soft, hard) = limit("Max open files").unwrap_or((None, None));
    match hard {
        Some(hard) if hard < FEW_FILES => Check::limited(
            "files",
            format!(
                "at most {hard} open files (RLIMIT_NOFILE); two are needed for each thread and CPU"
            ),
            format!("ulimit -Hn {FEW_FILES} or more, by a process that may raise it"),
        ),
        _ => {
            let text = |limit: Option<u64>| {
                limit.map_or_else(|| "any number".to_owned(), |n| n.to_string())
            };
            Check::good(
                "files",
                format!("{} open files, raised to {} where needed", text(soft), text(hard)),
            )
        }
    }
}

fn namespaces() -> Check {
    let inner: Vec<&str> = INITIAL_NAMESPACES
        .iter()
        .filter(|(name, initial)| {
            fs::read_link(format!("/proc/self/ns/{name}"))
                .is_ok_and(|link| link.as_os_str() != *initial)
        })
        .map(|&(name, _)| name)
        .collect();
    let marks = [("/.dockerenv", "docker"), ("/run/.containerenv", "podman")];
    let container =
        marks.iter().find(|(path, _)| fs::metadata(path).is_ok()).map(|&(_, name)| name);
    if inner.is_empty() && container.is_none() {
        return Check::good("container", "none: the machine's own namespaces");
    }
    let what = container.map_or_else(String::new, |name| format!("{name}, "));
    Check::limited(
        "container",
        format!(
            "{what}namespaces of its own: {}",
            if inner.is_empty() { "others than pid and user".to_owned() } else { inner.join(", ") }
        ),
        "only processes of this container are seen; record from outside, as root, to see the rest",
    )
}
