//! Pids that cannot be attached to, and targets that do what ends their sampling.

use crate::attach::{collect, options};
use crate::harness::{has_tools, is_part, is_root, part, this_program};
use crate::target::{self, Target};
use stackpulse_perf::capture::{AttachMode, Capture};
use stackpulse_perf::{EventKind, OpenError};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

const MODE: AttachMode = AttachMode::StopWhileAttaching;

fn refusal(pid: u32, mode: AttachMode) -> OpenError {
    Capture::attach(pid, mode, &options()).expect_err("it is refused")
}

#[test]
fn pids_of_no_process_are_refused_by_their_number() {
    // The last two are what -1 and -2 become.
    for pid in [0, 4_194_305, u32::MAX, u32::MAX - 1] {
        let error = refusal(pid, MODE);
        assert!(matches!(error, OpenError::NoSuchProcess { pid: told } if told == pid), "{error}");
        assert_eq!(error.to_string(), format!("there is no process {pid}"));
    }
}

#[test]
fn a_thread_that_leads_no_process_is_refused_with_its_leader() {
    let target = Target::start(&["idle", "1"]);
    let tasks = std::fs::read_dir(format!("/proc/{}/task", target.pid())).unwrap();
    let tids = tasks.map(|task| task.unwrap().file_name().into_string().unwrap().parse().unwrap());
    let tid: u32 = tids.filter(|&tid| tid != target.pid()).last().unwrap();
    let error = refusal(tid, MODE);
    let is_told = matches!(error, OpenError::NotALeader { tid: told, pid } if told == tid && pid == target.pid());
    assert!(is_told, "{error}");
}

#[test]
fn a_zombie_is_refused_as_such() {
    let mut target = Target::start_only(Command::new(target::program()).arg("zombie"));
    let pid = target.line().parse().unwrap();
    let error = refusal(pid, MODE);
    assert!(matches!(error, OpenError::Zombie { pid: told } if told == pid), "{error}");
}

#[test]
fn a_kernel_thread_is_refused_as_such() {
    let is_kernel_thread = |pid: &u32| {
        std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line.is_empty())
            && std::fs::read_to_string(format!("/proc/{pid}/status"))
                .is_ok_and(|status| status.contains("\nPPid:\t2\n"))
    };
    let Some(pid) = (3..1000).find(is_kernel_thread) else {
        return crate::harness::skip("no kernel thread can be seen from here");
    };
    let error = refusal(pid, MODE);
    assert!(matches!(error, OpenError::KernelThread { pid: told } if told == pid), "{error}");
}

#[test]
fn a_process_may_attach_to_itself_only_while_it_runs() {
    let own = std::process::id();
    assert!(matches!(refusal(own, MODE), OpenError::Itself));
    let mut capture = Capture::attach(own, AttachMode::Running, &options()).unwrap();
    assert!(capture.process_is_active(own));
    let busy =
        std::thread::spawn(|| while !std::fs::read("/proc/self/stat").unwrap().is_empty() {});
    collect(&mut capture, "a sample of ourselves", |events| {
        events.iter().any(|event| matches!(event.kind, EventKind::Sample(_)))
    });
    assert!(!busy.is_finished());
}

#[test]
fn a_process_whose_leader_has_ended_is_attached_to() {
    for mode in [AttachMode::Running, MODE] {
        let target = Target::start(&["leaderless"]);
        crate::harness::await_that("a leader that has ended", || {
            crate::harness::states(target.pid()).contains('Z')
        });
        let mut capture = Capture::attach(target.pid(), mode, &options()).unwrap();
        let events = collect(&mut capture, "samples of the other thread", |events| {
            crate::attach::samples(events).values().any(|&count| count > 10)
        });
        assert!(crate::attach::samples(&events).keys().all(|&tid| tid != target.pid()));
        assert!(capture.process_is_active(target.pid()));
    }
}

#[test]
fn init_is_attached_to_like_any_other() {
    const NAME: &str = "bad_targets::init_is_attached_to_like_any_other";
    if is_part("init") {
        for mode in [AttachMode::Running, MODE] {
            let mut capture = Capture::attach(1, mode, &options()).unwrap();
            collect(&mut capture, "samples of init", |events| {
                crate::attach::samples(events).get(&1).is_some_and(|&count| count > 10)
            });
        }
        return;
    }
    if !is_root() || !has_tools(&["unshare", "sh"]) {
        return;
    }
    // A namespace of its own has an init of its own: a shell that works until the part has ended.
    let directory = tempfile::tempdir().unwrap();
    let ended = directory.path().join("ended");
    let script = "{ \"$@\"; echo $? > \"$0\"; } & until [ -s \"$0\" ]; do :; done; read -r status < \"$0\"; exit \"$status\"";
    let words =
        ["unshare", "--pid", "--fork", "--mount-proc", "sh", "-c", script, ended.to_str().unwrap()];
    let output = part(&words, &this_program(), NAME, "init").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_target_that_execs_a_setuid_program_is_followed_to_its_end() {
    const NAME: &str = "bad_targets::a_target_that_execs_a_setuid_program_is_followed_to_its_end";
    if is_part("setuid") {
        let program = target::program();
        let setuid = program.with_file_name("setuid");
        let words = ["idle", "0", setuid.to_str().unwrap()];
        let mut target = Target::start_as(Command::new(&program).args(words));
        let mut capture = Capture::attach(target.pid(), MODE, &options()).unwrap();
        target.obey("u");
        let mut events = collect(&mut capture, "nothing in particular", |_| true);
        assert!(capture.process_is_active(target.pid()), "{events:?}");
        drop(target);
        events.extend(collect(&mut capture, "its end", |events| {
            events.iter().any(|event| matches!(event.kind, EventKind::ProcessExit { .. }))
        }));
        return;
    }
    if !is_root() {
        return;
    }
    let directory = target::directory();
    let here = |name: &str| directory.path().join(name);
    std::fs::copy(target::program(), here("perf-target")).unwrap();
    std::fs::copy(target::program(), here("setuid")).unwrap();
    std::fs::copy(this_program(), here("it")).unwrap();
    std::fs::set_permissions(here("setuid"), std::fs::Permissions::from_mode(0o4755)).unwrap();
    let mut command = part(&[], &here("it"), NAME, "setuid");
    command.uid(65_534).gid(65_534).env(target::PROGRAM, here("perf-target"));
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
