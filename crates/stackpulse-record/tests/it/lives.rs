//! Lives that processes lead, recorded while they do.

use crate::harness::{await_that, is_part, is_root, run_in_pid_namespace};
use crate::scene::{Recording, Running, Scene, options};
use stackpulse_record::{AttachMode, AttachOutcome, Recorder};
use stackpulse_spool::State;
use std::time::Duration;

/// Nothing is lost, nothing unknown, and the file is whole.
fn assert_sound(recording: &Recording) {
    assert!(recording.is_sound);
    assert_eq!(recording.state, State::Finished);
    let unknown = recording
        .samples
        .iter()
        .find(|seen| seen.frames.iter().any(|frame| frame.starts_with("[unknown")));
    assert!(unknown.is_none(), "{unknown:?}");
    recording.assert_whole();
}

#[test]
fn a_chain_of_execs_is_one_process_with_many_programs() {
    let recording = Scene::new().record(&["chain", "4"]);
    assert_sound(&recording);
    assert_eq!(recording.processes.len(), 1);
    assert_eq!(recording.execs, 5, "the first, and four links");
    assert!(recording.within("in_link") > 40 && recording.within("in_last_link") > 10);
}

#[test]
fn a_tree_of_forks_is_followed_to_its_leaves() {
    let recording = Scene::new().record(&["tree", "5"]);
    assert_sound(&recording);
    assert_eq!((recording.processes.len(), recording.forks), (6, 5));
    assert_eq!(recording.pids_within("in_parent").len(), 5);
    assert_eq!(recording.pids_within("in_child").len(), 1);
}

#[test]
fn a_daemon_is_followed_after_its_parents_have_ended() {
    let recording = Scene::new().record(&["daemon"]);
    assert_sound(&recording);
    assert_eq!(recording.processes.len(), 3);
    assert!(recording.within("in_survivor") > 40, "{}", recording.within("in_survivor"));
}

#[test]
fn children_that_share_memory_until_their_exec_are_told_apart() {
    for mode in ["vfork", "spawn"] {
        let recording = Scene::new().record(&[mode]);
        assert_sound(&recording);
        let (parent, child) =
            (recording.pids_within("in_parent"), recording.pids_within("in_child"));
        assert_eq!((parent.len(), child.len()), (1, 1), "{mode}");
        assert_ne!(parent, child, "{mode}");
    }
}

#[test]
fn a_process_outlives_its_main_thread() {
    let recording = Scene::new().record(&["leader"]);
    assert_sound(&recording);
    assert_eq!((recording.processes.len(), recording.threads), (1, 2));
    assert!(recording.within("in_survivor") > 40);
}

#[test]
fn ten_thousand_short_processes_are_all_told() {
    let recording = Scene::new().record(&["processes", "10000"]);
    assert_eq!(recording.processes.len(), 10_001);
    assert_eq!(recording.forks, 10_000);
    // Samples may be lost on a busy machine, never untold.
    assert_eq!(recording.lost, recording.summary.events_lost);
    assert!(recording.within("in_parent") > 20);
    let per_process = recording.summary.bytes_written / 10_000;
    assert!(per_process < 40, "{per_process} bytes a process");
}

#[test]
fn twenty_thousand_short_threads_are_all_told() {
    let recording = Scene::new().record(&["threads", "20000"]);
    assert_eq!(recording.processes.len(), 1);
    // A number that is used again while the end of its last owner has not been read may count once.
    assert!((20_000..=20_001).contains(&recording.threads), "{}", recording.threads);
    assert!(recording.within("in_thread") > 100);
    assert_eq!(recording.lost, recording.summary.events_lost);
}

#[test]
fn libraries_that_follow_each_other_at_one_address_keep_their_names() {
    let scene = Scene::new();
    let libraries = [scene.shared_object("in_a"), scene.shared_object("in_b")];
    let [a, b] = libraries.each_ref().map(|path| path.to_str().unwrap());
    let recording = scene.record(&["libraries", a, b]);
    assert_sound(&recording);
    let (in_a, in_b) = (recording.within("in_a"), recording.within("in_b"));
    // A hundred milliseconds in each, in turns of five.
    assert!((50..200).contains(&in_a) && (50..200).contains(&in_b), "{in_a} and {in_b}");
    let both = recording.samples.iter().filter(|seen| {
        let has = |name: &str| seen.frames.iter().any(|frame| frame == name);
        has("in_a") && has("in_b")
    });
    assert_eq!(both.count(), 0);
}

