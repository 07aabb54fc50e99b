//! Programs that copy their text over itself, into memory of no file.

use crate::harness::{Scene, has_chain, has_tool, percent, stackpulse, stacks, stderr};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Checks that nearly all samples show the functions that were moved, and who called them.
fn check(spool: &Path, what: &[&str]) {
    let stacks = stacks(spool);
    let chain = ["main", "moved_outer", "moved_inner", "moved_leaf"];
    let right = percent(&stacks, |stack| stack[1] == "_start" && has_chain(stack, &chain));
    assert!(right > 95.0, "{what:?}: {right} %: {:?}", stacks.first());
}

/// Records a program that has moved its text already.
fn attach(scene: &Scene, program: &Path, words: &[&str]) -> PathBuf {
    let mut target =
        Command::new(program).arg("60").args(words).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(target.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "moved\n", "{words:?}");
    let spool = scene.path("attached.spool");
    let pid = target.id().to_string();
    let mut recorder = stackpulse();
    recorder.args(["record", "--no-kernel", "-d", "300ms", "-p", &pid, "-o"]).arg(&spool);
    let output = recorder.output().unwrap();
    target.kill().unwrap();
    target.wait().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    spool
}

#[test]
fn text_that_was_moved_into_memory_of_no_file_is_still_the_files() {
    let scene = Scene::new();
    let program = scene.compile("moved.c", &["-DPROGRAM"]);
    let own = scene.path("own");
    std::fs::rename(program, &own).unwrap();
    let mut libraries = vec!["-fuse-ld=bfd", "-Wl,-z,noseparate-code"];
    if has_tool("ld.lld") {
        libraries.push("-fuse-ld=lld");
    }
    let libraries: Vec<String> = libraries
        .into_iter()
        .enumerate()
        .map(|(at, linker)| {
            let made = scene.compile("moved.c", &["-shared", "-fPIC", linker]);
            let library = scene.path(&format!("library{at}.so"));
            std::fs::rename(made, &library).unwrap();
            library.to_str().unwrap().to_owned()
        })
        .collect();
    for how in ["copy", "mremap"] {
        let program = ["0.3", "middle", how];
        check(&scene.record(&["--no-kernel"], &own, &program), &program);
        check(&attach(&scene, &own, &program[1..]), &program);
        for library in &libraries {
            for part in ["beginning", "middle", "end", "whole"] {
                let words = ["0.3", part, how, library];
                check(&scene.record(&["--no-kernel"], &own, &words), &words);
                // Where segments are shifted against one another, and none of the text is left, nothing in the maps tells by how much.
                if part != "whole" || library == &libraries[0] {
                    check(&attach(&scene, &own, &words[1..]), &words);
                }
            }
        }
    }
}
