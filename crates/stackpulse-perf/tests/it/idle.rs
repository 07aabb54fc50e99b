//! What it costs to follow processes that do nothing.

use crate::attach::options;
use crate::harness::{Talker, has_tools, is_part, part, this_program};
use crate::target::Target;
use stackpulse_perf::Batch;
use stackpulse_perf::capture::{AttachMode, Capture};
use std::process::Command;
use std::time::Duration;

const POLLS: usize = 20;

/// Followed by the part, so that strace sees its polls only.
fn poll_when_told() {
    let mut line = String::new();
    eprintln!("ready");
    std::io::stdin().read_line(&mut line).unwrap();
    let pid = line.trim().parse().unwrap();
    let mut capture = Capture::attach(pid, AttachMode::StopWhileAttaching, &options()).unwrap();
    let mut batch = Batch::new();
    let mut poll = || {
        capture.wait(Duration::from_millis(1)).unwrap();
        capture.drain(&mut batch).unwrap();
    };
    // What attaching left is read first.
    (0..POLLS).for_each(|_| poll());
    eprintln!("attached");
    std::io::stdin().read_line(&mut line).unwrap();
    (0..POLLS).for_each(|_| poll());
    eprintln!("followed {}", capture.active_processes().count());
}

#[test]
fn a_poll_of_150_idle_processes_makes_at_most_20_system_calls() {
    const NAME: &str = "idle::a_poll_of_150_idle_processes_makes_at_most_20_system_calls";
    if is_part("poller") {
        return poll_when_told();
    }
    if !has_tools(&["strace"]) {
        return;
    }
    let target = Target::start(&["fork", "149"]);
    let mut poller = Talker::start(&mut part(&[], &this_program(), NAME, "poller"));
    poller.hear("ready");
    poller.say(&target.pid().to_string());
    poller.hear("attached");
    let directory = tempfile::tempdir().unwrap();
    let log = directory.path().join("calls");
    let pid = poller.child.id().to_string();
    let mut strace = Talker::start(Command::new("strace").args(["-f", "-p", &pid, "-o"]).arg(&log));
    strace.hear("strace: Process");
    poller.say("go");
    assert_eq!(poller.hear("followed "), "150");
    assert!(poller.end().1);
    strace.end();
    let text = std::fs::read_to_string(&log).unwrap();
    let waits = text.lines().filter(|line| line.contains(" epoll_wait(")).count();
    let polls = text.lines().skip_while(|line| !line.contains(" epoll_wait("));
    let calls = polls.take_while(|line| !line.contains(" write(2,")).count();
    eprintln!("{calls} system calls in {waits} polls");
    assert_eq!(waits, POLLS);
    assert!(calls <= 20 * POLLS, "{calls} in {waits}:\n{text}");
}