#[test]
fn processes_that_may_not_be_looked_into_are_recorded_on() {
    let recording = Scene::new().record(&["undumpable"]);
    assert_eq!(recording.processes.len(), 2);
    assert!(recording.within("in_parent") > 20 && recording.within("in_child") > 20);
}

#[test]
fn a_program_that_gets_others_rights_by_its_exec_is_recorded_until_then() {
    use std::os::unix::fs::PermissionsExt;
    if !is_root() {
        return;
    }
    let scene = Scene::new();
    let program = scene.path("inner");
    std::fs::copy(scene.life(), &program).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o4755)).unwrap();
    let recording = scene.record(&["setuid", program.to_str().unwrap()]);
    assert_sound(&recording);
    assert_eq!((recording.processes.len(), recording.state), (1, State::Finished));
    assert!(recording.within("in_parent") > 10);
    // The kernel ends all events of a process that gets rights by its exec (begin_new_exec in fs/exec.c).
    assert_eq!(recording.within("in_child"), 0);
}

#[test]
fn programs_in_other_namespaces_and_on_overlays_are_found() {
    if !is_root() {
        return;
    }
    for mode in ["namespaces", "overlay"] {
        let scene = Scene::new();
        let hidden = scene.path("hidden");
        std::fs::create_dir(&hidden).unwrap();
        let recording = scene.record(&[mode, hidden.to_str().unwrap()]);
        assert_sound(&recording);
        assert!(recording.within("in_child") > 30, "{mode}: {}", recording.within("in_child"));
        assert!(!hidden.join("inner").exists(), "nobody else sees it");
    }
}

#[test]
fn a_program_deleted_or_replaced_while_it_runs_keeps_its_stacks() {
    let scene = Scene::new();
    std::fs::copy(scene.life(), scene.path("life.kept")).unwrap();
    let recording = scene.record(&["deleted"]);
    assert_sound(&recording);
    assert!(recording.within("in_parent") > 30);

    let scene = Scene::new();
    std::fs::copy(scene.life(), scene.path("life.kept")).unwrap();
    let other = scene.path("other");
    std::fs::write(&other, "no program at all").unwrap();
    let recording = scene.record(&["replaced", other.to_str().unwrap()]);
    assert!(recording.is_sound);
    recording.assert_whole();
    assert!(recording.within("in_parent") > 30);
}

#[test]
fn what_happens_while_sampling_is_paused_is_known_afterwards() {
    let scene = Scene::new();
    let library = scene.shared_object("in_a");
    let mut target = Running::start(&scene, &["obey", library.to_str().unwrap()]);
    assert_eq!(target.line(), "ready");
    let mode = AttachMode::StopWhileAttaching;
    let mut recorder =
        Recorder::attach_with_writer(target.pid(), Vec::new(), mode, &options()).unwrap();
    recorder.disable().unwrap();
    target.obey("w", "w");
    target.obey("l", "l");
    target.obey("x", "ready");
    target.obey("f", "f");
    recorder.flush().unwrap();
    let paused = recorder.summary().samples_written;
    recorder.enable().unwrap();
    target.obey("L", "L");
    target.obey("r", "r");
    target.end();
    await_that("the end", || recorder.active_process_count().unwrap() == 0);
    let (summary, bytes) = recorder.finish().unwrap();
    let recording = scene.recording(summary, &bytes);
    assert_sound(&recording);
    assert_eq!((recording.processes.len(), recording.execs), (2, 1));
    assert_eq!(recording.marks.len(), 2, "{:?}", recording.marks);
    assert!(recording.within("in_a") > 30, "{}", recording.within("in_a"));
    assert!(recording.within("in_child") > 0);
    // A sample or two may have been under way when the pause began.
    assert!(recording.within("in_parent") < 5 && paused < 5, "{paused} samples while paused");
}

#[test]
fn a_process_records_itself_while_it_runs() {
    let this = std::process::id();
    let stopped =
        Recorder::attach_with_writer(this, Vec::new(), AttachMode::StopWhileAttaching, &options());
    assert_eq!(stopped.unwrap_err().kind(), stackpulse_record::ErrorKind::InvalidInput);
    let recorder = Recorder::attach_with_writer(this, Vec::new(), AttachMode::Running, &options());
    let mut recorder = recorder.unwrap();
    let mut sum = 0u64;
    await_that("samples of this test", || {
        sum = (0..1_000_000u64).fold(sum, |sum, at| std::hint::black_box(sum ^ at));
        recorder.poll(Duration::ZERO).unwrap();
        recorder.summary().samples_written > 20
    });
    let (summary, _) = recorder.finish().unwrap();
    assert!(summary.samples_written > 20);
}

