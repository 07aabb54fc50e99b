//! Programs that are started to be recorded.

use crate::attach::{collect, options, samples};
use crate::harness::{await_that, is_part, part, this_program};
use crate::target;
use stackpulse_perf::EventKind;
use stackpulse_perf::capture::launch::{Launch, LaunchError, SuspendedProcess};
use stackpulse_perf::capture::{AttachMode, Capture};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

fn launch(program: &str, arguments: &[&str]) -> Launch {
    let arguments = arguments.iter().map(Into::into).collect();
    Launch { program: program.into(), arguments, ..Launch::default() }
}

/// Runs it to its end, and returns its exit code.
fn run(launch: &Launch) -> Result<Option<i32>, LaunchError> {
    let mut process = SuspendedProcess::launch(launch)?.resume()?;
    Ok(process.wait().expect("a child of ours").code())
}

/// Runs a shell's command that writes into a file, and returns what it wrote.
fn output_of(command: &str, change: impl FnOnce(&mut Launch)) -> String {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("out");
    let mut launch = launch("sh", &["-c", &format!("{{ {command}; }} > \"$0\"")]);
    launch.arguments.push(file.clone().into());
    change(&mut launch);
    assert_eq!(run(&launch).unwrap(), Some(0), "{command}");
    std::fs::read_to_string(file).unwrap()
}

fn script(path: &Path, text: &str) {
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn an_exec_that_fails_tells_its_errno_and_the_program() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    std::fs::write(&data, "no program").unwrap();
    let broken = directory.path().join("broken");
    script(&broken, "no program either");
    let cases = [
        (Path::new("/no/such/program"), libc::ENOENT),
        (Path::new("no-such-program-anywhere"), libc::ENOENT),
        (directory.path(), libc::EACCES),
        (&data, libc::EACCES),
    ];
    for (program, errno) in cases {
        let error = run(&launch(program.to_str().unwrap(), &[])).unwrap_err();
        assert_eq!(error.source.raw_os_error(), Some(errno), "{error}");
        assert_eq!(error.program, program);
        assert!(error.to_string().starts_with(&program.display().to_string()), "{error}");
    }
    let interpreter = directory.path().join("interpreter");
    script(&interpreter, "#!/no/such/interpreter\n");
    let error = run(&launch(interpreter.to_str().unwrap(), &[])).unwrap_err();
    assert_eq!(error.source.raw_os_error(), Some(libc::ENOENT), "{error}");
}

#[test]
fn a_program_is_looked_for_in_the_path_of_the_child() {
    let directory = tempfile::tempdir().unwrap();
    script(&directory.path().join("only-there"), "#!/bin/sh\nexit 7\n");
    let mut launch = launch("only-there", &[]);
    assert!(run(&launch).is_err());
    launch.environment.push(("PATH".into(), directory.path().into()));
    assert_eq!(run(&launch).unwrap(), Some(7));
}

#[test]
fn arguments_environment_and_directory_reach_the_program() {
    let said = output_of("echo \"$1|$2|$VARIABLE|$(pwd)\"", |launch| {
        launch.arguments.extend(["a b".into(), "".into()]);
        launch.environment.push(("VARIABLE".into(), "value".into()));
        launch.directory = Some("/".into());
    });
    assert_eq!(said, "a b||value|/\n");
}

#[test]
fn the_program_has_sigpipe_and_a_mask_as_a_shell_would_give_them() {
    let said = output_of("grep -E '^Sig(Blk|Ign)' /proc/self/status", |_| {});
    for line in said.lines() {
        let (name, mask) = line.split_once(":\t").unwrap();
        let mask = u64::from_str_radix(mask, 16).unwrap();
        assert_eq!(mask & 1 << (libc::SIGPIPE - 1), 0, "{name}");
    }
    assert_eq!(said.lines().count(), 2);
}

