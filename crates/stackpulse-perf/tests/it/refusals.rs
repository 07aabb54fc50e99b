//! What the kernel refuses, and what is said of it. strace answers in the kernel's place, so that each refusal comes where it
//! is wanted.

use crate::attach::options;
use crate::harness::{Talker, has_tools, is_part, part, runs, this_program};
use crate::target::Target;
use stackpulse_perf::capture::{AttachMode, Capture, CaptureOptions, EventChoice};
use stackpulse_perf::{Batch, OpenError};
use std::process::Command;

/// What a part of a test does once strace watches it.
fn when_told(act: impl FnOnce(u32)) {
    eprintln!("ready");
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).unwrap();
    act(line.trim().parse().unwrap());
}

fn wanted() -> CaptureOptions {
    CaptureOptions { event: EventChoice::CpuClock, inherit_children: false, ..options() }
}

/// Runs a part of a test, with strace answering as `inject` says; what the part said.
fn answered_by_strace(test: &str, name: &str, target: &Target, inject: &[&str]) -> String {
    let mut acting = Talker::start(&mut part(&[], &this_program(), test, name));
    acting.hear("ready");
    let pid = acting.child.id().to_string();
    let mut strace = Talker::start(
        Command::new("strace")
            .args(["-f", "-p", &pid, "-o", "/dev/null"])
            .args(inject.iter().map(|inject| format!("--inject={inject}"))),
    );
    strace.hear("strace: Process");
    acting.say(&target.pid().to_string());
    let (said, succeeded) = acting.end();
    strace.end();
    assert!(succeeded, "{inject:?}: {said}");
    said
}

#[test]
fn every_refusal_tells_step_process_cpu_limit_and_remedy() {
    const NAME: &str = "refusals::every_refusal_tells_step_process_cpu_limit_and_remedy";
    if is_part("attacher") {
        return when_told(|pid| {
            let files = || std::fs::read_dir("/proc/self/fd").unwrap().count();
            let before = files();
            let error =
                Capture::attach(pid, AttachMode::StopWhileAttaching, &wanted()).unwrap_err();
            let OpenError::Refused { source, .. } = &error else { panic!("{error}") };
            eprintln!("refused {} {error}", source.raw_os_error().unwrap());
            assert_eq!(files(), before, "nothing stays open");
        });
    }
    if !has_tools(&["strace"]) {
        return;
    }
    let mut target = Target::start(&["idle", "1"]);
    let pid = target.pid();
    // The call, the answer to it from which time on, what is said of the step, and words of the remedy.
    let open = "open a perf event for thread";
    let event = "perf_event_open";
    let cases = [
        (event, "EPERM", libc::EPERM, "1+", open, "root"),
        (event, "EACCES", libc::EACCES, "1+", open, "root"),
        (event, "EMFILE", libc::EMFILE, "5+", open, "(ulimit -n)"),
        (event, "ENFILE", libc::ENFILE, "5+", open, "fs.file-max"),
        (event, "ENOMEM", libc::ENOMEM, "4+", open, "MemAvailable"),
        (event, "ENOSPC", libc::ENOSPC, "1+", open, "sample cpu-clock"),
        (event, "EBUSY", libc::EBUSY, "3+", open, "to itself"),
        (event, "ENOSYS", libc::ENOSYS, "1+", open, "CONFIG_PERF_EVENTS"),
        (event, "EOPNOTSUPP", libc::EOPNOTSUPP, "1+", open, "sample cpu-clock"),
        (event, "E2BIG", libc::E2BIG, "1+", open, "5.13"),
        (event, "EINVAL", libc::EINVAL, "1+", open, "5.13"),
        ("epoll_ctl", "ENOSPC", libc::ENOSPC, "2+", "prepare to wait", "max_user_watches"),
        ("pidfd_open", "EMFILE", libc::EMFILE, "1+", "prepare to wait", "(ulimit -n)"),
    ];
    for (call, name, errno, when, step, remedy) in cases {
        let inject = format!("{call}:error={name}:when={when}");
        let said = answered_by_strace(NAME, "attacher", &target, &[&inject]);
        let told = said.lines().find_map(|line| line.strip_prefix("refused ")).unwrap();
        let (number, told) = told.split_once(' ').unwrap();
        assert_eq!(number, errno.to_string(), "{inject}: {told}");
        assert!(told.starts_with(step) && told.contains(remedy), "{inject}: {told}");
        if step == open {
            assert!(told.contains(&format!("of process {pid} on CPU ")), "{inject}: {told}");
        }
        assert!(runs(pid), "{inject}");
        target.obey("p");
    }
}

