//! What `record` says, accepts and leaves behind.

use crate::harness::{Scene, has_tool, info, run, stackpulse, stderr, stdout};
use crate::terminal::Terminal;
use std::fs;
use std::os::unix::fs::MetadataExt;

#[test]
fn perfs_spellings_are_understood() {
    let scene = Scene::new();
    let spool = scene.path("x.spool");
    let spool = spool.to_str().unwrap();
    for options in [
        &["-r", "499", "-e", "cpu-clock"][..],
        &["--rate", "499", "--call-graph", "dwarf,8192", "-e", "cpu-clock"],
        &["-F", "499", "-g", "-m", "64", "-i", "--no-kernel", "-e", "cpu-clock", "--no-stop"],
        &[
            "--freq=499",
            "--no-inherit",
            "--mmap-pages=64",
            "--no-symbols",
            "-e",
            "cpu-clock",
            "--stop",
        ],
    ] {
        let words = ["record", "-q", "-o", spool].into_iter().chain(options.iter().copied());
        let output = run(words.chain(["--", "true", "-q", "--freq"]));
        assert!(output.status.success(), "{options:?}: {}", stderr(&output));
        let facts = info(spool.as_ref());
        assert_eq!((&facts["rate_hz"], &facts["event"]), (&499.into(), &"cpu-clock".into()));
    }
    let output = run(["record", "-q", "-F", "max", "-o", spool, "--", "true"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let limit = fs::read_to_string("/proc/sys/kernel/perf_event_max_sample_rate").unwrap();
    let rate = info(spool.as_ref())["rate_hz"].as_u64().unwrap();
    assert!(rate >= 1000 && rate <= limit.trim().parse().unwrap(), "{rate} of {limit}");
}

#[test]
fn the_end_tells_its_facts_in_order() {
    let scene = Scene::new();
    let program = scene.compile("shares.c", &["-s"]);
    let output = stackpulse()
        .args(["record", "--no-kernel", "-v", "-o"])
        .arg(scene.path("x.spool"))
        .arg("--")
        .arg(&program)
        .arg("0.5")
        .output()
        .unwrap();
    let said = stderr(&output);
    let mut rest = said.as_str();
    for fact in [
        " samples in ",
        " Hz), ",
        "lost: ",
        "truncated stacks: ",
        "without a name: ",
        "would name it",
        "own CPU: ",
        "rings: ",
    ] {
        let at =
            rest.find(fact).unwrap_or_else(|| panic!("{fact} is missing or too early: {said}"));
        rest = &rest[at + fact.len()..];
    }
}

#[test]
fn a_recording_without_samples_says_why() {
    let scene = Scene::new();
    let spool = scene.path("x.spool");
    let spool = spool.to_str().unwrap();
    let output = run(["record", "-F", "1", "--no-kernel", "-o", spool, "--", "true"]);
    assert!(stderr(&output).contains("0 samples because "), "{}", stderr(&output));
    let report = run(["report", spool]);
    assert!(stdout(&report).contains("0 samples because "), "{}", stdout(&report));
}

#[test]
fn another_form_is_written_beside_the_spool() {
    let scene = Scene::new();
    let program = scene.compile("shares.c", &[]);
    scene.record(&["--no-kernel", "-f", "collapsed"], &program, &["0.4"]);
    let text = fs::read_to_string(scene.path("recorded.folded")).unwrap();
    assert!(text.contains("main;outer;middle_sixty;leaf_sixty"), "{text}");
}

#[test]
fn a_size_limit_ends_the_recording() {
    let scene = Scene::new();
    let program = scene.compile("shares.c", &[]);
    let spool = scene.path("x.spool");
    let mut target = std::process::Command::new(&program).arg("600").spawn().unwrap();
    let pid = target.id().to_string();
    let output =
        run(["record", "-q", "--max-size", "1K", "-p", &pid, "-o", spool.to_str().unwrap()]);
    target.kill().unwrap();
    target.wait().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(info(&spool)["state"], "finished");
}

#[test]
fn a_delay_is_no_part_of_the_samples() {
    let scene = Scene::new();
    let program = scene.compile("shares.c", &[]);
    let spool = scene.path("x.spool");
    let spool = spool.to_str().unwrap();
    let output =
        run(["record", "-q", "-D", "1h", "-o", spool, "--", program.to_str().unwrap(), "0.1"]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(info(spool.as_ref())["samples"], 0);
}

#[test]
fn under_sudo_the_file_belongs_to_the_caller() {
    let scene = Scene::new();
    let spool = scene.path("x.spool");
    let owner = fs::metadata(scene.path("")).unwrap().uid();
    if owner != 0 {
        eprintln!("skipped: only root can give files away");
        return;
    }
    let output = stackpulse()
        .args(["record", "-q", "-o"])
        .arg(&spool)
        .args(["--", "true"])
        .envs([("SUDO_UID", "12345"), ("SUDO_GID", "23456")])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let metadata = fs::metadata(&spool).unwrap();
    assert_eq!((metadata.uid(), metadata.gid()), (12345, 23456));
    let plain = run(["record", "-q", "-o", spool.to_str().unwrap(), "--", "true"]);
    assert!(plain.status.success());
    assert_eq!(fs::metadata(&spool).unwrap().uid(), 0);
}

#[test]
fn a_terminal_sees_the_recording_grow() {
    if !has_tool("tmux") {
        return;
    }
    let scene = Scene::new();
    let program = scene.compile("shares.c", &[]);
    let spool = scene.path("x.spool");
    let mut target = std::process::Command::new(&program).arg("600").spawn().unwrap();
    let terminal = Terminal::new(100, 20);
    terminal.run(&format!(
        "{} record -p {} -o {}",
        stackpulse().get_program().to_str().unwrap(),
        target.id(),
        spool.display()
    ));
    let line = terminal.wait_for(|screen| {
        screen
            .lines()
            .any(|line| line.contains("/s  ") && !line.contains(" 0/s") && line.contains(" lost  "))
    });
    assert!(line.contains(" samples  "), "{line}");
    terminal.keys(&["C-c"]);
    let end = terminal.wait_for(|screen| screen.contains("own CPU"));
    assert!(!end.contains("/s  "), "the line is wiped: {end}");
    target.kill().unwrap();
    target.wait().unwrap();
}