/// Parent, group and session, as proc_pid_stat(5) has them.
fn relations(pid: u32) -> Vec<String> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields = stat.rsplit_once(") ").unwrap().1.split_whitespace();
    fields.skip(1).take(4).map(str::to_owned).collect()
}

#[test]
fn the_program_stays_in_our_process_group_session_and_terminal() {
    let suspended = SuspendedProcess::launch(&launch("true", &[])).unwrap();
    let own = relations(std::process::id());
    let childs = relations(suspended.pid());
    assert_eq!(childs[0], std::process::id().to_string());
    assert_eq!(childs[1..], own[1..], "group, session, terminal");
}

#[test]
fn dropped_before_its_exec_it_ends_without_having_run_and_is_reaped() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("out");
    let mut launch = launch("sh", &["-c", "echo it ran > \"$0\""]);
    launch.arguments.push(file.clone().into());
    let suspended = SuspendedProcess::launch(&launch).unwrap();
    let path = format!("/proc/{}", suspended.pid());
    assert!(Path::new(&path).exists());
    drop(suspended);
    assert!(!Path::new(&path).exists(), "not even a zombie is left");
    assert!(!file.exists());
}

#[test]
fn a_child_that_was_killed_while_it_waited_is_told_of() {
    let suspended = SuspendedProcess::launch(&launch("true", &[])).unwrap();
    let pid = rustix::process::Pid::from_raw(suspended.pid().try_into().unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    let killed = suspended.resume().map(|mut process| process.wait().unwrap());
    match killed {
        Ok(status) => assert!(!status.success(), "{status}"),
        Err(error) => assert!(error.to_string().starts_with("true: "), "{error}"),
    }
}

#[test]
fn a_child_whose_recorder_is_killed_before_its_exec_ends() {
    const NAME: &str = "launch::a_child_whose_recorder_is_killed_before_its_exec_ends";
    if is_part("launcher") {
        let suspended = SuspendedProcess::launch(&launch("sleep", &["600"])).unwrap();
        eprintln!("child {}", suspended.pid());
        std::io::stdin().read_line(&mut String::new()).unwrap();
        return;
    }
    let mut launcher =
        crate::harness::Talker::start(&mut part(&[], &this_program(), NAME, "launcher"));
    let child = launcher.hear("child ");
    launcher.child.kill().unwrap();
    launcher.child.wait().unwrap();
    let path = format!("/proc/{child}/stat");
    // Whoever inherits it may take a while to reap it.
    await_that("the child's end", || {
        std::fs::read_to_string(&path).map_or(true, |stat| stat.contains(") Z "))
    });
}

#[test]
fn sampling_begins_with_the_exec_and_all_mappings_are_told() {
    let launch = launch(target::program().to_str().unwrap(), &["burn", "300"]);
    let suspended = SuspendedProcess::launch(&launch).unwrap();
    let pid = suspended.pid();
    let mut capture = Capture::attach(pid, AttachMode::OnExec, &options()).unwrap();
    let mut launched = suspended.resume().unwrap();
    assert_eq!(launched.pid(), pid);
    let events = collect(&mut capture, "samples", |events| {
        samples(events).values().any(|&count| count > 10)
    });
    let at = |what: &dyn Fn(&EventKind) -> bool| events.iter().position(|event| what(&event.kind));
    let exec = at(&|kind| matches!(kind, EventKind::Comm { exec: true, .. })).expect("an exec");
    let sample = at(&|kind| matches!(kind, EventKind::Sample(_))).expect("samples");
    let mapped = at(
        &|kind| matches!(kind, EventKind::Mmap(mmap) if mmap.executable && mmap.path.ends_with(b"perf-target")),
    );
    assert!(exec < sample && exec < mapped.expect("the program's mapping"));
    collect(&mut capture, "its end", |events| {
        events.iter().any(|event| matches!(event.kind, EventKind::ProcessExit { .. }))
    });
    assert!(launched.wait().unwrap().success());
}