#[test]
fn two_hundred_children_that_live_already_are_all_followed() {
    let scene = Scene::new();
    let mut parent = Running::start(&scene, &["herd", "200"]);
    assert_eq!(parent.line(), "ready");
    let mode = AttachMode::StopWhileAttaching;
    let mut recorder =
        Recorder::attach_with_writer(parent.pid(), Vec::new(), mode, &options()).unwrap();
    assert_eq!(recorder.active_process_count().unwrap(), 201);
    assert_eq!(
        recorder.attach_process(parent.pid(), mode).unwrap(),
        AttachOutcome::AlreadyAttached
    );
    await_that("samples", || {
        recorder.poll(Duration::from_millis(20)).unwrap();
        recorder.summary().samples_written > 400
    });
    parent.end();
    let (summary, bytes) = recorder.finish().unwrap();
    let recording = scene.recording(summary, &bytes);
    assert_eq!((recording.processes.len(), recording.lost), (201, 0));
    assert!(recording.pids_within("work").len() > 100);
}

#[test]
fn of_many_processes_each_stands_still_only_while_its_own_events_are_opened() {
    let scene = Scene::new();
    let mut parent = Running::start(&scene, &["clocks", "200"]);
    assert_eq!(parent.line(), "ready");
    let start = std::time::Instant::now();
    let mode = AttachMode::StopWhileAttaching;
    let recorder =
        Recorder::attach_with_writer(parent.pid(), Vec::new(), mode, &options()).unwrap();
    let whole = start.elapsed();
    // They look at their clocks every two milliseconds, and tell the longest time between two looks.
    let said = parent.ask("");
    let mut longest_us: Vec<u64> = said.split(' ').map(|gap| gap.parse().unwrap()).collect();
    longest_us.sort_unstable();
    let median = Duration::from_micros(longest_us[100]);
    eprintln!("attached in {whole:?}; the longest stop of each, at the median: {median:?}");
    assert!(median < whole / 4, "{median:?} of {whole:?}");
    recorder.finish().unwrap();
}

#[test]
fn a_pid_that_is_used_again_never_shows_what_was_before() {
    const NAME: &str = "lives::a_pid_that_is_used_again_never_shows_what_was_before";
    if is_part("namespace") {
        let scene = Scene::new();
        let library = scene.shared_object("in_a");
        let mut shell = Running::start(&scene, &["obey", library.to_str().unwrap()]);
        assert_eq!(shell.line(), "ready");
        let mode = AttachMode::Running;
        let mut recorder =
            Recorder::attach_with_writer(shell.pid(), Vec::new(), mode, &options()).unwrap();
        // The first is a loop without a library, the second loads one: their addresses show other things.
        let mut first = start_with_pid(&scene, &["spin"]);
        assert_eq!(recorder.attach_process(3000, mode).unwrap(), AttachOutcome::Attached);
        await_that("samples of the first", || {
            recorder.poll(Duration::from_millis(10)).unwrap();
            recorder.summary().samples_written > 30
        });
        first.end();
        let mut second = start_with_pid(&scene, &["obey", library.to_str().unwrap()]);
        assert_eq!(second.line(), "ready");
        assert_eq!(recorder.attach_process(3000, mode).unwrap(), AttachOutcome::Attached);
        second.obey("L", "L");
        second.end();
        let (summary, bytes) = recorder.finish().unwrap();
        let recording = scene.recording(summary, &bytes);
        assert_sound(&recording);
        let of = |generation| {
            recording
                .samples
                .iter()
                .filter(move |seen| seen.pid == 3000 && seen.generation == generation)
        };
        let has = |name: &'static str| {
            move |seen: &&crate::scene::Seen| seen.frames.iter().any(|frame| frame == name)
        };
        assert!(of(0).filter(has("in_parent")).count() > 20);
        assert_eq!(of(0).filter(has("in_a")).count(), 0);
        assert!(of(1).filter(has("in_a")).count() > 30);
        assert_eq!(of(1).filter(has("in_parent")).count(), 0);
        return;
    }
    run_in_pid_namespace(NAME);
}

/// In a pid namespace of its own nobody else takes the pid; threads of this test may, so it is tried again.
fn start_with_pid(scene: &Scene, words: &[&str]) -> Running {
    for _ in 0..100 {
        std::fs::write("/proc/sys/kernel/ns_last_pid", "2999").unwrap();
        let running = Running::start(scene, words);
        if running.pid() == 3000 {
            return running;
        }
    }
    panic!("pid 3000 could not be had");
}
