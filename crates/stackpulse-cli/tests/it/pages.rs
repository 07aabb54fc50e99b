//! Help, completions and man pages: all from the definitions, and in step with the documentation.

use crate::harness::{Scene, has_tool, run, stackpulse, stderr, stdout};
use std::path::Path;
use std::process::Command;

#[test]
fn the_documented_options_are_those_there_are() {
    let scene = Scene::new();
    let output = run(["man", "--markdown", scene.path("").to_str().unwrap()]);
    assert!(output.status.success(), "{}", stderr(&output));
    let made = std::fs::read_to_string(scene.path("cli.md")).unwrap();
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/cli.md");
    let kept = std::fs::read_to_string(kept).unwrap();
    assert!(
        made == kept,
        "docs/cli.md is out of date; run `cargo run -p stackpulse-cli -- man --markdown docs`"
    );
}

/// The commands the help lists.
fn commands() -> Vec<String> {
    let help = stdout(&run(["--help"]));
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    listed
        .take_while(|line| line.starts_with("  "))
        .filter_map(|line| Some(line.strip_prefix("  ")?.split(' ').next()?.to_owned()))
        .filter(|name| !name.is_empty() && name != "help")
        .collect()
}

#[test]
fn every_command_has_help_and_a_man_page() {
    let scene = Scene::new();
    let output = run(["man", scene.path("man").to_str().unwrap()]);
    assert!(output.status.success(), "{}", stderr(&output));
    let commands = commands();
    assert!(commands.len() >= 8, "{commands:?}");
    for command in &commands {
        let help = run([command.as_str(), "--help"]);
        assert!(help.status.success() && stdout(&help).contains("Usage:"), "{command}");
        let page = std::fs::read_to_string(scene.path(&format!("man/stackpulse-{command}.1")));
        assert!(page.unwrap().contains(".SH SYNOPSIS"), "{command}");
    }
    assert!(scene.path("man/stackpulse.1").exists());
    if has_tool("man") {
        let output = Command::new("man")
            .args(["--warnings=w", "-E", "UTF-8", "-l"])
            .arg(scene.path("man/stackpulse-record.1"))
            .env("MANWIDTH", "100")
            .output()
            .unwrap();
        assert!(stdout(&output).contains("--call-graph"), "{}", stderr(&output));
        assert_eq!(stderr(&output), "", "groff has nothing to complain of");
    }
}

#[test]
fn bash_completes_commands_and_options() {
    let script = stdout(&run(["completions", "bash"]));
    let complete = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        let ask = format!(
            "{script}\nCOMP_WORDS=({}); COMP_CWORD={}; _stackpulse stackpulse '{}' '{}'; echo \"${{COMPREPLY[@]}}\"",
            line,
            words.len() - 1,
            words[words.len() - 1],
            words[words.len() - 2],
        );
        stdout(&Command::new("bash").args(["-c", &ask]).output().unwrap())
    };
    if !has_tool("bash") {
        return;
    }
    assert_eq!(complete("stackpulse rep").trim(), "report");
    assert_eq!(complete("stackpulse record --call").trim(), "--call-graph");
    assert!(complete("stackpulse report --tree call").contains("callers"));
}

#[test]
fn every_shell_has_completions() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let output = run(["completions", shell]);
        assert!(output.status.success() && stdout(&output).contains("stackpulse"), "{shell}");
    }
}

#[test]
fn options_stand_in_groups_with_examples() {
    let help = stdout(&run(["record", "--help"]));
    for heading in ["What to record:", "Sampling:", "Output:", "Examples:"] {
        assert!(help.contains(heading), "{heading}: {help}");
    }
    let help = stdout(&run(["report", "--help"]));
    assert!(help.contains("Which samples:") && help.contains("Names:"), "{help}");
}

#[test]
fn colours_are_for_terminals_that_want_them() {
    if !has_tool("script") {
        return;
    }
    let help = |no_colour: &str| {
        let program = stackpulse().get_program().to_str().unwrap().to_owned();
        let typed = format!("TERM=xterm NO_COLOR={no_colour} {program} --help");
        stdout(&Command::new("script").args(["-qec", &typed, "/dev/null"]).output().unwrap())
    };
    assert!(help("").contains("\x1b["), "colours on a terminal");
    assert!(!help("1").contains("\x1b["), "none where NO_COLOR is set");
    assert!(!stdout(&run(["--help"])).contains('\x1b'), "none in a file");
}
