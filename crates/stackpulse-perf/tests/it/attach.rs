//! Attaching to running programs, in each mode.

use crate::harness::{alone, await_that, cpu_times_ns, runs, states};
use crate::target::Target;
use rustix::process::Signal;
use stackpulse_perf::capture::{
    AttachMode, AttachOutcome, Capture, CaptureOptions, RefreshOutcome, clock, schedule,
};
use stackpulse_perf::{Batch, Event, EventKind};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

const LIVE: [AttachMode; 2] = [AttachMode::Running, AttachMode::StopWhileAttaching];

/// Small stacks: what is tested here is who is sampled.
pub(crate) fn options() -> CaptureOptions {
    CaptureOptions { stack_size_bytes: 1024, inherit_children: true, ..CaptureOptions::default() }
}

/// Waits and drains until `is_enough`, and returns everything that came.
pub(crate) fn collect(
    capture: &mut Capture,
    what: &str,
    mut is_enough: impl FnMut(&[Event]) -> bool,
) -> Vec<Event> {
    let mut events = Vec::new();
    let mut batch = Batch::new();
    await_that(what, || {
        capture.wait(Duration::from_millis(10)).expect("wait");
        capture.drain(&mut batch).expect("drain");
        events.extend(batch.drain());
        is_enough(&events)
    });
    events
}

/// How many samples each thread has.
pub(crate) fn samples(events: &[Event]) -> BTreeMap<u32, u64> {
    let mut counts = BTreeMap::new();
    for event in events {
        if let EventKind::Sample(sample) = &event.kind
            && let Some(task) = sample.head().task
        {
            *counts.entry(task.tid).or_default() += 1;
        }
    }
    counts
}

#[test]
fn threads_of_a_running_process_are_sampled_in_both_modes() {
    for mode in LIVE {
        let target = Target::start(&["spin", "3"]);
        let mut capture = Capture::attach(target.pid(), mode, &options()).unwrap();
        assert!(runs(target.pid()), "{mode:?}: {}", states(target.pid()));
        let events = collect(&mut capture, "samples of three threads", |events| {
            samples(events).values().filter(|&&count| count > 20).count() >= 3
        });
        let Some(Event { kind: EventKind::Attached(attached), .. }) =
            events.iter().find(|event| matches!(event.kind, EventKind::Attached(_)))
        else {
            panic!("{mode:?}: the process was told of");
        };
        assert_eq!((attached.pid, attached.threads.len()), (target.pid(), 4));
        assert_eq!(attached.parent_pid, Some(std::process::id()));
        assert!(String::from_utf8_lossy(&attached.maps).contains("perf-target"));
        assert!(attached.threads.iter().all(|(_, comm)| **comm == *b"perf-target"));
        let in_order = events.windows(2).all(|pair| pair[0].time_ns <= pair[1].time_ns);
        assert!(in_order, "{mode:?}");
        assert_eq!(capture.statistics().bad_records, 0);
    }
}

#[test]
fn a_stopped_target_stays_stopped_until_its_stopper_lets_it_go() {
    for mode in LIVE {
        let mut target = Target::start(&["idle", "2"]);
        target.signal(Signal::STOP);
        await_that("all threads stopped", || states(target.pid()) == "TTT");
        let capture = Capture::attach(target.pid(), mode, &options()).unwrap();
        // What ptrace lets go goes through the kernel into its stop again, and through none of its own code.
        await_that("all threads stopped again", || states(target.pid()) == "TTT");
        drop(capture);
        assert_eq!(states(target.pid()), "TTT", "{mode:?}: let go");
        target.signal(Signal::CONT);
        target.obey("p");
    }
}

#[test]
fn a_stop_sent_while_attaching_is_never_undone() {
    let mut target = Target::start(&["spin", "20"]);
    for _ in 0..50 {
        // At another moment of the attaching each time, before, during or after it.
        let capture = std::thread::scope(|scope| {
            let pid = target.pid();
            let attached = scope
                .spawn(move || Capture::attach(pid, AttachMode::StopWhileAttaching, &options()));
            target.signal(Signal::STOP);
            attached.join().unwrap().unwrap()
        });
        await_that("all threads stopped", || states(target.pid()).bytes().all(|s| s == b'T'));
        drop(capture);
        target.signal(Signal::CONT);
        target.obey("p");
    }
}

