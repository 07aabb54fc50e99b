//! `diff` on builds of which it is known what changed.

use crate::harness::{Scene, has_tool, run, stderr, stdout};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A recording of a program that spends this much in `parse`.
fn ratio(scene: &Scene, parse: u32, name: &str) -> PathBuf {
    let program = scene.compile("ratio.c", &[&format!("-DPARSE={parse}")]);
    record(scene, &program, name)
}

fn record(scene: &Scene, program: &Path, name: &str) -> PathBuf {
    let recorded = scene.record(&["--no-kernel"], program, &["0.8"]);
    let spool = scene.path(name);
    std::fs::rename(recorded, &spool).unwrap();
    spool
}

fn function<'a>(diff: &'a Value, name: &str) -> &'a Value {
    let functions = diff["functions"].as_array().unwrap();
    functions.iter().find(|function| function["name"] == name).unwrap_or_else(|| panic!("{diff}"))
}

fn json(words: &[&str]) -> Value {
    let output = run(["diff", "--json"].iter().chain(words));
    assert!(output.status.success(), "{}", stderr(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn a_known_change_is_found_with_its_size_and_certainty() {
    let scene = Scene::new();
    let (before, after) = (ratio(&scene, 30, "a.spool"), ratio(&scene, 60, "b.spool"));
    let (before, after) = (before.to_str().unwrap(), after.to_str().unwrap());
    let diff = json(&[before, after]);
    let parse = &function(&diff, "parse")["self"];
    let change = parse["change"].as_f64().unwrap();
    assert!((change - 30.0).abs() < 6.0, "{parse}");
    assert_eq!(parse["sure"], true);
    assert!(
        parse["low"].as_f64() < Some(change) && Some(change) < parse["high"].as_f64(),
        "{parse}"
    );
    assert!(function(&diff, "work")["self"]["change"].as_f64() < Some(-20.0));
    let main = &function(&diff, "main")["total"];
    assert!(main["change"].as_f64().unwrap().abs() < 3.0, "{main}");
    assert_eq!((&diff["a"]["unit"], &diff["a"]["units"]), (&"window".into(), &50.into()));

    for (condition, files, status) in [
        ("self(parse) > +3%", [before, after], 1),
        ("total(parse) > 3%", [before, after], 1),
        ("self(*) > +3%", [before, after], 1),
        ("self(parse) > +60%", [before, after], 0),
        ("self(parse) < -3%", [before, after], 0),
        ("self(parse) < -3%", [after, before], 1),
        ("self(*) > +3%", [before, before], 0),
        ("self(no_such_function) > +3%", [before, after], 2),
    ] {
        let output = run(["diff", "--fail-if", condition, files[0], files[1]]);
        assert_eq!(output.status.code(), Some(status), "{condition}: {}", stderr(&output));
        assert_eq!(stdout(&output).contains("failed: "), status == 1, "{condition}");
    }
}

#[test]
fn names_of_two_builds_are_matched() {
    if !has_tool("objcopy") {
        return;
    }
    let scene = Scene::new();
    let before = ratio(&scene, 50, "a.spool");
    let program = scene.compile("ratio.c", &["-DPARSE=50", "-g0"]);
    let moved = scene.path("ratio-0123456789abcdef");
    let renamed = Command::new("objcopy")
        .arg("--redefine-sym=parse=parse.isra.0.constprop.1")
        .args([&program, &moved])
        .status()
        .unwrap();
    assert!(renamed.success());
    let after = record(&scene, &moved, "b.spool");
    let diff = json(&[before.to_str().unwrap(), after.to_str().unwrap()]);
    let parse = function(&diff, "parse");
    assert_eq!(parse["module"], "ratio");
    assert!(
        parse["self"]["a"].as_f64() > Some(40.0) && parse["self"]["b"].as_f64() > Some(40.0),
        "{parse}"
    );
}

#[test]
fn several_runs_are_drawn_as_wholes() {
    let scene = Scene::new();
    let spool = ratio(&scene, 50, "a.spool");
    let other = ratio(&scene, 50, "b.spool");
    let (a, b) = (spool.to_str().unwrap(), other.to_str().unwrap());
    let diff = json(&["-A", &format!("{a},{b},{a}"), "-B", &format!("{b},{b},{a}")]);
    assert_eq!((&diff["a"]["unit"], &diff["a"]["units"]), (&"run".into(), &3.into()));
    assert_eq!(diff["b"]["files"].as_array().unwrap().len(), 3);
}

#[test]
fn a_comparison_is_written_for_reviews_and_as_a_picture() {
    let scene = Scene::new();
    let (before, after) = (ratio(&scene, 30, "a.spool"), ratio(&scene, 60, "b.spool"));
    let (before, after) = (before.to_str().unwrap(), after.to_str().unwrap());
    let markdown = stdout(&run(["diff", "--format", "markdown", before, after]));
    let row = markdown.lines().find(|line| line.starts_with("| `parse")).unwrap();
    assert_eq!(row.matches('|').count(), 7, "{row}");
    assert!(row.contains("**+"), "{row}");
    let picture = scene.path("diff.svg");
    let output = run(["diff", "--format", "svg", "-o", picture.to_str().unwrap(), before, after]);
    assert!(output.status.success(), "{}", stderr(&output));
    let picture = std::fs::read_to_string(picture).unwrap();
    assert!(picture.contains("<svg") && picture.trim_end().ends_with("</svg>"));
    // What grew is red (less green and blue than red), what shrank is blue.
    let colour = |name: &str| {
        let at =
            picture.find(&format!("<title>{name} (")).unwrap_or_else(|| panic!("{name} is drawn"));
        let rest = &picture[at..];
        let rgb = &rest[rest.find("rgb(").unwrap() + 4..];
        let parts = rgb
            .split(')')
            .next()
            .unwrap()
            .split(',')
            .map(|part| part.trim().parse::<u32>().unwrap());
        parts.collect::<Vec<_>>()
    };
    let (parse, work) = (colour("parse"), colour("work"));
    assert!(parse[0] > parse[2] && work[2] > work[0], "parse {parse:?}, work {work:?}");
}

#[test]
fn a_side_without_samples_cannot_be_compared() {
    let scene = Scene::new();
    let spool = ratio(&scene, 50, "a.spool");
    let spool = spool.to_str().unwrap();
    let output = run(["diff", "--comm", "nobody", spool, spool]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("there is nothing to compare"), "{}", stderr(&output));
}
