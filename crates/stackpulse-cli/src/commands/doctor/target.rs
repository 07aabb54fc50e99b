//! What stands in the way of recording one process.

use super::Check;
use super::host::try_recording;
use super::proc_file::{status, text};
use std::fs;
use std::os::unix::fs::MetadataExt;

pub(super) fn checks(pid: u32) -> Vec<Check> {
    let name = pid.to_string();
    let Some(comm) = status(&name, "Name") else {
        return vec![Check::blocked(
            "process",
            format!("there is no process {pid}"),
            "check its number (pgrep -l NAME)",
        )];
    };
    let mut checks = vec![process(pid, &comm), owner(pid)];
    checks.extend(traced(pid));
    checks.extend(namespace(pid));
    checks.push(match try_recording(pid) {
        Ok(_) => Check::good("attach", "its threads can be sampled"),
        Err(error) => Check::blocked("attach", error, "see the lines above"),
    });
    checks.push(maps(pid));
    checks
}

fn process(pid: u32, comm: &str) -> Check {
    let name = pid.to_string();
    let leader = status(&name, "Tgid").and_then(|leader| leader.parse::<u32>().ok());
    if let Some(leader) = leader.filter(|&leader| leader != pid) {
        return Check::blocked(
            "process",
            format!("{pid} is a thread of process {leader}"),
            format!("use -p {leader}, and --tid {pid} in reports"),
        );
    }
    let state = status(&name, "State").unwrap_or_default();
    if state.starts_with(['Z', 'X']) {
        return Check::blocked(
            "process",
            format!("{comm} has ended (a zombie)"),
            "record it while it runs",
        );
    }
    let threads = status(&name, "Threads").unwrap_or_default();
    Check::good("process", format!("{comm}, {threads} threads, {state}"))
}

fn owner(pid: u32) -> Check {
    let user = |pid: &str| {
        status(pid, "Uid").and_then(|ids| ids.split_whitespace().next().map(str::to_owned))
    };
    let (own, theirs) =
        (user("self").unwrap_or_default(), user(&pid.to_string()).unwrap_or_default());
    // A process that may not be looked into (setuid, or by PR_SET_DUMPABLE) shows root as owner of its files.
    let files_owner =
        fs::metadata(format!("/proc/{pid}")).map(|metadata| metadata.uid().to_string());
    let is_dumpable = files_owner.is_ok_and(|files| files == theirs);
    if own == "0" {
        let found = if is_dumpable {
            format!("user {theirs}")
        } else {
            format!("user {theirs}, not dumpable; root sees it all the same")
        };
        return Check::good("owner", found);
    }
    if own != theirs {
        return Check::blocked(
            "owner",
            format!("it belongs to user {theirs}, and this is user {own}"),
            format!("record as that user or as root: sudo stackpulse record -p {pid}"),
        );
    }
    if is_dumpable {
        return Check::good("owner", "this user, dumpable");
    }
    Check::blocked(
        "owner",
        "it is not dumpable (setuid, file capabilities, or PR_SET_DUMPABLE): its memory map is hidden",
        format!("record as root: sudo stackpulse record -p {pid}"),
    )
}

fn traced(pid: u32) -> Option<Check> {
    let tracer = status(&pid.to_string(), "TracerPid").filter(|tracer| tracer != "0")?;
    let comm = status(&tracer, "Name").unwrap_or_default();
    Some(Check::limited(
        "tracer",
        format!("process {tracer} ({comm}) traces it, so it cannot be paused while attaching"),
        "none is needed: it is attached to while it runs; or end the tracer",
    ))
}

fn namespace(pid: u32) -> Option<Check> {
    let link = |pid: &str, name: &str| fs::read_link(format!("/proc/{pid}/ns/{name}")).ok();
    let differs = |name: &str| {
        let (own, theirs) = (link("self", name), link(&pid.to_string(), name));
        theirs.is_some() && own != theirs
    };
    let names: Vec<&str> =
        ["pid", "mnt", "user"].into_iter().filter(|name| differs(name)).collect();
    if names.is_empty() {
        return None;
    }
    let inner = status(&pid.to_string(), "NSpid").unwrap_or_default();
    let inner = inner.split_whitespace().last().unwrap_or_default().to_owned();
    Some(Check::good(
        "namespaces",
        format!(
            "in a container ({} of its own; pid {inner} there): its files are read through /proc/{pid}/root",
            names.join(", ")
        ),
    ))
}

fn maps(pid: u32) -> Check {
    match text(&format!("/proc/{pid}/maps")) {
        Some(maps) if !maps.is_empty() => Check::good("maps", "its modules can be read"),
        Some(_) => Check::blocked(
            "maps",
            "it has no memory of its own: a kernel thread",
            "the kernel's threads cannot be recorded alone",
        ),
        None => Check::blocked(
            "maps",
            "its memory map cannot be read, so no stack could be unwound",
            format!("record as root: sudo stackpulse record -p {pid}"),
        ),
    }
}
