//! The keys that `docs/json.md` promises.

use crate::harness::{Scene, stackpulse, stderr};
use serde_json::Value;
use std::path::Path;

/// The names in the first column of a command's table.
fn promised(command: &str) -> Vec<String> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/json.md");
    let page = std::fs::read_to_string(page).unwrap();
    let heading = format!("## `{command} --json`");
    let section = page.lines().skip_while(|line| *line != heading).skip(1);
    let rows =
        section.take_while(|line| !line.starts_with("## ")).filter(|line| line.starts_with("| `"));
    let names = rows.flat_map(|row| {
        let column = row.split('|').nth(1).unwrap_or_default();
        column
            .split('`')
            .skip(1)
            .step_by(2)
            .map(|name| name.trim_end_matches("[]").to_owned())
            .collect::<Vec<_>>()
    });
    names.collect()
}

#[test]
fn every_documented_key_is_printed() {
    let scene = Scene::new();
    let spool = scene.record(&["--no-kernel"], &scene.compile("shares.c", &[]), &["0.3"]);
    let spool = spool.to_str().unwrap();
    let pid = std::process::id().to_string();
    for (command, arguments) in [
        ("report", &[spool][..]),
        ("info", &[spool]),
        ("verify", &[spool]),
        ("diff", &[spool, spool]),
        ("doctor", &["-p", &pid]),
    ] {
        let output = stackpulse().args([command, "--json"]).args(arguments).output().unwrap();
        let said: Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{command}: {error}: {}", stderr(&output)));
        let keys = promised(command);
        assert!(keys.len() >= 3, "{command}: {keys:?}");
        for key in keys {
            assert!(said.get(&key).is_some(), "{command}: {key} is missing");
        }
    }
}
