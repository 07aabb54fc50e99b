//! pprof, read by Go's `pprof`.

use super::{export, reported, shares};
use crate::harness::{Scene, has_tool, stderr, stdout};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// Runs `go tool pprof` with nothing to fetch and nowhere to look for programs.
fn pprof(scene: &Scene, options: &[&str], profile: &Path) -> String {
    let output = Command::new("go")
        .args(["tool", "pprof", "-symbolize=none"])
        .args(options)
        .arg(profile)
        .env("PPROF_TMPDIR", scene.path("pprof"))
        .env("PPROF_BINARY_PATH", scene.path("none"))
        .env("HOME", scene.path("home"))
        .output()
        .expect("run go");
    assert!(output.status.success(), "{}", stderr(&output));
    stdout(&output)
}

/// The rows of `-top`: name, flat and cumulative counts.
fn top(scene: &Scene, profile: &Path) -> BTreeMap<String, (u64, u64)> {
    let options = ["-top", "-sample_index=samples", "-nodecount=100000", "-nodefraction=0"];
    let text = pprof(scene, &options, profile);
    let rows = text.lines().skip_while(|line| !line.trim_start().starts_with("flat ")).skip(1);
    rows.map(|row| {
        let mut words = row.split_whitespace();
        let mut count = |skip| words.nth(skip).unwrap().parse::<u64>().unwrap();
        let counts = (count(0), count(2));
        words.next();
        let name = words.collect::<Vec<_>>().join(" ");
        (name.trim_end_matches(" (inline)").to_owned(), counts)
    })
    .collect()
}

#[test]
fn gos_pprof_counts_what_the_report_counts() {
    if !has_tool("go") {
        return;
    }
    let scene = Scene::new();
    let spool = shares(&scene);
    let profile = export(&scene, &spool, "out.pb.gz", &[]);
    let (top, reported) = (top(&scene, &profile), reported(&spool));
    assert!(top["leaf_sixty"].0 > 100, "{top:?}");
    for (name, counts) in &reported {
        assert_eq!(top.get(name), Some(counts), "{name}");
    }
    let weights = pprof(&scene, &["-top"], &profile);
    assert!(weights.contains("leaf_sixty"), "{weights}");
}

#[test]
fn gos_pprof_tells_inlined_calls_and_their_lines() {
    if !has_tool("go") {
        return;
    }
    let scene = Scene::new();
    let spool = scene.record(&["--no-kernel"], &scene.compile("nested.rs", &[]), &[]);
    let profile = export(&scene, &spool, "out.pb.gz", &[]);
    let (top, reported) = (top(&scene, &profile), reported(&spool));
    for (name, counts) in reported.iter().filter(|(name, _)| name.starts_with("nested::")) {
        assert_eq!(top.get(name), Some(counts), "{name}");
    }
    let lines = pprof(&scene, &["-top", "-lines", "-sample_index=samples"], &profile);
    assert!(lines.contains("nested.rs:") && lines.contains("(inline)"), "{lines}");
}

#[test]
fn gos_pprof_tells_stacks_threads_and_mappings() {
    if !has_tool("go") {
        return;
    }
    let scene = Scene::new();
    let profile = export(&scene, &shares(&scene), "out.pb.gz", &[]);
    let traces = pprof(&scene, &["-traces", "-sample_index=samples"], &profile);
    assert!(traces.contains("comm:  shares") && traces.contains("tid:  "), "{traces}");
    let stack: Vec<&str> = traces.lines().skip_while(|line| !line.contains("leaf_sixty")).collect();
    let main = stack.iter().position(|line| line.trim() == "main");
    assert!(main.is_some_and(|at| at > 0 && at < 5), "{traces}");
    let raw = pprof(&scene, &["-raw"], &profile);
    let mapping = raw.lines().find(|line| line.contains("/shares ")).expect("a mapping");
    let build_id = mapping.split_whitespace().nth(3).unwrap_or_default();
    assert!(build_id.len() == 40 && build_id.bytes().all(|b| b.is_ascii_hexdigit()), "{mapping}");
    assert!(mapping.contains("[FN]"), "{mapping}");
}
