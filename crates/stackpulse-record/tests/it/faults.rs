//! Recordings in which something fails.

use crate::harness::{Talker, await_that, has_tools, is_part, is_root, part, runs, this_program};
use crate::scene::{Running, Scene, options};
use rustix::process::Signal;
use stackpulse_record::{AttachMode, ErrorKind, Recorder};
use stackpulse_spool::{Replay, State};
use std::io::{self, Write};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const STOP: AttachMode = AttachMode::StopWhileAttaching;

/// A disk with room for so many bytes.
#[derive(Clone)]
struct Disk(Arc<Mutex<Vec<u8>>>, usize);

impl Disk {
    fn with_room(bytes: usize) -> Self {
        Self(Arc::default(), bytes)
    }

    fn bytes(&self) -> Vec<u8> {
        self.0.lock().unwrap().clone()
    }
}

impl Write for Disk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut held = self.0.lock().unwrap();
        let len = bytes.len().min(self.1 - held.len());
        if len == 0 {
            return Err(io::Error::from_raw_os_error(28));
        }
        held.extend_from_slice(&bytes[..len]);
        Ok(len)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Polls until the recording fails.
fn failure<W: Write + Send>(recorder: &mut Recorder<W>) -> stackpulse_record::Error {
    let mut failed = None;
    await_that("a failure", || {
        failed = recorder.poll(Duration::from_millis(10)).err();
        failed.is_some()
    });
    failed.unwrap()
}

#[test]
fn a_full_disk_ends_the_recording_and_not_the_target() {
    let scene = Scene::new();
    let mut target = Running::start(&scene, &["spin"]);
    let mut options = options();
    options.publish_interval = Duration::from_millis(20);
    let disk = Disk::with_room(4000);
    let mut recorder =
        Recorder::attach_with_writer(target.pid(), disk.clone(), STOP, &options).unwrap();
    let error = failure(&mut recorder);
    assert_eq!((error.kind(), error.raw_os_error()), (ErrorKind::Io, Some(28)), "{error}");
    assert!(target.lives() && runs(target.pid()));
    let summary = recorder.summary().clone();
    let recording = scene.recording(summary, &disk.bytes());
    assert!(recording.is_sound && matches!(recording.state, State::Torn { .. }));
    assert!(recording.within("in_parent") > 0);
}

#[test]
fn a_disk_that_is_full_from_the_start_is_told_by_the_attach() {
    let scene = Scene::new();
    let mut target = Running::start(&scene, &["spin"]);
    let error =
        Recorder::attach(target.pid(), "/dev/full", STOP, &options()).map(|_| ()).unwrap_err();
    assert_eq!((error.kind(), error.raw_os_error()), (ErrorKind::Io, Some(28)), "{error}");
    assert!(target.lives() && runs(target.pid()));
}

#[test]
fn a_reader_that_goes_away_ends_the_recording_and_not_the_target() {
    let scene = Scene::new();
    let mut target = Running::start(&scene, &["spin"]);
    let (read, write) = io::pipe().unwrap();
    let mut recorder = Recorder::attach_with_writer(target.pid(), write, STOP, &options()).unwrap();
    drop(read);
    let error = failure(&mut recorder);
    assert_eq!((error.kind(), error.raw_os_error()), (ErrorKind::Io, Some(32)), "{error}");
    assert!(target.lives() && runs(target.pid()));
    // The failure was told; there is nothing left to finish.
    assert_eq!(recorder.finish().map(|_| ()).unwrap_err().kind(), ErrorKind::InvalidInput);
}

#[test]
fn a_failure_at_the_end_is_told_by_finish() {
    let scene = Scene::new();
    let mut options = options();
    options.publish_interval = Duration::from_secs(3600);
    let target = Running::start(&scene, &["spin"]);
    // Room for the header and the first block, and for nothing else.
    let disk = Disk::with_room(1000);
    let recorder = Recorder::attach_with_writer(target.pid(), disk, STOP, &options).unwrap();
    std::thread::sleep(Duration::from_millis(50));
    let error = recorder.finish().map(|_| ()).unwrap_err();
    assert_eq!((error.kind(), error.raw_os_error()), (ErrorKind::Io, Some(28)), "{error}");
}