#[test]
fn nothing_is_sampled_twice_where_events_were_inherited() {
    let _alone = alone();
    // So many busy threads would keep this one from its rings.
    schedule::run_promptly().unwrap();
    let options = CaptureOptions { frequency_hz: 4000, ring_buffer_stacks: 2048, ..options() };
    for mode in LIVE {
        // The threads are listed while each makes the next.
        let target = Target::start(&["breed", "40"]);
        let mut capture = Capture::attach(target.pid(), mode, &options).unwrap();
        await_that("42 threads", || cpu_times_ns(target.pid()).len() == 42);
        let begin_ns = clock::monotonic_ns();
        let before = cpu_times_ns(target.pid());
        let used_ns = |tid: u32| cpu_times_ns(target.pid())[&tid] - before[&tid];
        let last = *before.keys().max().unwrap();
        let mut events =
            collect(&mut capture, "CPU time of every thread", |_| used_ns(last) > 50_000_000);
        events.retain(|event| event.time_ns >= begin_ns);
        let after = cpu_times_ns(target.pid());
        assert_eq!(capture.statistics().lost, 0);
        for (tid, count) in samples(&events) {
            let used_ns = after[&tid] - before[&tid];
            let expected = used_ns / 250_000;
            if expected < 40 {
                continue;
            }
            // Twice the events would give twice the samples; a round's delay gives a few more or fewer.
            assert!(
                count * 2 > expected && count * 2 < expected * 3,
                "{mode:?}: thread {tid}: {count} of {expected}"
            );
        }
        assert!(samples(&events).len() >= 38, "every thread is sampled: {:?}", samples(&events));
        assert_eq!(
            capture.refresh_threads(target.pid()).unwrap(),
            RefreshOutcome::Refreshed { added: 0 }
        );
    }
}

#[test]
fn two_thousand_threads_are_attached_to_within_a_second() {
    let _alone = alone();
    let target = Target::start(&["idle", "2000"]);
    let options = CaptureOptions { inherit_children: false, ..options() };
    for mode in LIVE {
        // The best of five: others may have the CPUs meanwhile.
        let attach = || {
            let start = Instant::now();
            let capture = Capture::attach(target.pid(), mode, &options).unwrap();
            let took = start.elapsed();
            drop(capture);
            took
        };
        let took = std::iter::repeat_with(attach).take(5).min().unwrap();
        eprintln!("{mode:?}: attached to 2,001 threads in {took:?}");
        assert!(took < Duration::from_secs(1), "{mode:?}: {took:?}");
    }
}

#[test]
fn a_process_is_attached_to_once_and_again_after_its_end() {
    let first = Target::start(&["idle", "1"]);
    let mut second = Target::start(&["idle", "1"]);
    let mut capture = Capture::attach(first.pid(), AttachMode::Running, &options()).unwrap();
    let mode = AttachMode::StopWhileAttaching;
    assert_eq!(capture.attach_process(second.pid(), mode).unwrap(), AttachOutcome::Attached);
    assert_eq!(capture.attach_process(second.pid(), mode).unwrap(), AttachOutcome::AlreadyAttached);
    assert_eq!(capture.active_processes().count(), 2);
    second.end();
    assert_eq!(capture.attach_process(second.pid(), mode).unwrap(), AttachOutcome::Exited);
    assert!(!capture.process_is_active(second.pid()));
    collect(&mut capture, "the end of the second", |events| {
        let ended = |event: &Event| matches!(event.kind, EventKind::ProcessExit { pid } if pid == second.pid());
        events.iter().any(ended)
    });
    assert!(capture.process_is_active(first.pid()));
}

#[test]
fn descendants_that_were_there_before_are_sampled_too() {
    for mode in LIVE {
        let target = Target::start(&["fork", "5"]);
        let mut capture = Capture::attach(target.pid(), mode, &options()).unwrap();
        assert_eq!(capture.active_processes().count(), 6, "{mode:?}");
        let alone = CaptureOptions { inherit_children: false, ..options() };
        let capture_of_one = Capture::attach(target.pid(), mode, &alone).unwrap();
        assert_eq!(capture_of_one.active_processes().count(), 1, "{mode:?}");
        drop(target);
        collect(&mut capture, "the end of all", |_| true);
        await_that("the end of all", || {
            let mut batch = Batch::new();
            capture.wait(Duration::from_millis(10)).unwrap();
            capture.drain(&mut batch).unwrap();
            capture.active_processes().count() == 0
        });
    }
}
