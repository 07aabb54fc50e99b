//! What it costs to record processes that do nothing.

use crate::harness::{Scene, has_tool, stackpulse};
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A shell with this many sleeping children: a process group, which ends with this.
struct Tree(Child);

impl Tree {
    fn of(children: u32) -> Self {
        let script = format!("for i in $(seq {children}); do sleep 600 & done; echo ready; wait");
        let mut shell = Command::new("sh");
        shell.args(["-c", &script]).process_group(0).stdout(Stdio::piped());
        let mut tree = Self(shell.spawn().unwrap());
        let mut line = String::new();
        BufReader::new(tree.0.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        tree
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        let group = rustix::process::Pid::from_child(&self.0);
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        let _ = self.0.wait();
    }
}

#[test]
fn an_idle_tree_of_150_costs_few_system_calls_and_never_spins() {
    if !has_tool("strace") {
        return;
    }
    let scene = Scene::new();
    let (spool, log) = (scene.path("idle.spool"), scene.path("calls"));
    let tree = Tree::of(150);
    let pid = tree.0.id().to_string();
    let mut record = stackpulse();
    let mut recorder = record.args(["record", "-q", "-p", &pid, "-o"]).arg(&spool).spawn().unwrap();
    while !std::fs::metadata(&spool).is_ok_and(|metadata| metadata.len() > 0) {
        std::thread::yield_now();
    }
    // What attaching left is read, and every thread waits.
    std::thread::sleep(Duration::from_secs(2));
    let mut strace = Command::new("strace");
    strace.args(["-f", "-p", &recorder.id().to_string(), "-o"]).arg(&log).stderr(Stdio::piped());
    let mut strace = strace.spawn().unwrap();
    let mut said = BufReader::new(strace.stderr.take().unwrap()).lines();
    assert!(said.next().unwrap().unwrap().contains("attached"));
    let start = Instant::now();
    std::thread::sleep(Duration::from_secs(4));
    let seconds = start.elapsed().as_secs();
    rustix::process::kill_process(
        rustix::process::Pid::from_child(&strace),
        rustix::process::Signal::INT,
    )
    .unwrap();
    strace.wait().unwrap();
    recorder.kill().unwrap();
    recorder.wait().unwrap();
    let log = std::fs::read_to_string(log).unwrap();
    let calls = log.lines().count() as u64;
    eprintln!("{calls} system calls in {seconds} s");
    assert!(calls > 0 && calls <= 100 * seconds, "{calls} in {seconds} s:\n{log}");
    assert!(!log.contains("sched_yield"), "{log}");
}
