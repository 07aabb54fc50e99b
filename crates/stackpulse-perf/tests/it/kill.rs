//! A recorder that is killed while it attaches leaves its target running.

use crate::attach::options;
use crate::harness::{
    Talker, alone, await_that, has_tools, is_part, part, runs, states, this_program,
};
use crate::target::Target;
use rustix::process::Signal;
use stackpulse_perf::capture::{AttachMode, Capture, CaptureOptions};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// The part that attaches: says when it can be traced, waits to be told the pid, and says when it is done.
pub(crate) fn attach_when_told() {
    eprintln!("ready");
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).unwrap();
    let pid = line.trim().parse().unwrap();
    // Fewer steps; but a recorder may be a child of what it records.
    let inherit_children = pid == std::os::unix::process::parent_id();
    let options = CaptureOptions { inherit_children, ..options() };
    match Capture::attach(pid, AttachMode::StopWhileAttaching, &options) {
        Ok(capture) => {
            drop(capture);
            eprintln!("attached");
        }
        Err(error) => eprintln!("refused {error}"),
    }
}

/// Whether this is a test and not its part that attaches, which is done then; and whether strace is here.
fn is_to_be_run() -> bool {
    if is_part("attacher") {
        attach_when_told();
        return false;
    }
    has_tools(&["strace"])
}

/// Runs that part under strace, which watches it from when it is ready.
fn attach_under_strace(test: &str, target: &Target, log: &Path, words: &[&str]) -> String {
    let mut attacher = Talker::start(&mut part(&[], &this_program(), test, "attacher"));
    attacher.hear("ready");
    let mut strace = Talker::start(
        Command::new("strace")
            .args(["-f", "-p", &attacher.child.id().to_string(), "-o"])
            .arg(log)
            .args(words),
    );
    strace.hear("strace: Process");
    attacher.say(&target.pid().to_string());
    let (said, _) = attacher.end();
    strace.end();
    said
}

/// How often each system call was made by one thread at most, from when it began to attach.
fn calls(log: &Path) -> BTreeMap<String, usize> {
    let text = std::fs::read_to_string(log).unwrap();
    let mut counts: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for line in text.lines() {
        let Some((tid, rest)) = line.split_once(' ') else { continue };
        if let Some((name, _)) = rest.trim_start().split_once('(')
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        {
            *counts.entry((name, tid)).or_default() += 1;
        }
    }
    let mut most = BTreeMap::new();
    for ((name, _), count) in counts {
        let entry = most.entry(name.to_owned()).or_default();
        *entry = count.max(*entry);
    }
    most
}

#[test]
fn the_target_runs_on_wherever_its_recorder_is_killed() {
    const NAME: &str = "kill::the_target_runs_on_wherever_its_recorder_is_killed";
    if !is_to_be_run() {
        return;
    }
    let _alone = alone();
    let mut target = Target::start(&["idle", "2"]);
    let directory = tempfile::tempdir().unwrap();
    let log = directory.path().join("calls");
    let said = attach_under_strace(NAME, &target, &log, &[]);
    assert!(said.contains("attached"), "{said}");
    let calls = calls(&log);
    for step in ["ptrace", "waitid", "perf_event_open", "mmap", "ioctl", "pidfd_open"] {
        assert!(calls.contains_key(step), "attaching makes the call {step}: {calls:?}");
    }
    let (mut kills, mut steps) = (0, 0);
    for (name, count) in &calls {
        // How often it looks whether threads stand still is chance.
        let is_repeated = matches!(name.as_str(), "waitid" | "sched_yield" | "clock_nanosleep");
        let last = if is_repeated { 3.min(*count) } else { *count };
        // The kill comes when a thread is about to make its call of that number; nothing is left to be done after.
        for number in 1..=last {
            let kill = format!("--inject={name}:signal=SIGKILL:when={number}");
            let said = attach_under_strace(NAME, &target, &log, &[&kill]);
            kills += usize::from(!said.contains("attached"));
            steps += 1;
            await_that("the target runs", || runs(target.pid()));
            target.obey("p");
        }
    }
    eprintln!("killed at {kills} of {steps} steps");
    assert!(kills * 10 > steps * 8, "few were in time: {kills} of {steps}");
}

