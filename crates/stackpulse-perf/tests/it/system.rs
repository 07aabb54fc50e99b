//! Captures of CPUs: all that runs, control groups, some CPUs only, and CPUs that come and go.

use crate::attach::{collect, options, samples};
use crate::harness::{alone, await_that, control_groups, is_root, skip};
use crate::target::{Target, program};
use rustix::thread::CpuSet;
use stackpulse_perf::capture::{AttachMode, AttachOutcome, Capture, CaptureOptions, schedule};
use stackpulse_perf::{Event, EventKind, OpenError};
use std::path::PathBuf;
use std::process::Command;

/// Whether an event is of this process: its mapping, comm, fork, sample, or end.
fn tells_of(event: &Event, told: u32) -> bool {
    match &event.kind {
        EventKind::Attached(process) => process.pid == told,
        EventKind::Sample(sample) => sample.head().task.is_some_and(|task| task.pid == told),
        EventKind::Mmap(mmap) => mmap.task.pid == told,
        EventKind::Comm { task, .. } | EventKind::Exit { task } => task.pid == told,
        EventKind::Fork { child, .. } => child.pid == told,
        EventKind::ProcessExit { pid } => *pid == told,
        _ => false,
    }
}

fn is_attached(event: &Event, pid: u32) -> bool {
    matches!(&event.kind, EventKind::Attached(process) if process.pid == pid)
}

fn is_end(event: &Event, of: u32) -> bool {
    matches!(event.kind, EventKind::ProcessExit { pid } if pid == of)
}

fn is_sampled(events: &[Event], pid: u32) -> bool {
    let is_sample = |event: &&Event| matches!(event.kind, EventKind::Sample(_));
    events.iter().filter(is_sample).filter(|event| tells_of(event, pid)).count() > 5
}

#[test]
fn everything_that_runs_is_followed_before_and_after_the_beginning() {
    if !is_root() {
        return;
    }
    let _alone = alone();
    // The other tests make many processes: without reading in time, some of what is told of them is lost.
    schedule::run_promptly().unwrap();
    let before = Target::start(&["spin", "1"]);
    let wanted = CaptureOptions { ring_buffer_stacks: 2048, ..options() };
    let mut capture = Capture::system_wide(&wanted).unwrap();
    let after = Target::start(&["spin", "1"]);
    let (before_pid, after_pid) = (before.pid(), after.pid());
    let mut events = collect(&mut capture, "samples of both", |events| {
        is_sampled(events, before_pid) && is_sampled(events, after_pid)
    });
    assert!(capture.process_is_active(before_pid) && capture.process_is_active(after_pid));
    drop((before, after));
    events.extend(collect(&mut capture, "both ends", |events| {
        [before_pid, after_pid].iter().all(|&pid| events.iter().any(|event| is_end(event, pid)))
    }));
    assert!(events.iter().any(|event| is_attached(event, before_pid)));
    assert!(!events.iter().any(|event| is_attached(event, after_pid)), "its fork tells of it");
    let first = events.iter().find(|event| tells_of(event, after_pid)).unwrap();
    assert!(matches!(first.kind, EventKind::Fork { .. }), "{first:?}");
    let maps_itself = |event: &Event| {
        tells_of(event, after_pid)
            && matches!(&event.kind, EventKind::Mmap(mmap) if mmap.path.ends_with(b"perf-target"))
    };
    assert!(events.iter().any(maps_itself));
    assert!(events.windows(2).all(|pair| pair[0].time_ns <= pair[1].time_ns));
}

#[test]
fn a_capture_of_everything_takes_no_single_process() {
    if !is_root() {
        return;
    }
    let target = Target::start(&["idle", "0"]);
    let mut capture = Capture::system_wide(&options()).unwrap();
    let error = capture.attach_process(target.pid(), AttachMode::Running).unwrap_err();
    assert!(matches!(error, OpenError::FixedScope { .. }), "{error}");
    let of_one = Capture::attach(target.pid(), AttachMode::Running, &options());
    let outcome = of_one.unwrap().attach_process(target.pid(), AttachMode::Running).unwrap();
    assert_eq!(outcome, AttachOutcome::AlreadyAttached);
}

/// A control group of version 2, removed when dropped.
struct Group(PathBuf);

impl Group {
    fn new() -> Option<Self> {
        let group = control_groups()?.join(format!("stackpulse-test-{}", std::process::id()));
        std::fs::create_dir(&group).ok()?;
        std::fs::create_dir(group.join("below")).ok()?;
        Some(Self(group))
    }

    /// Starts a target in the group, or in the one below it.
    fn start(&self, below: &str, words: &[&str]) -> Target {
        let procs = self.0.join(below).join("cgroup.procs");
        let script = "echo $$ > \"$0\" && exec \"$@\"";
        let mut shell = Command::new("sh");
        Target::start_as(shell.args(["-c", script]).arg(procs).arg(program()).args(words))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // It is busy until the ends of its processes are known everywhere.
        await_that("an empty control group", || {
            let _ = std::fs::remove_dir(self.0.join("below"));
            std::fs::remove_dir(&self.0).is_ok()
        });
    }
}

