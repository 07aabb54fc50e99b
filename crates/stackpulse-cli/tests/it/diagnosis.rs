//! `doctor` under limits that are simulated: it must find the layer, and name what lifts it.

use crate::harness::{Scene, has_tool, stackpulse, stderr, stdout};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Child, Command};

/// Runs the doctor behind other commands, and returns its exit status and what it says.
fn doctor(before: &[&str], options: &[&str]) -> (i32, Value) {
    let program = stackpulse().get_program().to_owned();
    let mut command = match before {
        [] => Command::new(&program),
        [first, rest @ ..] => {
            let mut command = Command::new(first);
            command.args(rest).arg(&program);
            command
        }
    };
    let output = command.args(["doctor", "--json"]).args(options).output().unwrap();
    let said = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}{}", stdout(&output), stderr(&output)));
    (output.status.code().unwrap(), said)
}

fn check<'a>(said: &'a Value, id: &str) -> &'a Value {
    let checks = said["checks"].as_array().unwrap();
    checks.iter().find(|check| check["id"] == id).unwrap_or_else(|| panic!("no {id}: {said:#}"))
}

fn remedy(check: &Value) -> &str {
    check["remedy"].as_str().unwrap_or_default()
}

fn is_root() -> bool {
    fs::read_to_string("/proc/self/status")
        .unwrap()
        .lines()
        .any(|line| line.starts_with("Uid:\t0\t"))
}

/// Whether limits can be simulated that take root: without it they are skipped.
fn can_simulate(tool: &str) -> bool {
    if !is_root() {
        eprintln!("skipped: only root can take rights away and cover files");
        return false;
    }
    has_tool(tool)
}

#[test]
fn where_recording_works_it_says_so() {
    let (status, said) = doctor(&[], &[]);
    assert_eq!((status, &said["can_record"]), (0, &true.into()), "{said:#}");
    for id in [
        "recording",
        "capabilities",
        "counters",
        "memory",
        "files",
        "container",
        "kernel",
        "perf_event_paranoid",
        "max_sample_rate",
        "kernel names",
        "ptrace",
    ] {
        let check = check(&said, id);
        assert!(check["state"] == "good" || !remedy(check).is_empty(), "{check}");
    }
    let text = stdout(&stackpulse().arg("doctor").output().unwrap());
    assert!(text.contains("your programs can be recorded here"), "{text}");
}

#[test]
fn a_seccomp_filter_is_found() {
    let scene = Scene::new();
    let filter = scene.compile("without_perf.c", &[]);
    let (status, said) = doctor(&[filter.to_str().unwrap()], &[]);
    assert_eq!((status, &said["can_record"]), (1, &false.into()), "{said:#}");
    let seccomp = check(&said, "seccomp");
    assert_eq!(seccomp["state"], "blocked");
    assert!(remedy(seccomp).contains("perf_event_open"), "{seccomp}");
}

#[test]
fn an_ordinary_user_without_locked_memory_gets_smaller_rings() {
    if !can_simulate("prlimit") || !has_tool("setpriv") {
        return;
    }
    let user = [
        "setpriv",
        "--reuid=65534",
        "--regid=65534",
        "--clear-groups",
        "--inh-caps=-all",
        "--bounding-set=-all",
    ];
    let mut before = vec!["prlimit", "--memlock=0", "--nofile=256"];
    before.extend(user);
    let (_, said) = doctor(&before, &[]);
    let capabilities = check(&said, "capabilities");
    assert!(capabilities["found"].as_str().unwrap().starts_with("none of use"), "{capabilities}");
    assert!(remedy(capabilities).contains("cap_perfmon"), "{capabilities}");
    assert_eq!(check(&said, "files")["state"], "limited");
    let memory = check(&said, "memory");
    assert!(memory["found"].as_str().unwrap().contains("RLIMIT_MEMLOCK 0 bytes"), "{memory}");
    if said["can_record"] == true {
        assert_eq!(memory["state"], "limited", "{said:#}");
        assert!(remedy(memory).contains("ulimit -l"), "{memory}");
    }
    // Another user's process.
    let mut target = Sleeper::start(&[]);
    let (status, said) = doctor(&user, &["-p", &target.pid()]);
    assert_eq!(status, 1);
    assert!(remedy(check(&said, "owner")).contains("sudo stackpulse record"), "{said:#}");
    target.end();
}

/// Covers a file with another, in a mount namespace of its own.
fn covered(scene: &Scene, path: &str, text: &str, user: bool) -> (i32, Value) {
    let cover = scene.path("cover");
    if text.is_empty() && Path::new(path).is_dir() {
        fs::create_dir_all(&cover).unwrap();
    } else {
        fs::write(&cover, text).unwrap();
    }
    let drop = if user { "setpriv --reuid=65534 --regid=65534 --clear-groups" } else { "" };
    let script = format!("mount --bind '{}' {path} && exec {drop} \"$@\"", cover.display());
    doctor(&["unshare", "--mount", "sh", "-c", &script, "sh"], &[])
}

