//! Reports as people read them: narrow and wide terminals, pagers, hostile names.

use crate::harness::{Scene, has_tool, run, stackpulse, stderr, stdout};
use crate::terminal::Terminal;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A program whose hottest function has this name, recorded.
pub(crate) fn named(scene: &Scene, name: &str) -> PathBuf {
    let program = scene.compile("shares.c", &["-g0"]);
    let renamed = Command::new("objcopy")
        .arg(format!("--redefine-sym=leaf_sixty={name}"))
        .arg(&program)
        .output()
        .unwrap();
    assert!(renamed.status.success(), "{}", stderr(&renamed));
    scene.record(&["--no-kernel"], &program, &["0.4"])
}

/// The report as a terminal shows it, in a pager of its own.
fn on_terminal(columns: u32, options: &str, spool: &Path) -> String {
    let terminal = Terminal::new(columns, 60);
    let program = stackpulse().get_program().to_str().unwrap().to_owned();
    terminal.run(&format!(
        "clear; PAGER=cat {program} report {options} {}; echo en''d",
        spool.display()
    ));
    terminal.wait_for(|screen| screen.lines().any(|line| line == "end"))
}

#[test]
fn a_terminal_of_80_columns_shows_whole_rows() {
    if !has_tool("tmux") {
        return;
    }
    let scene = Scene::new();
    let spool = scene.record(&["--no-kernel"], &scene.compile("shares.c", &[]), &["0.4"]);
    let screen = on_terminal(80, "--percent-limit 3", &spool);
    let row = screen.lines().find(|line| line.contains("leaf_sixty") && line.ends_with("  shares"));
    assert!(row.is_some_and(|row| row.matches('%').count() == 2), "{screen}");
    assert!(screen.contains("_start  [shares]"), "{screen}");
}

#[test]
fn a_terminal_of_20_columns_shows_one_row_a_line() {
    if !has_tool("tmux") {
        return;
    }
    let scene = Scene::new();
    let spool = scene.record(&["--no-kernel"], &scene.compile("shares.c", &[]), &["0.4"]);
    let screen = on_terminal(20, "--percent-limit 3", &spool);
    let shares = screen.lines().filter(|line| line.contains('%'));
    let whole = |line: &str| {
        let line = line.trim_start();
        line.starts_with(|c: char| c.is_ascii_digit()) && line.contains("%  ")
    };
    let lines: Vec<&str> = shares.collect();
    assert!(lines.len() > 6 && lines.iter().all(|line| whole(line)), "{screen}");
    assert!(lines.iter().any(|line| line.ends_with("leaf_sixty")), "{screen}");
    let main = lines.iter().find(|line| line.trim_end().contains("main"));
    assert!(main.is_some(), "the tree is indented by little: {screen}");
}

#[test]
fn names_cannot_steer_the_terminal() {
    if !has_tool("objcopy") {
        return;
    }
    let scene = Scene::new();
    let spool = named(&scene, "evil\x1b[31m\x07<script>;x\u{202e}");
    for options in [&["report"][..], &["export", "-f", "collapsed"]] {
        let output = stackpulse().args(options).arg(&spool).output().unwrap();
        let said = stdout(&output);
        assert!(said.contains("evil"), "{said}");
        assert!(!said.contains(['\x1b', '\x07']), "{options:?}: {said}");
    }
    let report = stdout(&run(["report", spool.to_str().unwrap()]));
    assert!(report.contains("evil\u{fffd}[31m\u{fffd}<script>;x\u{fffd}"), "{report}");
    let json = run(["report", "--json", spool.to_str().unwrap()]);
    let report: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    let has =
        |name: &str| report["functions"].as_array().unwrap().iter().any(|f| f["name"] == name);
    assert!(has("evil\x1b[31m\x07<script>;x\u{202e}"), "JSON keeps the name as it is");
}

#[test]
fn a_name_of_thousands_of_characters_keeps_its_ends() {
    if !has_tool("objcopy") {
        return;
    }
    let scene = Scene::new();
    let spool = named(&scene, &format!("first{}last", "x".repeat(4_000)));
    let report = stdout(&run(["report", spool.to_str().unwrap()]));
    let row = report.lines().find(|line| line.contains("first")).unwrap();
    assert!(
        row.chars().count() <= 100 && row.contains("xxx...xxx") && row.contains("last"),
        "{row}"
    );
}

#[test]
fn a_long_report_is_paged_on_a_terminal_only() {
    if !has_tool("tmux") || !has_tool("less") {
        return;
    }
    let scene = Scene::new();
    let spool = scene.record(&["--no-kernel"], &scene.compile("shares.c", &[]), &["0.4"]);
    let terminal = Terminal::new(80, 10);
    let program = stackpulse().get_program().to_str().unwrap().to_owned();
    terminal.run(&format!("clear; {program} report {}", spool.display()));
    let first = terminal.wait_for(|screen| screen.lines().any(|line| line.trim() == ":"));
    assert!(first.contains("leaf_sixty"), "{first}");
    terminal.keys(&["G"]);
    terminal.wait_for(|screen| screen.contains("middle_ten") && !screen.contains("samples"));
    terminal.keys(&["q"]);
    let after = terminal.wait_for(|screen| screen.trim_end().ends_with("ready"));
    assert!(!after.contains("stackpulse:"), "leaving the pager is no failure: {after}");
    // A pager that is not there costs nothing.
    terminal.run(&format!("clear; PAGER=no-such-pager {program} report {}", spool.display()));
    terminal
        .wait_for(|screen| screen.contains("middle_ten") && screen.trim_end().ends_with("ready"));
}

#[test]
fn a_closed_output_is_quiet_for_every_reader() {
    let scene = Scene::new();
    let spool = scene.record(&[], &scene.compile("shares.c", &[]), &["0.3"]);
    for words in [
        &["report"][..],
        &["report", "--json"],
        &["info"],
        &["info", "--json"],
        &["info", "--dump"],
        &["verify"],
        &["export", "-f", "collapsed"],
        &["completions", "bash"],
        &["--help"],
    ] {
        let mut command = stackpulse();
        command.args(words);
        if !words.contains(&"bash") && !words.contains(&"--help") {
            command.arg(&spool);
        }
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{words:?}: {}", stderr(&output));
        assert_eq!(stderr(&output), "", "{words:?}");
    }
}
