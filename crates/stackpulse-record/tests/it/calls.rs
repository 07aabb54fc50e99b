//! What the calls promise.

use crate::harness::await_that;
use crate::scene::{Running, Scene, options};
use stackpulse_record::process::{Launch, SuspendedLaunchedProcess};
use stackpulse_record::{AttachMode, AttachOutcome, ErrorKind, Recorder, RefreshOutcome};
use stackpulse_spool::{Record, Replay, State, text};
use std::time::Duration;

const STOP: AttachMode = AttachMode::StopWhileAttaching;

/// A target that works without end, and its recorder.
fn spinning(scene: &Scene) -> (Running, Recorder<Vec<u8>>) {
    let target = Running::start(scene, &["spin"]);
    let recorder =
        Recorder::attach_with_writer(target.pid(), Vec::new(), STOP, &options()).unwrap();
    (target, recorder)
}

fn wait_for_samples(recorder: &mut Recorder<Vec<u8>>, count: u64) {
    await_that("samples", || {
        recorder.poll(Duration::from_millis(10)).unwrap();
        recorder.summary().samples_written >= count
    });
}

#[test]
fn a_recorder_can_be_sent_to_another_thread() {
    fn is_send<T: Send>() {}
    is_send::<Recorder>();
    is_send::<Recorder<Vec<u8>>>();
}

#[test]
fn who_never_polls_still_gets_a_whole_file() {
    let scene = Scene::new();
    let (recorder, mut child) = scene.launch(&["work", "100"], &options());
    child.wait().unwrap();
    let (summary, bytes) = recorder.finish().unwrap();
    let recording = scene.recording(summary, &bytes);
    assert_eq!(recording.state, State::Finished);
    assert!(recording.within("in_child") > 50);
}

#[test]
fn polls_tell_every_sample_once() {
    let scene = Scene::new();
    let (mut recorder, mut child) = scene.launch(&["work", "300"], &options());
    let mut told = 0;
    while recorder.active_process_count().unwrap() > 0 {
        told += recorder.poll(Duration::from_millis(20)).unwrap().samples;
    }
    recorder.flush().unwrap();
    told += recorder.poll(Duration::from_millis(500)).unwrap().samples;
    child.wait().unwrap();
    let (summary, _) = recorder.finish().unwrap();
    assert!(told <= summary.samples_written && told + 5 >= summary.samples_written, "{told}");
}

#[test]
fn a_poll_ends_when_it_is_interrupted_and_when_the_last_process_ends() {
    let scene = Scene::new();
    let mut options = options();
    // Nothing is published meanwhile.
    options.publish_interval = Duration::from_secs(3600);
    let mut target = Running::start(&scene, &["spin"]);
    let mut recorder =
        Recorder::attach_with_writer(target.pid(), Vec::new(), STOP, &options).unwrap();
    let for_ever = Duration::from_secs(3600);
    let interrupter = recorder.interrupter();
    let other = std::thread::spawn(move || interrupter.interrupt());
    recorder.poll(for_ever).unwrap();
    other.join().unwrap();
    target.end();
    while recorder.active_process_count().unwrap() > 0 {
        recorder.poll(for_ever).unwrap();
    }
    recorder.finish().unwrap();
}

#[test]
fn what_was_flushed_is_in_the_file() {
    let scene = Scene::new();
    let mut options = options();
    // Nothing is published but by flushing.
    options.publish_interval = Duration::from_secs(3600);
    let target = Running::start(&scene, &["spin"]);
    let path = scene.path("flushed.spool");
    let mut recorder = Recorder::attach(target.pid(), &path, STOP, &options).unwrap();
    let samples = || {
        let bytes = std::fs::read(&path).unwrap();
        let mut replay = Replay::open(&bytes[..]).unwrap();
        let mut count = 0;
        while let Some(record) = replay.next().unwrap() {
            count += u64::from(matches!(record, Record::Sample(_)));
        }
        assert_eq!(replay.damage(), []);
        count
    };
    await_that("samples that are flushed", || {
        recorder.flush().unwrap();
        samples() > 20
    });
    recorder.flush().unwrap();
    let written = recorder.summary().samples_written;
    assert!(samples() >= written, "{written}");
    recorder.finish().unwrap();
}

