//! What is told of processes: forks, execs, mappings, ends, also while sampling is paused.

use crate::attach::{collect, options, samples};
use crate::target::Target;
use stackpulse_perf::capture::{AttachMode, Capture, CaptureOptions};
use stackpulse_perf::{Event, EventKind};

/// A word for each lifecycle event of a process.
fn story(events: &[Event], pid: u32) -> Vec<&'static str> {
    let word = |event: &Event| match &event.kind {
        EventKind::Mmap(mmap) if mmap.task.pid == pid && mmap.executable => Some("map"),
        EventKind::Comm { task, exec: true, .. } if task.pid == pid => Some("exec"),
        EventKind::Comm { task, comm, exec: false } if task.pid == pid && **comm == *b"renamed" => {
            Some("rename")
        }
        EventKind::Fork { child, parent } if parent.pid == pid && child.pid == pid => {
            Some("thread")
        }
        EventKind::Fork { child, parent } if parent.pid == pid && child.pid != pid => Some("fork"),
        EventKind::Exit { task } if task.pid == pid => Some("exit"),
        EventKind::ProcessExit { pid: ended } if *ended == pid => Some("end"),
        EventKind::Pause { paused: true } => Some("pause"),
        EventKind::Pause { paused: false } => Some("resume"),
        _ => None,
    };
    events.iter().filter_map(word).collect()
}

/// Makes the target do everything, and returns what was told of it.
fn told(capture: &mut Capture, mut target: Target) -> (Vec<&'static str>, Vec<Event>) {
    let pid = target.pid();
    for letter in ["m", "t", "f", "n"] {
        target.obey(letter);
    }
    drop(target);
    let events = collect(capture, "the end", |events| {
        events.iter().any(
            |event| matches!(event.kind, EventKind::ProcessExit { pid: ended } if ended == pid),
        )
    });
    (story(&events, pid), events)
}

#[test]
fn everything_a_process_does_is_told_in_order() {
    let target = Target::start(&["idle", "0"]);
    let mut capture = Capture::attach(target.pid(), AttachMode::Running, &options()).unwrap();
    let (story, _) = told(&mut capture, target);
    // A stack for a thread is mapped too, but not to be executed.
    let expected = ["map", "thread", "exit", "fork", "rename", "exit", "end"];
    assert_eq!(story, expected);
}

#[test]
fn pausing_samples_never_stops_what_is_told_of_processes() {
    let target = Target::start(&["spin", "1"]);
    let mut capture = Capture::attach(target.pid(), AttachMode::Running, &options()).unwrap();
    let sampled = |events: &[Event]| samples(events).values().any(|&count| count > 5);
    collect(&mut capture, "samples", sampled);
    capture.disable().unwrap();
    let (story, events) = told(&mut capture, target);
    let expected = ["pause", "map", "thread", "exit", "fork", "rename", "exit", "exit", "end"];
    assert_eq!(story, expected);
    let paused = events
        .iter()
        .position(|event| matches!(event.kind, EventKind::Pause { paused: true }))
        .expect("told above");
    // A sample that was on its way when sampling was paused may come in the same microseconds.
    let late = samples(&events[paused..]).values().sum::<u64>();
    assert!(late <= 2, "{late} samples while paused");
}

#[test]
fn sampling_goes_on_after_a_pause() {
    let target = Target::start(&["spin", "1"]);
    let wanted = CaptureOptions { start_enabled: false, ..options() };
    let mut capture = Capture::attach(target.pid(), AttachMode::Running, &wanted).unwrap();
    let before = crate::harness::cpu_times_ns(target.pid());
    let used_ns = || -> u64 {
        crate::harness::cpu_times_ns(target.pid()).values().sum::<u64>()
            - before.values().sum::<u64>()
    };
    let events = collect(&mut capture, "CPU time", |_| used_ns() > 50_000_000);
    assert!(samples(&events).is_empty(), "not before it is enabled");
    capture.enable().unwrap();
    let events = collect(&mut capture, "samples", |events| !samples(events).is_empty());
    assert_eq!(story(&events, target.pid()), ["resume"]);
}

#[test]
fn an_exec_is_told_before_the_mappings_it_brings() {
    let mut target = Target::start(&["idle", "3"]);
    let mut capture = Capture::attach(target.pid(), AttachMode::Running, &options()).unwrap();
    target.obey("x");
    let pid = target.pid();
    let events = collect(&mut capture, "an exec and its mappings", |events| {
        story(events, pid).iter().filter(|&&word| word == "map").count() >= 3
    });
    let story = story(&events, pid);
    // The other threads end first.
    assert_eq!(story[..4], ["exit", "exit", "exit", "exec"], "{story:?}");
    assert!(story[4..].iter().all(|&word| word == "map"), "{story:?}");
}

#[test]
fn a_target_that_ends_while_it_is_attached_to_is_told_to_have_ended() {
    // At another moment each time: it has ended before, between two steps, or after.
    for mode in [AttachMode::Running, AttachMode::StopWhileAttaching] {
        for _ in 0..100 {
            let mut target = Target::start(&["idle", "10"]);
            let pid = target.pid();
            let attached = std::thread::scope(|scope| {
                let attached = scope.spawn(move || Capture::attach(pid, mode, &options()));
                target.end();
                attached.join().unwrap()
            });
            match attached {
                Ok(mut capture) => {
                    collect(&mut capture, "its end", |events| story(events, pid).contains(&"end"));
                }
                Err(error) => {
                    use stackpulse_perf::OpenError::{NoSuchProcess, Zombie};
                    assert!(matches!(error, NoSuchProcess { .. } | Zombie { .. }), "{error}");
                }
            }
        }
    }
}
