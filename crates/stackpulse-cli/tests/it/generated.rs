//! Code made at run time, and libraries, in memory that has the name of a file or none.

use crate::harness::{Scene, has_chain, has_tool, info, percent, stackpulse, stacks, stderr};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::PathBuf;
use std::process::Command;

/// Who records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Who {
    Root,
    /// One who may not open mapped files by way of `map_files`.
    User,
}

/// Those of the two that can be tried here; says which cannot.
fn recorders() -> Vec<Who> {
    if fs::metadata("/proc/self").unwrap().uid() != 0 {
        eprintln!("skipped: root's part");
        return vec![Who::User];
    }
    let paranoid = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap();
    if paranoid.trim().parse().is_ok_and(|level: i32| level > 2) || !has_tool("setpriv") {
        eprintln!("skipped: ordinary users may not record here");
        return vec![Who::Root];
    }
    vec![Who::Root, Who::User]
}

/// A scene that everyone may write into, with the command in it.
fn scene_for_all() -> (Scene, PathBuf) {
    let scene = Scene::new();
    let command = scene.path("stackpulse");
    fs::copy(stackpulse().get_program(), &command).unwrap();
    let everyone = fs::Permissions::from_mode(0o777);
    fs::set_permissions(command.parent().unwrap(), everyone).unwrap();
    (scene, command)
}

/// Records a program as one of them, and returns its stacks.
fn stacks_by(
    who: Who,
    (scene, command): &(Scene, PathBuf),
    program: &[&str],
) -> Vec<(Vec<String>, u64)> {
    let spool = scene.path("by.spool");
    let _ = fs::remove_file(&spool);
    let is_root = fs::metadata("/proc/self").unwrap().uid() == 0;
    let mut recorder = if who == Who::User && is_root {
        let mut user = Command::new("setpriv");
        user.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(command);
        user
    } else {
        stackpulse()
    };
    recorder.args(["record", "--no-kernel", "-o"]).arg(&spool).arg("--").args(program);
    let output = recorder.output().unwrap();
    assert!(output.status.success(), "{who:?}, {program:?}: {}", stderr(&output));
    let pid = &info(&spool)["processes"][0]["pid"];
    let _ = fs::remove_file(format!("/tmp/perf-{pid}.map"));
    stacks(&spool)
}

#[test]
fn generated_code_is_named_whatever_memory_it_is_in_and_whoever_records() {
    let scene = scene_for_all();
    let program = scene.0.compile("generated.c", &[]);
    let kinds = ["anonymous", "memfd", "sealed", "heap", "shared", "named", "shm", "tmp"];
    for who in recorders() {
        for kind in kinds {
            let stacks = stacks_by(who, &scene, &[program.to_str().unwrap(), kind]);
            let right = percent(&stacks, |stack| {
                stack[1] == "_start" && has_chain(stack, &["main", "caller", "jitted_loop"])
            });
            assert!(right > 95.0, "{who:?}, {kind}: {right} %: {:?}", stacks.first());
        }
    }
}

/// Two huge pages, given back when dropped.
struct HugePages {
    before: String,
}

impl HugePages {
    const PATH: &str = "/proc/sys/vm/nr_hugepages";

    fn new() -> Option<Self> {
        let before = fs::read_to_string(Self::PATH).ok()?;
        let pages: u64 = before.trim().parse().ok()?;
        fs::write(Self::PATH, (pages + 2).to_string()).ok()?;
        let pages_now = fs::read_to_string(Self::PATH).ok()?.trim().parse();
        let this = Self { before };
        (pages_now == Ok(pages + 2)).then_some(this)
    }
}

impl Drop for HugePages {
    fn drop(&mut self) {
        let _ = fs::write(Self::PATH, &self.before);
    }
}

#[test]
fn generated_code_in_a_file_of_huge_pages_is_named() {
    let Some(_pages) = HugePages::new().filter(|_| has_tool("unshare") && has_tool("mount")) else {
        eprintln!("skipped: there are no huge pages to be had");
        return;
    };
    let scene = Scene::new();
    let program = scene.compile("generated.c", &[]);
    let (pages, spool) = (scene.path("pages"), scene.path("huge.spool"));
    fs::create_dir(&pages).unwrap();
    // The mount is seen by the command and the program alone, and goes with them.
    let script = "mount -t hugetlbfs none \"$2\" && exec \"$0\" record --no-kernel -o \"$3\" -- \"$1\" \"$2\"";
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", script]).arg(stackpulse().get_program());
    let output = command.arg(&program).arg(&pages).arg(&spool).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let _ = fs::remove_file(format!("/tmp/perf-{}.map", info(&spool)["processes"][0]["pid"]));
    let stacks = stacks(&spool);
    let right = percent(&stacks, |stack| has_chain(stack, &["main", "caller", "jitted_loop"]));
    assert!(right > 95.0, "{right} %: {:?}", stacks.first());
}

#[test]
fn a_library_in_memory_is_unwound_by_its_own_tables() {
    let scene = scene_for_all();
    let program = scene.0.compile("generated.c", &[]);
    let library = scene.0.compile("library_loop.c", &["-shared", "-fPIC"]);
    let words = |kind| [program.to_str().unwrap(), kind, library.to_str().unwrap()];
    for who in recorders() {
        // Without a descriptor only root gets at the file; to others it is still no generated code.
        for kind in ["open", "closed"] {
            let stacks = stacks_by(who, &scene, &words(kind));
            // It has a name only where its file could be kept.
            let in_it = |frame: &String| {
                frame.starts_with("[unknown] memfd:library+0x") || frame.starts_with("library_")
            };
            let at_all = percent(&stacks, |stack| stack.iter().any(in_it));
            assert!(at_all > 95.0, "{who:?}, {kind}: {at_all} %: {:?}", stacks.first());
            let whole = percent(&stacks, |stack| {
                let at = stack.iter().position(in_it);
                stack[1] == "_start" && at.is_some_and(|at| stack[at - 1] == "caller")
            });
            let is_readable = who == Who::Root || kind == "open";
            assert!(!is_readable || whole > 95.0, "{who:?}, {kind}: {whole} %: {stacks:?}");
        }
    }
}
