//! `record` of more than processes: everything that runs, CPUs, control groups.

use crate::harness::{Scene, has_chain, info, percent, run, stackpulse, stacks, stderr};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output};

/// Whether this is root; says so if not. Only root may record what it does not own.
fn is_root() -> bool {
    let is_root = std::fs::metadata("/proc/self").unwrap().uid() == 0;
    if !is_root {
        eprintln!("skipped: only root can record the machine");
    }
    is_root
}

/// A target that burns until it is dropped.
struct Burning(Child);

impl Burning {
    fn start(program: &Path) -> Self {
        Self(Command::new(program).arg("600").spawn().unwrap())
    }
}

impl Drop for Burning {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Records with these options for as long as a program burns half a second of CPU time.
fn record(spool: &Path, options: &[&str], program: &Path) -> Output {
    let mut command = stackpulse();
    command.args(["record", "--no-kernel"]).args(options).arg("-o").arg(spool).arg("--");
    command.arg(program).arg("0.5").output().unwrap()
}

fn pids(spool: &Path) -> Vec<u64> {
    let facts = info(spool);
    let processes = facts["processes"].as_array().unwrap();
    processes.iter().map(|process| process["pid"].as_u64().unwrap()).collect()
}

#[test]
fn everything_that_runs_is_recorded_as_long_as_the_command() {
    if !is_root() {
        return;
    }
    let scene = Scene::new();
    let program = scene.compile("shares.c", &[]);
    let other = Burning::start(&program);
    let spool = scene.path("all.spool");
    let output = record(&spool, &["-a"], &program);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(pids(&spool).contains(&u64::from(other.0.id())), "what ran before is in it");
    let pid = other.0.id().to_string();
    let file = spool.to_str().unwrap();
    let output = run(["export", "-f", "collapsed", "--pid", &pid, file]);
    let stacks = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(stacks.lines().any(|line| line.contains(";main;outer;middle_sixty;")), "{stacks}");
    let output = run(["report", "--by", "process", file]);
    assert!(String::from_utf8_lossy(&output.stdout).contains("shares"), "{}", stderr(&output));
}

#[test]
fn cpus_alone_are_everything_that_runs_on_them() {
    if !is_root() {
        return;
    }
    let scene = Scene::new();
    let other = Burning::start(&scene.compile("shares.c", &[]));
    let pinned = Command::new("taskset").args(["-pc", "0", &other.0.id().to_string()]).output();
    assert!(pinned.unwrap().status.success());
    let spool = scene.path("cpu.spool");
    let file = spool.to_str().unwrap();
    let output = run(["record", "-C", "0", "-d", "500ms", "--no-kernel", "-o", file]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(pids(&spool).contains(&u64::from(other.0.id())));
    let dump = run(["info", "--dump", file]);
    let dump = String::from_utf8_lossy(&dump.stdout).into_owned();
    let samples: Vec<&str> = dump.lines().filter(|line| line.starts_with("sample ")).collect();
    assert!(!samples.is_empty(), "{dump}");
    assert!(samples.iter().all(|line| line.contains("cpu=0")), "{samples:?}");

    let refused = run(["record", "-C", "4095", "-d", "1", "-o", scene.path("x").to_str().unwrap()]);
    assert_eq!(refused.status.code(), Some(125));
    assert!(stderr(&refused).contains("4095"), "{}", stderr(&refused));
    assert!(!scene.path("x").exists(), "nothing is left of what did not start");
}

/// A control group of version 2, removed when dropped.
struct Group(PathBuf);

impl Group {
    fn new() -> Option<Self> {
        let mounts = std::fs::read_to_string("/proc/mounts").unwrap();
        let mount = mounts.lines().find(|line| line.split(' ').nth(2) == Some("cgroup2"))?;
        let name = format!("stackpulse-cli-test-{}", std::process::id());
        let path = Path::new(mount.split(' ').nth(1)?).join(name);
        std::fs::create_dir(&path).ok()?;
        Some(Self(path))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // It is busy until the ends of its processes are known everywhere.
        while std::fs::remove_dir(&self.0).is_err() && self.0.exists() {
            std::thread::yield_now();
        }
    }
}

#[test]
fn a_control_group_is_recorded_by_its_name_and_nothing_outside_it() {
    if !is_root() {
        return;
    }
    let Some(group) = Group::new() else {
        eprintln!("skipped: no control group of version 2 can be made");
        return;
    };
    let scene = Scene::new();
    let program = scene.compile("shares.c", &[]);
    let inside = Burning::start(&program);
    std::fs::write(group.0.join("cgroup.procs"), inside.0.id().to_string()).unwrap();
    let spool = scene.path("group.spool");
    let name = group.0.file_name().unwrap().to_str().unwrap();
    // The command that says how long burns outside the group.
    let output = record(&spool, &["-G", name], &program);
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(pids(&spool), [u64::from(inside.0.id())]);
    assert!(percent(&stacks(&spool), |stack| has_chain(stack, &["main", "outer"])) > 90.0);
    drop(inside);
}

#[test]
fn a_group_that_is_not_there_and_targets_that_exclude_one_another_are_refused() {
    let scene = Scene::new();
    let spool = scene.path("x.spool");
    let file = spool.to_str().unwrap();
    let output = run(["record", "-G", "no/such.group", "-d", "1", "-o", file]);
    assert_eq!(output.status.code(), Some(125));
    assert!(stderr(&output).contains("control group"), "{}", stderr(&output));
    assert!(!spool.exists());
    for words in [&["-a", "-p", "1"][..], &["-a", "-G", "x"], &["-G", "x", "-p", "1"], &["-C", "x"]]
    {
        let output = run(["record"].iter().chain(words));
        assert_eq!(output.status.code(), Some(125), "{words:?}: {}", stderr(&output));
    }
}
