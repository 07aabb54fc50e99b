//! A recorder that is killed while it attaches leaves its target running.

use crate::attach::options;
use crate::harness::{Talker, alone, await_that, has_tools, is_part, part, runs, this_program};
use crate::target::Target;
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
    let options = CaptureOptions { inherit_children: false, ..options() };
    match Capture::attach(pid, AttachMode::StopWhileAttaching, &options) {
        Ok(capture) => {
            drop(capture);
            eprintln!("attached");
        }
        Err(error) => eprintln!("refused {error}"),
    }
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
    if is_part("attacher") {
        return attach_when_told();
    }
    if !has_tools(&["strace"]) {
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
