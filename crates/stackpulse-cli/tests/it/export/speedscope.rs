//! speedscope files, held against its JSON schema.

use super::{export, json};
use crate::harness::{Scene, has_tool, stderr, stdout};
use std::path::Path;
use std::process::Command;

#[test]
fn speedscope_files_follow_its_schema_and_keep_the_weights() {
    if !has_tool("jsonschema") {
        return;
    }
    let scene = Scene::new();
    let spool = scene.record(&["--no-kernel"], &scene.compile("threads.cpp", &[]), &["0.5"]);
    let output = export(&scene, &spool, "out.speedscope.json", &[]);
    let schema =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/export/data/speedscope-schema.json");
    let checked = Command::new("jsonschema").arg("-i").arg(&output).arg(schema).output().unwrap();
    assert!(checked.status.success(), "{}{}", stdout(&checked), stderr(&checked));
    let file = json(&output);
    let profiles = file["profiles"].as_array().unwrap();
    assert!(profiles.len() > 1, "a profile for each thread");
    for profile in profiles {
        let (mut open, mut last) = (Vec::new(), 0);
        for event in profile["events"].as_array().unwrap() {
            let at = event["at"].as_u64().unwrap();
            assert!(at >= last);
            last = at;
            match event["type"].as_str().unwrap() {
                "O" => open.push(event["frame"].clone()),
                _ => assert_eq!(open.pop().as_ref(), Some(&event["frame"])),
            }
        }
        assert!(open.is_empty());
        assert_eq!(profile["endValue"].as_u64(), Some(last));
    }
}