#[test]
fn one_reader_follows_the_spool_and_sees_all_of_it_in_order() {
    let scene = Scene::new();
    let suspended = SuspendedLaunchedProcess::launch(&Launch {
        program: scene.life().into(),
        arguments: vec!["work".into(), "400".into()],
        ..Launch::default()
    })
    .unwrap();
    let path = scene.path("followed.spool");
    let mut options = options();
    options.publish_interval = Duration::from_millis(50);
    let mut recorder =
        Recorder::attach(suspended.pid(), &path, AttachMode::OnExec, &options).unwrap();
    let mut tail = recorder.tail().unwrap();
    assert_eq!(recorder.tail().unwrap_err().kind(), ErrorKind::InvalidInput);
    let mut child = suspended.resume().unwrap();
    let (mut lines, mut times, mut looks) = (Vec::new(), Vec::new(), 0);
    let mut follow = |lines: &mut Vec<String>| {
        let before = lines.len();
        while let Some(record) = tail.next().unwrap() {
            if let Record::Sample(sample) = record {
                times.push(sample.time_ns);
            }
            lines.push(text::line(&record).to_string());
        }
        lines.len() > before
    };
    while recorder.active_process_count().unwrap() > 0 {
        recorder.poll(Duration::from_millis(10)).unwrap();
        looks += u32::from(follow(&mut lines));
    }
    child.wait().unwrap();
    recorder.finish().unwrap();
    follow(&mut lines);
    assert!(looks >= 3, "it was published in parts: {looks}");
    assert!(times.is_sorted());
    let bytes = std::fs::read(&path).unwrap();
    let mut replay = Replay::open(&bytes[..]).unwrap();
    let mut all = Vec::new();
    while let Some(record) = replay.next().unwrap() {
        all.push(text::line(&record).to_string());
    }
    assert_eq!(lines, all);
}

#[test]
fn a_recording_into_a_writer_cannot_be_followed() {
    let scene = Scene::new();
    let (mut recorder, mut child) = scene.launch(&["work", "1"], &options());
    assert_eq!(recorder.tail().unwrap_err().kind(), ErrorKind::InvalidInput);
    child.wait().unwrap();
}

#[test]
fn processes_are_attached_once_and_gone_ones_are_told() {
    let scene = Scene::new();
    let (mut first, mut recorder) = spinning(&scene);
    let mut second = Running::start(&scene, &["spin"]);
    assert_eq!(recorder.attach_process(second.pid(), STOP).unwrap(), AttachOutcome::Attached);
    assert_eq!(
        recorder.attach_process(second.pid(), STOP).unwrap(),
        AttachOutcome::AlreadyAttached
    );
    assert!(recorder.process_is_active(second.pid()).unwrap());
    assert!(recorder.has_active_processes_except(first.pid()).unwrap());
    assert_eq!(recorder.active_process_count().unwrap(), 2);
    wait_for_samples(&mut recorder, 50);
    second.end();
    assert_eq!(recorder.attach_process(second.pid(), STOP).unwrap(), AttachOutcome::Exited);
    await_that("its end", || !recorder.process_is_active(second.pid()).unwrap());
    assert!(!recorder.has_active_processes_except(first.pid()).unwrap());
    first.end();
    await_that("the end", || recorder.active_process_count().unwrap() == 0);
    let (summary, bytes) = recorder.finish().unwrap();
    let recording = scene.recording(summary, &bytes);
    assert_eq!(recording.processes.len(), 2);
    assert_eq!(recording.pids_within("in_parent").len(), 2);
}

#[test]
fn threads_are_looked_for_in_followed_processes_only() {
    let scene = Scene::new();
    let (mut target, mut recorder) = spinning(&scene);
    assert_eq!(
        recorder.refresh_threads(target.pid()).unwrap(),
        RefreshOutcome::Refreshed { added: 0 }
    );
    let unknown = recorder.refresh_threads(std::process::id()).unwrap_err();
    assert_eq!(unknown.kind(), ErrorKind::InvalidInput);
    target.signal(rustix::process::Signal::KILL);
    await_that("its end", || {
        !matches!(recorder.refresh_threads(target.pid()), Ok(RefreshOutcome::Refreshed { .. }))
    });
    target.end();
    recorder.finish().unwrap();
}

#[test]
fn targets_that_cannot_be_are_named_by_kind() {
    let scene = Scene::new();
    let kind = |pid| {
        let attached = Recorder::attach(pid, scene.path("none.spool"), STOP, &options());
        let kind = attached.map(|_| ()).unwrap_err().kind();
        assert!(!scene.path("none.spool").exists(), "nothing is left behind");
        kind
    };
    assert_eq!(kind(0), ErrorKind::InvalidInput);
    assert_eq!(kind(u32::MAX), ErrorKind::InvalidInput);
    assert_eq!(kind(std::process::id()), ErrorKind::InvalidInput);
    let mut gone = Running::start(&scene, &["work", "1"]);
    gone.end();
    assert_eq!(kind(gone.pid()), ErrorKind::TargetGone);
}