/// A writer that takes long.
struct Slow(Vec<u8>, Duration);

impl Write for Slow {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        std::thread::sleep(std::mem::take(&mut self.1));
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn loss_behind_a_slow_writer_is_told_in_time_and_names_stay_right() {
    let scene = Scene::new();
    let mut target = Running::start(&scene, &["spin"]);
    let mut options = options();
    options.sample_rate = stackpulse_record::SampleRate::hz(4000).unwrap();
    options.stack_size = 65_528;
    options.ring_buffer_stacks = 1;
    options.publish_interval = Duration::from_millis(20);
    // Longer than the pool of copies lasts: 256 MiB of 64 KiB each.
    let mut recorder = Recorder::attach_with_writer(
        target.pid(),
        Slow(Vec::new(), Duration::from_secs(3)),
        STOP,
        &options,
    )
    .unwrap();
    await_that("samples after the loss", || {
        recorder.poll(Duration::from_millis(100)).unwrap();
        let summary = recorder.summary();
        summary.events_lost > 0 && summary.samples_written > 2000
    });
    target.end();
    await_that("the end", || recorder.active_process_count().unwrap() == 0);
    let (summary, slow) = recorder.finish().unwrap();
    let recording = scene.recording(summary, &slow.0);
    assert!(recording.is_sound);
    assert_eq!(recording.lost, recording.summary.events_lost);
    assert!(recording.lost > 0);
    recording.assert_whole();
}

#[test]
fn a_target_that_is_killed_stopped_or_traced_is_recorded_as_far_as_it_goes() {
    let scene = Scene::new();
    let mut target = Running::start(&scene, &["spin"]);
    let mut recorder =
        Recorder::attach_with_writer(target.pid(), Vec::new(), STOP, &options()).unwrap();
    await_that("samples", || {
        recorder.poll(Duration::from_millis(10)).unwrap();
        recorder.summary().samples_written > 30
    });
    target.signal(Signal::STOP);
    let is_stopped = |target: &Running| crate::harness::states(target.pid()).contains('T');
    await_that("the stop", || is_stopped(&target));
    recorder.flush().unwrap();
    let stopped = recorder.summary().samples_written;
    assert!(recorder.process_is_active(target.pid()).unwrap());
    // Attaching once more does not wake it.
    let mut other =
        Recorder::attach_with_writer(target.pid(), Vec::new(), STOP, &options()).unwrap();
    // Let go by ptrace, it goes through the kernel from one stop to the other, and runs nothing of its own.
    await_that("the stop again", || is_stopped(&target));
    assert!(other.process_is_active(target.pid()).unwrap());
    other.finish().unwrap();
    assert!(is_stopped(&target), "others' stops are never undone");
    recorder.flush().unwrap();
    assert!(recorder.summary().samples_written <= stopped + 1, "it has run");
    target.signal(Signal::CONT);
    await_that("samples after the stop", || {
        recorder.poll(Duration::from_millis(10)).unwrap();
        recorder.summary().samples_written > stopped + 30
    });
    target.end();
    await_that("the end", || recorder.active_process_count().unwrap() == 0);
    let (summary, bytes) = recorder.finish().unwrap();
    let recording = scene.recording(summary, &bytes);
    assert_eq!(recording.state, State::Finished);
    recording.assert_whole();
}

#[test]
fn a_recorder_that_is_killed_or_stopped_leaves_the_target_running_and_the_file_readable() {
    const NAME: &str = "faults::a_recorder_that_is_killed_or_stopped_leaves_the_target_running_and_the_file_readable";
    if is_part("recorder") {
        let pid = std::env::var("STACKPULSE_TEST_PID").unwrap().parse().unwrap();
        let path = std::env::var_os("STACKPULSE_TEST_SPOOL").unwrap();
        let mut options = options();
        options.publish_interval = Duration::from_millis(50);
        let mut recorder = Recorder::attach(pid, path, STOP, &options).unwrap();
        eprintln!("recording");
        loop {
            recorder.poll(Duration::from_millis(50)).unwrap();
        }
    }
    let scene = Scene::new();
    let mut target = Running::start(&scene, &["spin"]);
    let path = scene.path("killed.spool");
    let mut command = part(&[], &this_program(), NAME, "recorder");
    command
        .env("STACKPULSE_TEST_PID", target.pid().to_string())
        .env("STACKPULSE_TEST_SPOOL", &path);
    let mut recorder = Talker::start(&mut command);
    recorder.hear("recording");
    let samples = || {
        let bytes = std::fs::read(&path).unwrap();
        let mut replay = Replay::open(&bytes[..]).unwrap();
        let mut count = 0;
        while let Some(record) = replay.next().unwrap() {
            count += usize::from(matches!(record, stackpulse_spool::Record::Sample(_)));
        }
        assert_eq!(replay.damage(), []);
        count
    };
    await_that("samples", || samples() > 100);
    let pid = rustix::process::Pid::from_child(&recorder.child);
    rustix::process::kill_process(pid, Signal::STOP).unwrap();
    std::thread::sleep(Duration::from_millis(700));
    let stopped = samples();
    rustix::process::kill_process(pid, Signal::CONT).unwrap();
    await_that("samples after the stop", || samples() > stopped + 100);
    recorder.child.kill().unwrap();
    recorder.child.wait().unwrap();
    assert!(samples() > stopped + 100);
    let bytes = std::fs::read(&path).unwrap();
    let mut replay = Replay::open(&bytes[..]).unwrap();
    while replay.next().unwrap().is_some() {}
    assert!(matches!(replay.state(), State::Torn { .. }));
    assert!(target.lives() && runs(target.pid()));
}

#[test]
fn what_a_user_may_not_do_is_refused_with_what_would_help() {
    const NAME: &str = "faults::what_a_user_may_not_do_is_refused_with_what_would_help";
    if is_part("user") {
        // A process of another user, and memory that may not be locked.
        let other = std::env::var("STACKPULSE_TEST_PID").unwrap().parse().unwrap();
        let error = Recorder::attach_with_writer(other, Vec::new(), STOP, &options()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Permission, "{error}");
        assert!(error.to_string().len() > 40, "it says what would help: {error}");
        return;
    }
    if !is_root() || !has_tools(&["setpriv"]) {
        return;
    }
    let scene = Scene::new();
    let mut target = Running::start(&scene, &["spin"]);
    let program = scene.path("it");
    std::fs::copy(this_program(), &program).unwrap();
    let words = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
    let mut command = part(&words, &program, NAME, "user");
    let output = command.env("STACKPULSE_TEST_PID", target.pid().to_string()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(target.lives() && runs(target.pid()));
}

#[test]
fn few_descriptors_are_raised_to_what_is_allowed() {
    const NAME: &str = "faults::few_descriptors_are_raised_to_what_is_allowed";
    if is_part("few") {
        let scene = Scene::new();
        let mut parent = Running::start(&scene, &["herd", "100"]);
        assert_eq!(parent.line(), "ready");
        let attached = Recorder::attach_with_writer(parent.pid(), Vec::new(), STOP, &options());
        match std::env::var("STACKPULSE_TEST_HARD").as_deref() {
            Ok("64") => {
                let error = attached.map(|_| ()).unwrap_err();
                assert_eq!(error.raw_os_error(), Some(24), "{error}");
                assert!(error.to_string().contains("ulimit -n"), "{error}");
            }
            _ => assert_eq!(attached.unwrap().active_process_count().unwrap(), 101),
        }
        return;
    }
    if !has_tools(&["prlimit"]) {
        return;
    }
    for hard in ["64", "4096"] {
        let limit = format!("--nofile=64:{hard}");
        let mut command = part(&["prlimit", &limit], &this_program(), NAME, "few");
        let output = command.env("STACKPULSE_TEST_HARD", hard).output().unwrap();
        assert!(output.status.success(), "{hard}: {}", String::from_utf8_lossy(&output.stderr));
    }
}