/// Where ptrace is denied, targets are stopped by a signal, and a watchdog of the recorder's sends the other one. strace
/// denies it, and so watches the watchdog too: only calls that this does not make are chosen.
#[test]
fn without_ptrace_the_target_stands_still_and_runs_on_wherever_its_recorder_is_killed() {
    const NAME: &str =
        "kill::without_ptrace_the_target_stands_still_and_runs_on_wherever_its_recorder_is_killed";
    const DENY: &str = "--inject=ptrace:error=EPERM";
    if !is_to_be_run() {
        return;
    }
    let _alone = alone();
    let mut target = Target::start(&["idle", "2"]);
    let directory = tempfile::tempdir().unwrap();
    let log = directory.path().join("calls");
    let said = attach_under_strace(NAME, &target, &log, &[DENY]);
    assert!(said.contains("attached"), "{said}");
    let text = std::fs::read_to_string(&log).unwrap();
    let at = |words: &str| text.find(words).unwrap_or_else(|| panic!("no {words}: {text}"));
    let pid = target.pid();
    let (stop, go_on) = (at(&format!("kill({pid}, SIGSTOP")), at(&format!("kill({pid}, SIGCONT")));
    let stands_still = &text[stop..go_on];
    assert!(stands_still.contains("perf_event_open(") && stands_still.contains("/maps"));
    let calls = calls(&log);
    let mut kills = 0;
    for name in ["kill", "perf_event_open", "ioctl", "getdents64", "pidfd_open", "epoll_ctl"] {
        for number in 1..=calls[name] {
            let kill = format!("--inject={name}:signal=SIGKILL:when={number}");
            let said = attach_under_strace(NAME, &target, &log, &[DENY, &kill]);
            kills += usize::from(!said.contains("attached"));
            await_that("the target runs", || runs(pid));
            target.obey("p");
        }
    }
    assert!(kills > 20, "{kills} in time");
}

#[test]
fn without_ptrace_a_stopped_target_and_other_peoples_stops_are_left_alone() {
    const NAME: &str =
        "kill::without_ptrace_a_stopped_target_and_other_peoples_stops_are_left_alone";
    const DENY: &str = "--inject=ptrace:error=EPERM";
    if !is_to_be_run() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let log = directory.path().join("calls");
    let mut target = Target::start(&["idle", "2"]);
    let is_stopped = |target: &Target| states(target.pid()) == "TTT";
    target.signal(Signal::STOP);
    await_that("it has stopped", || is_stopped(&target));
    assert!(attach_under_strace(NAME, &target, &log, &[DENY]).contains("attached"));
    assert!(is_stopped(&target), "{}", states(target.pid()));
    target.signal(Signal::CONT);
    target.obey("p");
    // Each system call takes long, so that there is time to stop it while it stands still already.
    let said = std::thread::scope(|scope| {
        let slowly = "--inject=perf_event_open:delay_enter=50000";
        let (target, log) = (&target, &log);
        let attach = move || attach_under_strace(NAME, target, log, &[DENY, slowly]);
        let attaching = scope.spawn(attach);
        await_that("the recorder's stop", || is_stopped(target));
        target.signal(Signal::STOP);
        attaching.join().unwrap()
    });
    assert!(said.contains("attached"), "{said}");
    assert!(is_stopped(&target), "{}", states(target.pid()));
    target.signal(Signal::CONT);
    target.obey("p");
}

#[test]
fn without_ptrace_a_recorder_among_the_descendants_of_its_target_does_not_stop_itself() {
    const NAME: &str =
        "kill::without_ptrace_a_recorder_among_the_descendants_of_its_target_does_not_stop_itself";
    if is_part("attacher") {
        return attach_when_told();
    }
    if !has_tools(&["strace", "sh"]) {
        return;
    }
    // The shell is the target, and has started the recorder.
    let shell = ["sh", "-c", "\"$@\"; :", "sh"];
    let mut attacher = Talker::start(&mut part(&shell, &this_program(), NAME, "attacher"));
    attacher.hear("ready");
    let shell_pid = attacher.child.id();
    let children = format!("/proc/{shell_pid}/task/{shell_pid}/children");
    let recorder = std::fs::read_to_string(children).unwrap();
    let mut strace = Talker::start(Command::new("strace").args([
        "-f",
        "-p",
        recorder.trim(),
        "-o",
        "/dev/null",
        "--inject=ptrace:error=EPERM",
    ]));
    strace.hear("strace: Process");
    attacher.say(&shell_pid.to_string());
    attacher.hear("attached");
    assert!(attacher.end().1);
    strace.end();
}