#[test]
fn ring_memory_that_is_refused_at_any_size_is_told_with_both_limits() {
    const NAME: &str = "refusals::ring_memory_that_is_refused_at_any_size_is_told_with_both_limits";
    if is_part("attacher") {
        return when_told(|pid| {
            let error = Capture::attach(pid, AttachMode::Running, &wanted()).unwrap_err();
            eprintln!("refused {error}");
        });
    }
    if !has_tools(&["strace"]) {
        return;
    }
    let target = Target::start(&["idle", "1"]);
    // Rings are mapped from descriptors, memory is not: only these calls are answered so. A thread may have mapped some
    // files before; none of the sizes is granted after.
    let said = answered_by_strace(NAME, "attacher", &target, &["mmap:error=EPERM:when=1+"]);
    let told = said.lines().find_map(|line| line.strip_prefix("refused ")).unwrap();
    for words in
        ["map ", " bytes of ring memory for CPU ", "kernel.perf_event_mlock_kb", "ulimit -l"]
    {
        assert!(told.contains(words), "{told}");
    }
}

/// A kernel before 6.0 knows no count of lost samples for an event.
#[test]
fn without_counts_of_lost_samples_their_records_tell_of_them() {
    const NAME: &str = "refusals::without_counts_of_lost_samples_their_records_tell_of_them";
    if is_part("attacher") {
        return when_told(|pid| {
            let wanted = CaptureOptions { frequency_hz: 4000, ring_buffer_stacks: 64, ..wanted() };
            let mut capture = Capture::attach(pid, AttachMode::Running, &wanted).unwrap();
            let mut batch = Batch::new();
            let lost = |event: stackpulse_perf::Event| match event.kind {
                stackpulse_perf::EventKind::Lost { events, .. } => events,
                _ => 0,
            };
            // A ring lasts for 16 ms, and a record tells of a loss once there is room for it again. How fast a
            // loaded machine samples is its own affair.
            let mut told = 0;
            crate::harness::await_that("a record of lost samples", || {
                std::thread::sleep(std::time::Duration::from_millis(200));
                capture.drain(&mut batch).unwrap();
                told += batch.drain().map(lost).sum::<u64>();
                told > 100
            });
            capture.finish(&mut batch).unwrap();
            told += batch.drain().map(lost).sum::<u64>();
            eprintln!("lost {told} {}", capture.statistics().lost);
        });
    }
    if !has_tools(&["strace"]) {
        return;
    }
    let target = Target::start(&["spin", "1"]);
    // The first event that is tried asks for the count, and is refused as such a kernel refuses it.
    let inject = "perf_event_open:error=EINVAL:when=1";
    let said = answered_by_strace(NAME, "attacher", &target, &[inject]);
    let lost = said.lines().find_map(|line| line.strip_prefix("lost ")).unwrap();
    let (told, counted) = lost.split_once(' ').unwrap();
    let (told, counted): (u64, u64) = (told.parse().unwrap(), counted.parse().unwrap());
    assert!(told > 100 && counted == told, "{told} of {counted}");
}

#[test]
fn the_limit_of_open_files_is_raised_where_it_is_in_the_way() {
    const NAME: &str = "refusals::the_limit_of_open_files_is_raised_where_it_is_in_the_way";
    if is_part("attacher") {
        let target = Target::start(&["idle", "100"]);
        let attached = Capture::attach(target.pid(), AttachMode::Running, &wanted());
        match attached {
            Ok(_) => eprintln!("attached"),
            Err(error) => eprintln!("refused {error}"),
        }
        return;
    }
    if !has_tools(&["prlimit"]) {
        return;
    }
    let with_limit = |limit: &str| {
        let words = ["prlimit", limit];
        let output = part(&words, &this_program(), NAME, "attacher").output().unwrap();
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    assert!(with_limit("--nofile=64:4096").contains("attached"));
    let refused = with_limit("--nofile=64:64");
    assert!(refused.contains("may open 64 files (ulimit -n)"), "{refused}");
}