#[test]
fn each_setting_of_the_kernel_is_named_with_what_to_set() {
    if !can_simulate("unshare") || !has_tool("setpriv") || !has_tool("mount") {
        return;
    }
    let kernel = "/proc/sys/kernel";
    for (path, text, user, id, state, word) in [
        (
            format!("{kernel}/perf_event_paranoid"),
            "4",
            true,
            "perf_event_paranoid",
            "blocked",
            "perf_event_paranoid=2",
        ),
        (
            format!("{kernel}/perf_event_paranoid"),
            "2",
            true,
            "perf_event_paranoid",
            "limited",
            "perf_event_paranoid=1",
        ),
        (format!("{kernel}/perf_event_paranoid"), "4", false, "perf_event_paranoid", "good", ""),
        (
            format!("{kernel}/perf_event_max_sample_rate"),
            "500",
            false,
            "max_sample_rate",
            "limited",
            "-F 500",
        ),
        (
            "/proc/kallsyms".to_owned(),
            "0000000000000000 T _stext\n0000000000000000 T start\n",
            false,
            "kernel names",
            "limited",
            "kptr_restrict",
        ),
        ("/proc/kallsyms".to_owned(), "", false, "kernel names", "limited", "CONFIG_KALLSYMS"),
        ("/sys/bus/event_source/devices".to_owned(), "", false, "counters", "limited", "PMU"),
        (format!("{kernel}/osrelease"), "4.19.0-generic", false, "kernel", "blocked", "5.13"),
    ] {
        let scene = Scene::new();
        let (_, said) = covered(&scene, &path, text, user);
        let check = check(&said, id);
        assert_eq!(check["state"], state, "{path} = {text}: {check}");
        assert!(remedy(check).contains(word), "{path} = {text}: {check}");
    }
}

#[test]
fn namespaces_of_a_container_are_noticed() {
    if !can_simulate("unshare") {
        return;
    }
    let (_, said) = doctor(&["unshare", "--pid", "--fork", "--mount-proc"], &[]);
    let container = check(&said, "container");
    assert_eq!(container["state"], "limited", "{said:#}");
    assert!(container["found"].as_str().unwrap().contains("pid"), "{container}");
}

/// A process to look at.
struct Sleeper(Child);

impl Sleeper {
    fn start(command: &[&str]) -> Self {
        let command = if command.is_empty() { &["sleep", "600"] } else { command };
        Self(Command::new(command[0]).args(&command[1..]).spawn().unwrap())
    }

    fn pid(&self) -> String {
        self.0.id().to_string()
    }

    fn end(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        self.end();
    }
}

#[test]
fn a_targets_modules_are_judged_for_names_and_stacks() {
    let scene = Scene::new();
    for (flags, symbols, unwinds) in [
        (&[][..], "debug", true),
        (&["-g0"], "table", true),
        (&["-g0", "-s"], "none", true),
        (&["-g0", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables"], "table", false),
    ] {
        let program = scene.compile("shares.c", flags);
        let target = Sleeper::start(&[program.to_str().unwrap(), "600"]);
        // The program's own file is mapped once its exec is over.
        while !fs::read_to_string(format!("/proc/{}/maps", target.pid()))
            .unwrap()
            .contains("/shares")
        {
            std::thread::yield_now();
        }
        let (status, said) = doctor(&[], &["-p", &target.pid()]);
        assert_eq!(status, 0, "{said:#}");
        assert_eq!(check(&said, "attach")["state"], "good");
        let modules = said["modules"].as_array().unwrap();
        let module = modules
            .iter()
            .find(|module| module["path"].as_str().unwrap().ends_with("/shares"))
            .unwrap();
        assert_eq!(module["symbols"], symbols, "{flags:?}: {module}");
        let covered = module["unwind_percent"].as_u64().unwrap() >= 90;
        assert_eq!(covered, unwinds, "{flags:?}: {module}");
        let named = |id: &str| check(&said, id)["found"].as_str().unwrap().contains("shares");
        assert_eq!(named("unwinding"), !unwinds, "{flags:?}: {said:#}");
        assert_eq!(named("symbols"), symbols == "none", "{flags:?}: {said:#}");
    }
}

#[test]
fn targets_that_cannot_be_recorded_are_told_apart() {
    let (status, said) = doctor(&[], &["-p", "4194304"]);
    assert_eq!((status, &check(&said, "process")["state"]), (1, &"blocked".into()));
    let (status, said) = doctor(&[], &["-p", "2"]);
    assert_eq!(status, 1);
    assert_eq!(check(&said, "maps")["state"], "blocked", "{said:#}");
    let mut target = Sleeper::start(&[]);
    target.0.kill().unwrap();
    let pid = target.pid();
    while !fs::read_to_string(format!("/proc/{pid}/stat")).unwrap().contains(") Z") {
        std::thread::yield_now();
    }
    let (status, said) = doctor(&[], &["-p", &pid]);
    assert_eq!(status, 1);
    assert!(check(&said, "process")["found"].as_str().unwrap().contains("zombie"), "{said:#}");
}

#[test]
fn a_traced_target_is_noticed() {
    if !has_tool("strace") {
        return;
    }
    let mut tracer = Sleeper::start(&["strace", "-o", "/dev/null", "sleep", "600"]);
    let children = format!("/proc/{0}/task/{0}/children", tracer.pid());
    let child = loop {
        let text = fs::read_to_string(&children).unwrap();
        if let Some(child) = text.split_whitespace().next()
            && fs::read_to_string(format!("/proc/{child}/status")).is_ok_and(|status| {
                status.contains("Name:\tsleep") && !status.contains("TracerPid:\t0")
            })
        {
            break child.to_owned();
        }
        std::thread::yield_now();
    };
    let (_, said) = doctor(&[], &["-p", &child]);
    let tracer_check = check(&said, "tracer");
    assert!(tracer_check["found"].as_str().unwrap().contains("strace"), "{said:#}");
    tracer.end();
    let _ = Command::new("sh").args(["-c", &format!("kill -KILL {child}")]).status();
}