#[test]
fn a_path_that_cannot_be_made_leaves_the_target_alone() {
    let scene = Scene::new();
    let mut target = Running::start(&scene, &["spin"]);
    let path = scene.path("missing/out.spool");
    let error = Recorder::attach(target.pid(), path, STOP, &options()).map(|_| ()).unwrap_err();
    // It is the output that was not found, and nobody takes that for the target's end.
    assert_eq!(error.kind(), ErrorKind::Io);
    assert_eq!(error.raw_os_error(), Some(2));
    assert!(error.to_string().contains("missing/out.spool"), "{error}");
    assert!(target.lives() && crate::harness::runs(target.pid()));
}

#[test]
fn a_program_that_cannot_be_started_is_named_with_its_errno() {
    let suspended = SuspendedLaunchedProcess::launch(&Launch {
        program: "/nowhere/program".into(),
        ..Launch::default()
    })
    .unwrap();
    let recorder =
        Recorder::attach_with_writer(suspended.pid(), Vec::new(), AttachMode::OnExec, &options());
    let error = suspended.resume().unwrap_err();
    assert_eq!(error.source.raw_os_error(), Some(2));
    assert!(error.to_string().contains("/nowhere/program"), "{error}");
    recorder.unwrap().finish().unwrap();
}

#[test]
fn a_launch_that_is_dropped_never_runs_and_is_reaped() {
    let scene = Scene::new();
    let marker = scene.path("ran");
    let suspended = SuspendedLaunchedProcess::launch(&Launch {
        program: "touch".into(),
        arguments: vec![marker.clone().into()],
        ..Launch::default()
    })
    .unwrap();
    let pid = suspended.pid();
    drop(suspended);
    assert!(!marker.exists());
    assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists());
}

#[test]
fn a_recorder_that_is_dropped_leaves_a_readable_file_that_says_so() {
    let scene = Scene::new();
    let mut target = Running::start(&scene, &["spin"]);
    let path = scene.path("dropped.spool");
    let mut recorder = Recorder::attach(target.pid(), &path, STOP, &options()).unwrap();
    await_that("samples", || {
        recorder.poll(Duration::from_millis(10)).unwrap();
        recorder.summary().samples_written > 50
    });
    let summary = recorder.summary().clone();
    drop(recorder);
    let recording = scene.recording(summary, &std::fs::read(&path).unwrap());
    assert_eq!(recording.state, State::Aborted);
    assert!(recording.within("in_parent") > 50);
    assert!(target.lives() && crate::harness::runs(target.pid()));
}

#[test]
fn every_sample_seen_is_counted_in_one_place() {
    let scene = Scene::new();
    let (mut recorder, mut child) = scene.launch(&["tree", "2"], &options());
    assert!(child.wait().unwrap().success());
    recorder.flush().unwrap();
    let (summary, bytes) = recorder.finish().unwrap();
    let skipped: u64 = summary
        .counters
        .iter()
        .filter(|(name, _)| name.starts_with("skipped.") && name != "skipped.without_time")
        .map(|(_, count)| count)
        .sum();
    assert_eq!(summary.events_seen, summary.samples_written + skipped);
    assert_eq!(summary.bytes_written, bytes.len() as u64);
    assert!(summary.own_cpu_ns > 0 && summary.wall_ns() > 0);
    assert!(summary.counters.is_sorted());
    for name in [
        "copied_bytes",
        "copied_samples",
        "events_lost",
        "frame_pointer.generated",
        "frame_pointer.image",
        "kernel_frames",
        "lifecycle_gaps",
        "own_cpu_ns",
        "ring_bytes",
        "skipped.idle",
        "skipped.kernel_mode",
        "skipped.without_frame",
        "skipped.without_task",
        "throttles",
        "truncated.outside_capture",
        "user_callchain_ignored",
        "wall_ns",
    ] {
        assert!(summary.counter(name).is_some(), "{name} is counted");
    }
    let recording = scene.recording(summary, &bytes);
    assert_eq!(recording.samples.len() as u64, recording.summary.samples_written);
    assert!(recording.samples.iter().map(|seen| seen.time_ns).is_sorted());
}
