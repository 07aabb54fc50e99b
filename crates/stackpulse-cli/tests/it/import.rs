//! Recordings of perf's become spools: the stacks of a program whose stacks are known.

use crate::harness::{Scene, has_chain, has_tool, info, percent, run, stacks, stderr};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Records a program with perf, into a file or, through a pipe, as a stream.
fn perf_record(scene: &Scene, options: &[&str], program: &Path, is_stream: bool) -> PathBuf {
    let recording = scene.path("perf.data");
    let mut perf = Command::new("perf");
    perf.args(["record", "-q", "-e", "cpu-clock", "-F", "499", "--call-graph", "dwarf,8192"]);
    perf.args(options).arg("-o");
    if is_stream {
        perf.arg("-").stdout(std::fs::File::create(&recording).unwrap());
    } else {
        perf.arg(&recording).stdout(Stdio::null());
    }
    let output = perf.arg("--").arg(program).arg("0.5").output().expect("run perf");
    assert!(output.status.success(), "{}", stderr(&output));
    recording
}

fn imported(scene: &Scene, recording: &Path) -> PathBuf {
    let spool = scene.path("imported.spool");
    let output = run([Path::new("import"), recording, Path::new("-o"), &spool]);
    assert!(output.status.success(), "{}", stderr(&output));
    spool
}

#[test]
fn files_streams_and_compressed_files_of_perf_show_the_whole_stacks() {
    if !has_tool("perf") {
        return;
    }
    let scene = Scene::new();
    let program = scene.compile("shares.c", &[]);
    for (options, is_stream) in [(&[][..], false), (&["-z"], false), (&[], true)] {
        let spool = imported(&scene, &perf_record(&scene, options, &program, is_stream));
        let stacks = stacks(&spool);
        let right = percent(&stacks, |stack| {
            ["sixty", "thirty", "ten"].iter().any(|name| {
                let [middle, leaf] = ["middle", "leaf"].map(|part| format!("{part}_{name}"));
                has_chain(stack, &["main", "outer", &middle, &leaf])
                    && stack.iter().any(|frame| frame == "_start")
            })
        });
        assert!(right >= 90.0, "{options:?}: {stacks:?}");
        let info = info(&spool);
        assert_eq!(info["rate_hz"], 499);
        assert!(info["samples"].as_u64().unwrap() > 20);
        assert_eq!(info["state"], "finished");
    }
}

#[test]
fn what_is_no_recording_of_perfs_is_refused_in_one_sentence() {
    let scene = Scene::new();
    let refused = |name: &str, contents: &[u8]| {
        let path = scene.path(name);
        std::fs::write(&path, contents).unwrap();
        let spool = scene.path("out.spool");
        let output = run([Path::new("import"), &path, Path::new("-o"), &spool]);
        assert_eq!(output.status.code(), Some(1));
        assert!(!spool.exists());
        stderr(&output)
    };
    assert!(refused("empty.data", b"").contains("empty.data is empty"));
    assert!(refused("text", b"hello, this is text\n").contains("is not a perf.data file"));
    assert!(refused("swapped", b"2ELIFREP\0\0\0\0\0\0\0\x68").contains("big-endian"));
    let missing = run(["import", "/nonexistent/perf.data"]);
    assert!(stderr(&missing).contains("there is no file /nonexistent/perf.data"));
    let directory = run(["import", "/tmp"]);
    assert!(stderr(&directory).contains("/tmp is a directory"));
}
