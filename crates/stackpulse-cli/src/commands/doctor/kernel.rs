//! What the kernel is set to.

use super::Check;
use super::host::{is_privileged, may_trace_all};
use super::proc_file::{number, text};

/// The rate that `record` asks for when none is given.
const USUAL_RATE_HZ: i64 = 997;
/// What the recorder needs of the kernel.
const OLDEST_KERNEL: (u32, u32) = (5, 13);

pub(super) fn checks() -> Vec<Check> {
    vec![release(), paranoid(), sample_rate(), kernel_names(), ptrace_scope()]
}

fn release() -> Check {
    let release = text("/proc/sys/kernel/osrelease").unwrap_or_default();
    let release = release.trim();
    let mut numbers = release.split(['.', '-']).map(|part| part.parse::<u32>().unwrap_or_default());
    let version = (numbers.next().unwrap_or_default(), numbers.next().unwrap_or_default());
    if version >= OLDEST_KERNEL {
        return Check::good("kernel", format!("Linux {release}"));
    }
    Check::blocked("kernel", format!("Linux {release} is too old"), "use Linux 5.13 or later")
}

fn paranoid() -> Check {
    const ID: &str = "perf_event_paranoid";
    let Some(level) = number("/proc/sys/kernel/perf_event_paranoid") else {
        return Check::blocked(
            ID,
            "there is no kernel.perf_event_paranoid: this kernel has no perf events",
            "use a kernel with CONFIG_PERF_EVENTS",
        );
    };
    match level {
        _ if is_privileged() => Check::good(ID, format!("{level}, which does not bind this user")),
        3.. => Check::blocked(
            ID,
            format!("{level}: ordinary users may sample nothing"),
            "sysctl kernel.perf_event_paranoid=2, or CAP_PERFMON",
        ),
        2 => Check::limited(
            ID,
            "2: own programs, without kernel frames",
            "for kernel frames: sysctl kernel.perf_event_paranoid=1",
        ),
        level => Check::good(ID, format!("{level}: own programs, with kernel frames")),
    }
}

fn sample_rate() -> Check {
    const ID: &str = "max_sample_rate";
    let rate = number("/proc/sys/kernel/perf_event_max_sample_rate").unwrap_or_default();
    if rate >= USUAL_RATE_HZ {
        return Check::good(ID, format!("up to {rate} samples a second"));
    }
    Check::limited(
        ID,
        format!(
            "at most {rate} samples a second: the kernel lowers this when sampling took too long"
        ),
        format!("sysctl kernel.perf_event_max_sample_rate=4000, or record with -F {}", rate.max(1)),
    )
}

/// Are the kernel's names to be had? Their addresses are zero for those who may not see them.
fn kernel_names() -> Check {
    const ID: &str = "kernel names";
    let restrict = number("/proc/sys/kernel/kptr_restrict").unwrap_or_default();
    let Some(symbols) = text("/proc/kallsyms").filter(|symbols| !symbols.trim().is_empty()) else {
        return Check::limited(
            ID,
            "there is no /proc/kallsyms: kernel frames stay without names",
            "use a kernel with CONFIG_KALLSYMS, and a mounted /proc",
        );
    };
    let is_hidden =
        symbols.lines().take(100).all(|line| line.trim_start_matches('0').starts_with(' '));
    if !is_hidden {
        return Check::good(ID, format!("readable (kernel.kptr_restrict {restrict})"));
    }
    let remedy = if restrict >= 2 {
        "sysctl kernel.kptr_restrict=0 (1 for users with CAP_SYSLOG)"
    } else {
        "record as root or with CAP_SYSLOG, or sysctl kernel.kptr_restrict=0 with kernel.perf_event_paranoid=1"
    };
    Check::limited(ID, format!("hidden from this user (kernel.kptr_restrict {restrict})"), remedy)
}

fn ptrace_scope() -> Check {
    const ID: &str = "ptrace";
    match number("/proc/sys/kernel/yama/ptrace_scope") {
        None | Some(0) => Check::good(ID, "own processes can be paused while attaching"),
        Some(scope @ 1..=2) if may_trace_all() => Check::good(
            ID,
            format!("kernel.yama.ptrace_scope {scope}, which does not bind this user"),
        ),
        Some(scope) => Check::limited(
            ID,
            format!(
                "kernel.yama.ptrace_scope {scope}: running processes are attached to without a pause"
            ),
            "sysctl kernel.yama.ptrace_scope=0, or CAP_SYS_PTRACE; without it a library loaded in that moment may stay unknown",
        ),
    }
}
