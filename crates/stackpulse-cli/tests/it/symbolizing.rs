//! Names that come later, and reports that need no binary.

use crate::harness::{Scene, has_tool, info, run, stackpulse, stderr, stdout};
use std::path::{Path, PathBuf};
use std::process::Command;

fn shell(scene: &Scene, line: &str) {
    let output =
        Command::new("sh").args(["-ec", line]).current_dir(scene.path("")).output().unwrap();
    assert!(output.status.success(), "{line}: {}", stderr(&output));
}

fn report(spool: &Path) -> String {
    let output = run([Path::new("report"), spool]);
    assert!(output.status.success(), "{}", stderr(&output));
    stdout(&output)
}

/// A program without symbols, recorded, and its debug file aside in `aside/`.
fn stripped_recording(scene: &Scene) -> PathBuf {
    let program = scene.compile("ratio.c", &["-DPARSE=30", "-Wl,--build-id=0xabcdef12"]);
    shell(
        scene,
        "mkdir -p aside/.build-id/ab && objcopy --only-keep-debug ratio aside/.build-id/ab/cdef12.debug && strip ratio",
    );
    scene.record(&["-F", "997"], &program, &[])
}

#[test]
fn names_can_be_stored_later_and_a_copy_has_them_without_any_file() {
    if !has_tool("objcopy") || !has_tool("strip") {
        return;
    }
    let scene = Scene::new();
    let spool = stripped_recording(&scene);
    let before = info(&spool);
    let missing = &before["unnamed"]["modules"][0];
    assert_eq!(missing["module"], "ratio");
    assert_eq!(missing["build_id"], "abcdef12");
    let told = stdout(&run([Path::new("info"), &spool]));
    assert!(told.contains(".build-id/ab/cdef12.debug would name it"), "{told}");

    let again = run([Path::new("symbolize"), &spool]);
    assert!(stdout(&again).contains("no better names found"), "{}", stdout(&again));

    let aside = scene.path("aside");
    let found = run([Path::new("symbolize"), Path::new("--debug-dir"), &aside, &spool]);
    assert!(found.status.success(), "{}", stderr(&found));
    let text = stdout(&found);
    assert!(text.contains("better than before") && text.contains("cdef12.debug"), "{text}");
    assert_eq!(run([Path::new("verify"), &spool]).status.code(), Some(0));
    let after = info(&spool);
    assert!(
        after["unnamed"]["samples"].as_u64() < before["unnamed"]["samples"].as_u64(),
        "{after}"
    );

    let here = report(&spool);
    assert!(here.contains("main"), "{here}");
    let copy = scene.path("copy.spool");
    std::fs::copy(&spool, &copy).unwrap();
    shell(&scene, "rm -r aside ratio");
    assert_eq!(report(&copy), here);
    let nothing = run([Path::new("symbolize"), &copy]);
    assert!(stdout(&nothing).contains("no better names found"), "{}", stdout(&nothing));
    assert_eq!(report(&copy), here);
}

#[test]
fn a_report_from_stored_names_opens_no_binary() {
    if !has_tool("strace") {
        return;
    }
    let scene = Scene::new();
    let program = scene.compile("ratio.c", &["-DPARSE=30"]);
    let spool = scene.record(&["-F", "997"], &program, &[]);
    let trace = scene.path("trace");
    let output = Command::new("strace")
        .args(["-f", "-e", "trace=open,openat", "-o"])
        .arg(&trace)
        .arg(stackpulse().get_program())
        .arg("report")
        .arg(&spool)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let opened = std::fs::read_to_string(&trace).unwrap();
    let spool_at = opened.find("recorded.spool").unwrap_or_else(|| panic!("{opened}"));
    // What the loader opens before is the command's own.
    let later = &opened[spool_at..];
    let is_binary = |line: &&str| {
        line.contains("/ratio\"") || line.contains(".so") || line.contains("/usr/lib/debug")
    };
    let binaries: Vec<&str> = later.lines().filter(is_binary).collect();
    assert!(binaries.is_empty(), "{binaries:?}");
}
