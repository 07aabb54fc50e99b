//! Recordings of more than processes: control groups, CPUs, everything that runs.

use crate::harness::{alone, await_that, control_groups, is_root, skip};
use crate::scene::{Recording, Running, Scene, options};
use stackpulse_record::{ErrorKind, Recorder};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Lets a recorder go until it has written so many samples, and reads its file.
fn finish(scene: &Scene, mut recorder: Recorder, path: &Path, samples: u64) -> Recording {
    await_that("samples", || {
        recorder.poll(Duration::from_millis(20)).unwrap();
        recorder.summary().samples_written >= samples
    });
    let (summary, _) = recorder.finish().unwrap();
    scene.recording(summary, &std::fs::read(path).unwrap())
}

#[test]
fn everything_that_runs_is_recorded_with_names_of_what_ran_before() {
    if !is_root() {
        return;
    }
    let _alone = alone();
    let scene = Scene::new();
    let target = Running::start(&scene, &["spin"]);
    let path = scene.path("everything.spool");
    let recorder = Recorder::system_wide(&path, &options()).unwrap();
    let recording = finish(&scene, recorder, &path, 1000);
    assert!(recording.is_sound);
    assert_eq!(recording.pids_within("in_parent"), [target.pid()]);
    assert!(recording.processes.contains(&std::process::id()), "and this test");
}

#[test]
fn only_the_cpus_asked_for_are_sampled() {
    if !is_root() {
        return;
    }
    let _alone = alone();
    let scene = Scene::new();
    let _target = Running::start(&scene, &["spin"]);
    let path = scene.path("one.spool");
    let mut options = options();
    options.cpus = Some(vec![0]);
    let recorder = Recorder::system_wide(&path, &options).unwrap();
    assert_eq!(recorder.settings().cpus, 1);
    let recording = finish(&scene, recorder, &path, 200);
    assert_eq!(recording.cpus, [0]);
    options.cpus = Some(vec![4095]);
    let refused = Recorder::system_wide(&path, &options).map(|_| ()).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidInput, "{refused}");
}

/// A control group of this test; removed when dropped.
struct Group(PathBuf);

impl Group {
    fn new() -> Option<Self> {
        let path = control_groups()?.join(format!("stackpulse-record-test-{}", std::process::id()));
        std::fs::create_dir(&path).ok()?;
        let group = Self(path);
        group.0.join("cgroup.procs").exists().then_some(group)
    }

    fn take(&self, pid: u32) {
        std::fs::write(self.0.join("cgroup.procs"), pid.to_string()).unwrap();
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Its last process may still be on its way out.
        await_that("the group to be empty", || std::fs::remove_dir(&self.0).is_ok());
    }
}

#[test]
fn a_control_group_is_recorded_and_nothing_outside_it() {
    if !is_root() {
        return;
    }
    let _alone = alone();
    let scene = Scene::new();
    let Some(group) = Group::new() else {
        return skip("no control group of version 2 can be made");
    };
    let inside = Running::start(&scene, &["spin"]);
    let _outside = Running::start(&scene, &["spin"]);
    group.take(inside.pid());
    let path = scene.path("group.spool");
    let recorder = Recorder::control_group(&group.0, &path, &options()).unwrap();
    let recording = finish(&scene, recorder, &path, 200);
    drop(inside);
    assert!(recording.is_sound);
    assert_eq!(recording.processes.len(), 1);
    assert!(recording.within("in_parent") > 100);
    let refused =
        Recorder::control_group(scene.path("."), &path, &options()).map(|_| ()).unwrap_err();
    assert!(refused.to_string().len() > 20, "{refused}");
}
