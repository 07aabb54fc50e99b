//! Which form is written, and where.

use super::{export, json, shares};
use crate::harness::{Scene, run, stderr};

#[test]
fn an_output_that_was_there_is_kept_as_old() {
    let scene = Scene::new();
    let spool = shares(&scene);
    std::fs::write(scene.path("out.folded"), "earlier").unwrap();
    let output = export(&scene, &spool, "out.folded", &[]);
    assert!(std::fs::read_to_string(output).unwrap().contains("leaf_sixty"));
    assert_eq!(std::fs::read_to_string(scene.path("out.folded.old")).unwrap(), "earlier");
}

#[test]
fn a_form_that_nothing_tells_is_asked_for() {
    let scene = Scene::new();
    let spool = shares(&scene);
    let spool = spool.to_str().unwrap();
    for words in [&["export", spool][..], &["export", "-o", "x.unknown", spool]] {
        let done = run(words);
        assert_eq!(done.status.code(), Some(1));
        assert!(stderr(&done).contains("-f FORMAT") && stderr(&done).contains(".pb.gz"));
    }
}

#[test]
fn an_output_that_cannot_be_made_is_told_with_its_name() {
    let scene = Scene::new();
    let spool = shares(&scene);
    let output = scene.path("missing/out.pb.gz");
    let done = run(["export", "-o", output.to_str().unwrap(), spool.to_str().unwrap()]);
    assert_eq!(done.status.code(), Some(1));
    assert!(stderr(&done).contains("missing/out.pb.gz"), "{}", stderr(&done));
}

#[test]
fn a_profile_without_samples_is_a_whole_file_in_every_form() {
    let scene = Scene::new();
    let spool = shares(&scene);
    for name in [
        "o.pb.gz",
        "o.json.gz",
        "o.speedscope.json",
        "o.folded",
        "o.svg",
        "o.html",
        "o.perf.txt",
        "o.trace.json",
    ] {
        let output = scene.path(name);
        let done = run([
            "export",
            "--time",
            "1h-2h",
            "-o",
            output.to_str().unwrap(),
            spool.to_str().unwrap(),
        ]);
        assert!(done.status.success(), "{name}: {}", stderr(&done));
        assert!(stderr(&done).contains("0 samples because"), "{name}: {}", stderr(&done));
        if name.ends_with("e.json") {
            json(&output);
        }
    }
}
