//! Ends that come at the wrong time.

use crate::harness::{Scene, info, run, stackpulse, stderr};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Starts a recording and waits until the spool shows samples.
fn recording(spool: &Path, program: &Path, seconds: &str) -> Child {
    let child = stackpulse()
        .args(["record", "--no-kernel", "-o"])
        .arg(spool)
        .arg("--")
        .arg(program)
        .arg(seconds)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    while !std::fs::metadata(spool).is_ok_and(|metadata| metadata.len() > 2000) {
        std::thread::yield_now();
    }
    child
}

fn signal(child: &Child, signal: &str) {
    // The shell's own: a machine may have no other.
    let killed =
        Command::new("sh").args(["-c", &format!("kill {signal} {}", child.id())]).status().unwrap();
    assert!(killed.success());
}

#[test]
fn a_killed_recorder_leaves_everything_it_had_published() {
    let scene = Scene::new();
    let program = scene.compile("shares.c", &[]);
    let spool = scene.path("killed.spool");
    let mut child = recording(&spool, &program, "3");
    signal(&child, "-KILL");
    child.wait().unwrap();
    let facts = info(&spool);
    assert_eq!(facts["state"], "torn");
    assert!(facts["samples"].as_u64() > Some(100), "{facts}");
    let verified = run(["verify", spool.to_str().unwrap()]);
    assert_eq!(verified.status.code(), Some(1));
}

#[test]
fn an_interrupted_recording_is_finished_and_the_signal_passed_on() {
    let scene = Scene::new();
    let program = scene.compile("shares.c", &[]);
    for (name, number) in [("-INT", 2), ("-TERM", 15), ("-HUP", 1)] {
        let spool = scene.path("interrupted.spool");
        let child = recording(&spool, &program, "60");
        signal(&child, name);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(128 + number), "{}", stderr(&output));
        assert_eq!(info(&spool)["state"], "finished");
        std::fs::remove_file(&spool).unwrap();
    }
}

#[test]
fn a_program_that_takes_its_time_to_end_keeps_its_exit_status() {
    let scene = Scene::new();
    let spool = scene.path("x.spool");
    let script = "trap 'sleep 3; exit 9' TERM; echo ready; while :; do sleep 0.05; done";
    let mut command = stackpulse();
    command.args(["record", "-q", "-o"]).arg(&spool).args(["--", "sh", "-c", script]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    signal(&child, "-TERM");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(9), "{}", stderr(&output));
    assert_eq!(info(&spool)["state"], "finished");
}

#[test]
fn a_hang_up_that_nohup_ignores_does_not_end_the_recording() {
    let scene = Scene::new();
    let spool = scene.path("x.spool");
    let mut command = Command::new("sh");
    // Passed on, the signal would end the program before it ends by itself.
    let program = "kill -HUP $PPID; sleep 0.5; exit 4";
    let script = format!(
        "trap '' HUP; {} record -q -o {} -- sh -c '{program}'",
        stackpulse().get_program().display(),
        spool.display()
    );
    let output = command.args(["-c", &script]).output().unwrap();
    assert_eq!(output.status.code(), Some(4), "{}", stderr(&output));
}

#[test]
fn an_interrupt_that_comes_twice_at_once_is_one() {
    let scene = Scene::new();
    let program = scene.compile("shares.c", &[]);
    let mut target = Command::new(&program).arg("600").spawn().unwrap();
    let spool = scene.path("twice.spool");
    let mut command = stackpulse();
    command.args(["record", "-q", "-p", &target.id().to_string(), "-o"]).arg(&spool);
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    while !std::fs::metadata(&spool).is_ok_and(|metadata| metadata.len() > 2000) {
        std::thread::yield_now();
    }
    // As timeout(1) does: to the process, and to its group.
    signal(&child, "-INT");
    let _ = rustix::process::kill_process(
        rustix::process::Pid::from_child(&child),
        rustix::process::Signal::INT,
    );
    assert!(child.wait().unwrap().success());
    assert_eq!(info(&spool)["state"], "finished");
    target.kill().unwrap();
    target.wait().unwrap();
}

#[test]
fn the_exit_status_is_the_programs() {
    let scene = Scene::new();
    let spool = scene.path("x.spool");
    let spool = spool.to_str().unwrap();
    for (script, status) in [("exit 7", 7), ("kill -9 $$", 137), ("exit 0", 0)] {
        let output = run(["record", "-q", "-o", spool, "--", "sh", "-c", script]);
        assert_eq!(output.status.code(), Some(status));
        assert_eq!(stderr(&output), "");
    }
}

#[test]
fn variables_before_the_command_are_set_for_it() {
    let scene = Scene::new();
    let spool = scene.path("x.spool");
    let output = run([
        "record",
        "-q",
        "-o",
        spool.to_str().unwrap(),
        "--",
        "CODE=5",
        "sh",
        "-c",
        "exit $CODE",
    ]);
    assert_eq!(output.status.code(), Some(5));
}

#[test]
fn an_output_that_fills_up_ends_the_recording_with_one_sentence() {
    let output = run(["record", "-o", "/dev/full", "--", "sh", "-c", "true"]);
    assert_eq!(output.status.code(), Some(125));
    assert!(stderr(&output).contains("No space left on device"), "{}", stderr(&output));
    assert_eq!(stderr(&output).lines().count(), 1);
}

#[test]
fn a_spool_on_standard_output_is_not_mixed_with_the_programs_own() {
    let output = run(["record", "-q", "-o", "-", "--", "echo", "what the program says"]);
    assert!(output.status.success());
    assert_eq!(stderr(&output), "what the program says\n");
    let scene = Scene::new();
    std::fs::write(scene.path("x.spool"), &output.stdout).unwrap();
    let verified = run(["verify", scene.path("x.spool").to_str().unwrap()]);
    assert_eq!(verified.status.code(), Some(0));
}

#[test]
fn a_duration_ends_the_recording_of_a_running_process_that_goes_on() {
    let scene = Scene::new();
    let program = scene.compile("shares.c", &[]);
    let mut target = Command::new(&program).arg("60").spawn().unwrap();
    let spool = scene.path("short.spool");
    let pid = target.id().to_string();
    let output = stackpulse()
        .args(["record", "--no-kernel", "-d", "0.5s", "-p", &pid, "-o"])
        .arg(&spool)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(target.try_wait().unwrap().is_none(), "the target runs on");
    assert!(info(&spool)["samples"].as_u64() > Some(0));
    target.kill().unwrap();
    target.wait().unwrap();
}

#[test]
fn an_existing_file_is_kept_as_old() {
    let scene = Scene::new();
    let spool = scene.path("x.spool");
    std::fs::write(&spool, "what was there").unwrap();
    let output = run(["record", "-q", "-o", spool.to_str().unwrap(), "--", "true"]);
    assert!(output.status.success());
    assert_eq!(std::fs::read_to_string(scene.path("x.spool.old")).unwrap(), "what was there");
}
