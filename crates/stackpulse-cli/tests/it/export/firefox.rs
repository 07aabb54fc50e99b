//! The Firefox Profiler's form, unpacked and read by Python.

use super::{export, reported};
use crate::harness::{Scene, has_tool, info, stderr};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

fn read(path: &Path) -> Value {
    let script = "import gzip, json, sys; json.dump(json.load(gzip.open(sys.argv[1])), sys.stdout)";
    let output = Command::new("python3").args(["-c", script]).arg(path).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The sum of a column of all threads' samples; where there is none each sample counts one.
fn sum(profile: &Value, column: &str) -> u64 {
    let threads = profile["threads"].as_array().unwrap();
    let of = |samples: &Value| match samples[column].as_array() {
        Some(values) => values.iter().filter_map(Value::as_u64).sum(),
        None => samples["length"].as_u64().unwrap(),
    };
    threads.iter().map(|thread| of(&thread["samples"])).sum()
}

fn samples(profile: &Value) -> u64 {
    let threads = profile["threads"].as_array().unwrap();
    threads.iter().map(|thread| thread["samples"]["length"].as_u64().unwrap()).sum()
}

#[test]
fn threads_samples_and_names_are_those_of_the_spool() {
    if !has_tool("python3") {
        return;
    }
    let scene = Scene::new();
    let spool = scene.record(&["--no-kernel"], &scene.compile("threads.cpp", &[]), &["0.5"]);
    let profile = read(&export(&scene, &spool, "out.json.gz", &[]));
    let all = info(&spool)["samples"].as_u64().unwrap();
    assert_eq!(sum(&profile, "weight"), all);
    assert!(profile["threads"].as_array().unwrap().len() > 1);
    assert_eq!(profile["meta"]["symbolicated"], true);
    let text = profile.to_string();
    for name in reported(&spool).keys().filter(|name| name.as_str() != "[unknown]") {
        assert!(text.contains(&serde_json::to_string(name).unwrap()), "{name}");
    }
    let categories = profile["meta"]["categories"].to_string();
    assert!(["User", "Kernel", "JIT"].iter().all(|name| categories.contains(name)), "{categories}");
}

#[test]
fn a_size_budget_is_kept_and_so_are_the_weights() {
    if !has_tool("python3") {
        return;
    }
    let scene = Scene::new();
    let spool =
        scene.record(&["--no-kernel", "-F", "4000"], &scene.compile("shares.c", &[]), &["1"]);
    let whole = export(&scene, &spool, "whole.json.gz", &[]);
    let size = std::fs::metadata(&whole).unwrap().len();
    let budget = size / 2;
    let thinned = export(&scene, &spool, "thin.json.gz", &["--max-size", &budget.to_string()]);
    assert!(std::fs::metadata(&thinned).unwrap().len() <= budget);
    let (whole, thinned) = (read(&whole), read(&thinned));
    assert!(samples(&thinned) < samples(&whole));
    assert_eq!(sum(&thinned, "weight"), sum(&whole, "weight"));
    let deltas = |profile| sum(profile, "threadCPUDelta");
    assert!(
        deltas(&thinned).abs_diff(deltas(&whole)) <= samples(&whole),
        "rounded to microseconds"
    );
}

#[test]
fn a_budget_too_small_for_anything_is_told() {
    let scene = Scene::new();
    let spool = super::shares(&scene);
    let output = scene.path("out.json.gz");
    let words =
        ["export", "--max-size", "100", "-o", output.to_str().unwrap(), spool.to_str().unwrap()];
    let done = crate::harness::run(words);
    assert_eq!(done.status.code(), Some(1));
    assert!(stderr(&done).contains("larger than 100 bytes"), "{}", stderr(&done));
    assert!(!output.exists(), "nothing half written is left");
}
