//! `top` by its keys and its screen.

use crate::harness::{Scene, has_tool, run, stackpulse, stderr, stdout};
use crate::reading::named;
use crate::terminal::Terminal;
use std::process::{Child, Command, Stdio};

/// A target that burns until it is dropped.
struct Target(Child);

impl Target {
    fn start(scene: &Scene) -> Self {
        let program = scene.compile("shares.c", &[]);
        Self(Command::new(program).arg("600").spawn().unwrap())
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn program() -> String {
    stackpulse().get_program().to_str().unwrap().to_owned()
}

/// The row of a function, if it is on the screen.
fn row<'a>(screen: &'a str, name: &str) -> Option<&'a str> {
    screen
        .lines()
        .find(|line| line.contains('%') && line.split_whitespace().any(|word| word == name))
}

fn samples(screen: &str) -> u64 {
    let head = screen.lines().next().unwrap_or_default();
    let words: Vec<&str> = head.split_whitespace().collect();
    let at = words.iter().position(|word| word.starts_with("sample"));
    at.and_then(|at| words.get(at.checked_sub(1)?)?.parse().ok()).unwrap_or_default()
}

#[test]
fn a_running_process_is_seen_sorted_searched_frozen_and_drilled_into() {
    if !has_tool("tmux") {
        return;
    }
    let scene = Scene::new();
    let target = Target::start(&scene);
    let terminal = Terminal::new(100, 24);
    terminal.run(&format!("{} top -p {}", program(), target.0.id()));
    let screen =
        terminal.wait_for(|screen| samples(screen) > 200 && row(screen, "leaf_sixty").is_some());
    let first = screen.lines().find(|line| line.contains('%')).unwrap();
    assert!(
        first.contains("leaf_sixty") && first.contains("shares"),
        "the hottest comes first: {screen}"
    );
    assert!(screen.contains("self*"), "{screen}");

    terminal.keys(&["t"]);
    let screen = terminal.wait_for(|screen| screen.contains("total*"));
    let first = screen.lines().find(|line| line.contains('%')).unwrap();
    assert!(first.contains("100.00%"), "what everything runs in comes first: {screen}");

    terminal.keys(&["/", "m", "i", "d", "d", "l", "e", "_", "s", "Enter"]);
    let screen = terminal.wait_for(|screen| {
        row(screen, "middle_sixty").is_some() && row(screen, "middle_ten").is_none()
    });
    assert!(row(&screen, "leaf_sixty").is_none(), "{screen}");

    terminal.keys(&["Enter"]);
    terminal.wait_for(|screen| {
        screen.contains("callers of middle_sixty") && row(screen, "outer").is_some()
    });
    terminal.keys(&["Enter"]);
    terminal.wait_for(|screen| {
        screen.contains("callers of middle_sixty < outer") && row(screen, "main").is_some()
    });
    terminal.keys(&["Escape"]);
    terminal.wait_for(|screen| !screen.contains("< outer"));

    terminal.keys(&["Space"]);
    let frozen = samples(&terminal.wait_for(|screen| screen.contains("frozen")));
    terminal.keys(&["Escape"]);
    let screen = terminal.wait_for(|screen| row(screen, "leaf_ten").is_some());
    assert_eq!(samples(&screen), frozen, "nothing moves while it is frozen");
    terminal.keys(&["Space"]);
    terminal.wait_for(|screen| samples(screen) > frozen);
    terminal.keys(&["q"]);
    terminal
        .wait_for(|screen| screen.trim_end().ends_with("ready") && !screen.contains("leaf_ten"));
}

#[test]
fn a_spool_that_another_process_writes_is_followed_to_its_end() {
    if !has_tool("tmux") {
        return;
    }
    let scene = Scene::new();
    let target = Target::start(&scene);
    let spool = scene.path("growing.spool");
    let mut recorder = stackpulse()
        .args(["record", "-q", "-p", &target.0.id().to_string(), "-o"])
        .arg(&spool)
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    while !std::fs::metadata(&spool).is_ok_and(|metadata| metadata.len() > 1000) {
        std::thread::yield_now();
    }
    let terminal = Terminal::new(80, 24);
    terminal.run(&format!("{} top {}", program(), spool.display()));
    let first = samples(&terminal.wait_for(|screen| row(screen, "leaf_sixty").is_some()));
    terminal.wait_for(|screen| samples(screen) > first + 100);
    drop(target);
    assert!(recorder.wait().unwrap().success());
    terminal.wait_for(|screen| screen.lines().next().is_some_and(|head| head.ends_with("ended")));
    terminal.keys(&["C-c"]);
    terminal.wait_for(|screen| screen.trim_end().ends_with("ready"));
}

#[test]
fn a_narrow_screen_shows_names_and_a_signal_gives_it_back() {
    if !has_tool("tmux") || !has_tool("objcopy") {
        return;
    }
    let scene = Scene::new();
    let spool = named(&scene, "evil\x1b[31m\x07;x");
    let terminal = Terminal::new(20, 10);
    terminal.run(&format!("{} top {}; stty -a | grep -o ' echo '", program(), spool.display()));
    let screen = terminal.wait_for(|screen| screen.contains('%'));
    let shares: Vec<&str> = screen.lines().filter(|line| line.contains('%')).collect();
    assert!(shares.iter().all(|line| line.matches('%').count() == 1), "one share a row: {screen}");
    assert!(shares.iter().any(|line| line.contains("evil...m")), "names are shortened: {screen}");

    let mut tops = Command::new("pgrep");
    tops.args(["-f", &format!("^{} top {}", program(), spool.display())]);
    let pid = stdout(&tops.output().unwrap());
    assert!(Command::new("kill").args(["-TERM", pid.trim()]).status().unwrap().success());
    terminal.wait_for(|screen| {
        screen.lines().any(|line| line.trim() == "echo") && screen.trim_end().ends_with("ready")
    });
}

#[test]
fn without_a_terminal_or_a_target_there_is_one_sentence() {
    let output = run(["top", "no-such.spool"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("top needs a terminal"), "{}", stderr(&output));
    assert_eq!(run(["top"]).status.code(), Some(2));
}
