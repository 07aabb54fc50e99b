//! Every form is read by a program not written here.

mod choice;
mod chrome;
mod firefox;
mod page;
mod perf_script;
mod pprof;
mod speedscope;
mod svg;

use crate::harness::{Scene, run, stderr};
use std::path::{Path, PathBuf};

/// A recording of functions that share the time 60 : 30 : 10, with names.
fn shares(scene: &Scene) -> PathBuf {
    scene.record(&["--no-kernel"], &scene.compile("shares.c", &[]), &["0.5"])
}

/// Writes a spool in the form that the file's name asks for, and returns that file.
fn export(scene: &Scene, spool: &Path, name: &str, options: &[&str]) -> PathBuf {
    let output = scene.path(name);
    let mut words = vec!["export", "-o", output.to_str().unwrap(), spool.to_str().unwrap()];
    words.extend(options);
    let done = run(words);
    assert!(done.status.success(), "{}", stderr(&done));
    output
}

/// Functions with self and total counts, as `report --json` has them; those of one name together.
fn reported(spool: &Path) -> std::collections::BTreeMap<String, (u64, u64)> {
    let done = run(["report", "--json", spool.to_str().unwrap()]);
    let report: serde_json::Value = serde_json::from_slice(&done.stdout).expect("JSON");
    let mut functions = std::collections::BTreeMap::new();
    for function in report["functions"].as_array().unwrap() {
        let Some(name) = function["name"].as_str() else { continue };
        let sum: &mut (u64, u64) = functions.entry(name.to_owned()).or_default();
        sum.0 += function["self"].as_u64().unwrap();
        sum.1 += function["total"].as_u64().unwrap();
    }
    functions
}

/// A file of JSON.
fn json(path: &Path) -> serde_json::Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).expect("JSON")
}
