//! Chrome's trace events.

use super::{export, json};
use crate::harness::Scene;
use std::collections::BTreeMap;

#[test]
fn chrome_traces_end_every_call_by_its_name() {
    let scene = Scene::new();
    let spool = scene.record(&["--no-kernel"], &scene.compile("threads.cpp", &[]), &["0.5"]);
    let trace = json(&export(&scene, &spool, "out.trace.json", &[]));
    let (mut open, mut names) = (BTreeMap::<u64, Vec<serde_json::Value>>::new(), 0);
    for event in trace["traceEvents"].as_array().unwrap() {
        let calls = open.entry(event["tid"].as_u64().unwrap()).or_default();
        match event["ph"].as_str().unwrap() {
            "B" => calls.push(event["name"].clone()),
            "E" => assert_eq!(calls.pop().as_ref(), Some(&event["name"])),
            "M" => names += 1,
            _ => {}
        }
    }
    assert!(open.len() > 2 && names > 4 && open.values().all(Vec::is_empty));
}