#[test]
fn a_control_group_is_followed_with_those_below_it_and_nothing_else() {
    if !is_root() {
        return;
    }
    let Some(group) = Group::new() else {
        return skip("no control group of version 2 can be made");
    };
    let inside = group.start("", &["spin", "1"]);
    let below = group.start("below", &["spin", "1"]);
    let outside = Target::start(&["spin", "1"]);
    let mut capture = Capture::cgroup(&group.0, &options()).unwrap();
    let later = group.start("", &["spin", "1"]);
    let pids = [&inside, &below, &later].map(Target::pid);
    let events = collect(&mut capture, "samples of three", |events| {
        pids.iter().all(|&pid| is_sampled(events, pid))
    });
    assert!(pids[..2].iter().all(|&pid| events.iter().any(|event| is_attached(event, pid))));
    assert!(!events.iter().any(|event| tells_of(event, outside.pid())));
    assert!(capture.process_is_active(below.pid()) && !capture.process_is_active(outside.pid()));
    drop((inside, below, later));
    collect(&mut capture, "their ends", |events| {
        pids[..2].iter().all(|&pid| events.iter().any(|event| is_end(event, pid)))
    });
}

#[test]
fn a_directory_that_is_no_control_group_is_refused() {
    if !is_root() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    for path in [directory.path(), &directory.path().join("missing")] {
        let error = Capture::cgroup(path, &options()).unwrap_err();
        assert!(error.to_string().contains("open "), "{error}");
        assert!(matches!(error, OpenError::Refused { .. }), "{error}");
    }
}

#[test]
fn only_the_cpus_of_the_list_are_sampled_and_lifecycle_is_followed_on_all() {
    let _alone = alone();
    let own = rustix::thread::sched_getaffinity(None).unwrap();
    let cpus: Vec<u32> = (0..u32::try_from(CpuSet::MAX_CPU).unwrap())
        .filter(|&cpu| own.is_set(cpu as usize))
        .collect();
    let [sampled, other, ..] = cpus[..] else { return skip("there is one CPU only") };
    let wanted = CaptureOptions { cpus: Some(vec![sampled]), ..options() };
    let mut target = Target::start(&["spin", "2"]);
    let mut capture = Capture::attach(target.pid(), AttachMode::Running, &wanted).unwrap();
    assert_eq!(capture.settings().cpus, 1);
    let events =
        collect(&mut capture, "samples", |events| samples(events).values().sum::<u64>() > 20);
    let is_sample = |event: &&Event| matches!(event.kind, EventKind::Sample(_));
    assert!(events.iter().filter(is_sample).all(|event| event.cpu == Some(sampled)));
    // The main thread, where nothing is sampled.
    let mut elsewhere = CpuSet::new();
    elsewhere.set(other as usize);
    let main = rustix::process::Pid::from_raw(target.pid().try_into().unwrap());
    rustix::thread::sched_setaffinity(main, &elsewhere).unwrap();
    target.obey("m");
    let events = collect(&mut capture, "a mapping", |events| {
        events.iter().any(|event| matches!(event.kind, EventKind::Mmap(_)))
    });
    let mapping = events.iter().find(|event| matches!(event.kind, EventKind::Mmap(_))).unwrap();
    assert_eq!(mapping.cpu, Some(other));
}

#[test]
fn a_list_with_a_cpu_that_is_not_there_is_refused_with_its_number() {
    for cpus in [vec![0, 70_000], vec![]] {
        let wanted = CaptureOptions { cpus: Some(cpus.clone()), ..options() };
        let error = Capture::attach(std::process::id(), AttachMode::Running, &wanted).unwrap_err();
        let expected = cpus.get(1).copied().unwrap_or(u32::MAX);
        assert!(matches!(error, OpenError::NoSuchCpu { cpu } if cpu == expected), "{error}");
    }
}

/// A CPU that is offline until this is dropped.
struct Offline(PathBuf);

impl Offline {
    fn new(cpu: u32) -> std::io::Result<Self> {
        let path = PathBuf::from(format!("/sys/devices/system/cpu/cpu{cpu}/online"));
        std::fs::write(&path, "0").map(|()| Self(path))
    }
}

impl Drop for Offline {
    fn drop(&mut self) {
        std::fs::write(&self.0, "1").expect("it was online before");
    }
}

#[test]
fn cpus_that_come_online_are_sampled_from_then_on() {
    let _alone = alone();
    if !is_root() {
        return;
    }
    let own = rustix::thread::sched_getaffinity(None).unwrap();
    let Some(cpu) = (1..64).find(|&cpu| own.is_set(cpu as usize)) else {
        return skip("there is one CPU only");
    };
    let target = Target::start(&["spin", "4"]);
    let mut everything = Capture::system_wide(&options()).unwrap();
    let offline = match Offline::new(cpu) {
        Ok(offline) => offline,
        Err(error) => return skip(&format!("CPU {cpu} cannot be taken offline: {error}")),
    };
    // One that is offline when it begins, and one that has seen it go.
    let attached = Capture::attach(target.pid(), AttachMode::StopWhileAttaching, &options());
    let mut attached = attached.unwrap();
    let late = Capture::system_wide(&options());
    // The list of CPUs is looked at once in a while: it must have been seen without this one.
    let start = std::time::Instant::now();
    let gone = collect(&mut everything, "samples of the other CPU", |events| {
        is_sampled(events, target.pid()) && start.elapsed() > std::time::Duration::from_secs(3)
    });
    drop((gone, offline));
    let on_cpu = |events: &[Event]| {
        let is_sample = |event: &&Event| matches!(event.kind, EventKind::Sample(_));
        events.iter().filter(is_sample).filter(|event| event.cpu == Some(cpu)).count() > 5
    };
    collect(&mut attached, "samples of the threads there", on_cpu);
    collect(&mut everything, "samples of all there", on_cpu);
    collect(&mut late.unwrap(), "samples of all there, not seen before", on_cpu);
}
