//! One clear sentence, and the right exit status, for whatever is typed.

use crate::harness::{Scene, run, stackpulse, stacks, stderr, stdout};
use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

/// Runs the command; its exit status, and its one line on standard error.
fn refused(words: &[&str]) -> (i32, String) {
    let output = run(words);
    let said = stderr(&output);
    assert_eq!(said.lines().count(), 1, "{words:?}: {said}");
    assert!(!said.contains("panicked") && !said.contains("Error {"), "{said}");
    (output.status.code().expect("an exit status"), said)
}

#[test]
fn programs_that_cannot_be_started_are_told_apart() {
    let scene = Scene::new();
    let spool = scene.path("x.spool");
    let spool = spool.to_str().unwrap();
    let script = scene.path("script");
    fs::write(&script, "no program").unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o644)).unwrap();
    let directory = scene.path("");
    for (program, status, sentence) in [
        ("no-such-program", 127, "there is no program no-such-program"),
        ("/no/such/path", 127, "there is no program /no/such/path"),
        (script.to_str().unwrap(), 126, "may not be executed"),
        (directory.to_str().unwrap(), 126, "is a directory"),
    ] {
        let (code, said) = refused(&["record", "-o", spool, "--", program]);
        assert_eq!(code, status, "{said}");
        assert!(said.contains(sentence), "{said}");
    }
    assert!(!scene.path("x.spool").exists(), "nothing is left behind");
}

#[test]
fn a_program_that_is_nowhere_is_told_so_whatever_path_holds() {
    let scene = Scene::new();
    let closed = scene.path("closed");
    fs::write(&closed, "a file, not a directory").unwrap();
    let spool = scene.path("x.spool");
    let output = stackpulse()
        .args(["record", "-o"])
        .arg(&spool)
        .args(["--", "no-such-program"])
        .env("PATH", format!("{}:/root:/usr/bin:/bin", closed.display()))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(127), "{}", stderr(&output));
}

#[test]
fn processes_that_cannot_be_recorded_are_told_apart() {
    let scene = Scene::new();
    let spool = scene.path("x.spool");
    let spool = spool.to_str().unwrap();
    let attach = |pid: &str| refused(&["record", "-o", spool, "-p", pid]);
    let (code, said) = attach("4194304");
    assert_eq!((code, said.contains("there is no process 4194304")), (125, true), "{said}");
    let (code, said) = attach("2");
    assert_eq!((code, said.contains("kernel thread")), (125, true), "{said}");

    let mut ended = Command::new("true").spawn().unwrap();
    let pid = ended.id();
    while fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z")) {
        std::thread::yield_now();
    }
    let (code, said) = attach(&pid.to_string());
    assert_eq!((code, said.contains("zombie")), (125, true), "{said}");
    ended.wait().unwrap();

    // A thread of this very process that is not its leader.
    let (tell, told) = std::sync::mpsc::channel();
    let (end, ended) = std::sync::mpsc::channel::<()>();
    let thread = std::thread::spawn(move || {
        let link = fs::read_link("/proc/thread-self").unwrap();
        tell.send(link.file_name().unwrap().to_str().unwrap().to_owned()).unwrap();
        let _ = ended.recv();
    });
    let tid = told.recv().unwrap();
    let (code, said) = attach(&tid);
    drop(end);
    thread.join().unwrap();
    assert_eq!(code, 125);
    assert!(said.contains(&format!("attach to {}", std::process::id())), "{said}");
}

#[test]
fn outputs_that_cannot_be_written_are_named() {
    for path in ["/no/such/directory/x.spool", "/proc/x.spool", "/"] {
        let (code, said) = refused(&["record", "-o", path, "--", "true"]);
        assert_eq!(code, 125);
        assert!(said.contains(path) && said.contains("-o FILE"), "{said}");
    }
}

#[test]
fn files_that_are_no_spools_are_told_apart_by_every_reader() {
    let scene = Scene::new();
    let file = |name: &str, bytes: &[u8]| {
        fs::write(scene.path(name), bytes).unwrap();
        scene.path(name).to_str().unwrap().to_owned()
    };
    let program = scene.compile("shares.c", &[]);
    let spool = scene.record(&["--no-kernel"], &program, &["0.2"]);
    let mut newer = fs::read(&spool).unwrap();
    newer[8] = 9;
    let checksum = crc32c::crc32c(&newer[..12]);
    newer[12..16].copy_from_slice(&checksum.to_le_bytes());
    let fifo = scene.path("fifo").to_str().unwrap().to_owned();
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let cases = [
        (scene.path("none").to_str().unwrap().to_owned(), "there is no file"),
        (file("empty", b""), "is empty"),
        (program.to_str().unwrap().to_owned(), "an ELF file"),
        (file("perf.data", b"PERFILE2 and more bytes than a header"), "a perf.data file"),
        (file("x.gz", b"\x1f\x8b\x08\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"), "gzip"),
        (file("newer", &newer), "newer stackpulse"),
        (scene.path("").to_str().unwrap().to_owned(), "is a directory"),
        (fifo, "no regular file"),
    ];
    for (path, sentence) in &cases {
        for command in
            [&["report"][..], &["info"], &["verify"], &["export", "-f", "collapsed"], &["diff"]]
        {
            let mut words = command.to_vec();
            words.push(path);
            if command[0] == "diff" {
                words.push(spool.to_str().unwrap());
            }
            let (code, said) = refused(&words);
            assert!(code == 1 || code == 2, "{words:?}: {code}");
            assert!(said.contains(sentence) && said.contains(path.as_str()), "{words:?}: {said}");
        }
    }
}

#[test]
fn torn_and_damaged_spools_are_verified_and_their_rest_is_read() {
    let scene = Scene::new();
    let program = scene.compile("shares.c", &[]);
    let spool = scene.record(&["--no-kernel", "--no-symbols"], &program, &["1.5"]);
    let bytes = fs::read(&spool).unwrap();
    let verify = |name: &str, bytes: &[u8]| {
        fs::write(scene.path(name), bytes).unwrap();
        run(["verify", scene.path(name).to_str().unwrap()])
    };
    assert_eq!(verify("whole", &bytes).status.code(), Some(0));
    let torn = verify("torn", &bytes[..bytes.len() * 2 / 3]);
    assert_eq!(torn.status.code(), Some(1));
    assert!(stdout(&torn).contains("torn at offset"), "{}", stdout(&torn));
    let report = run(["report", scene.path("torn").to_str().unwrap()]);
    assert!(stdout(&report).contains("leaf_sixty"), "{}", stdout(&report));
    let mut damaged = bytes;
    let middle = damaged.len() / 2;
    damaged[middle] ^= 0xff;
    let damaged = verify("damaged", &damaged);
    assert_eq!(damaged.status.code(), Some(2));
    assert!(stdout(&damaged).contains("at offset"), "{}", stdout(&damaged));
}

/// Ids count definitions, and a damaged block takes some along: what is left must keep its own names.
#[test]
fn no_stack_is_invented_where_a_block_is_damaged() {
    let scene = Scene::new();
    let program = scene.compile("children.c", &[]);
    let spool = scene.record(&["--no-kernel"], &program, &["40"]);
    let bytes = fs::read(&spool).unwrap();
    let whole: HashSet<_> = stacks(&spool).into_iter().map(|(stack, _)| stack).collect();
    let damaged = scene.path("damaged.spool");
    let (mut at, mut blocks) = (16, 0);
    while bytes.get(at..at + 24).is_some_and(|header| header[4] == 1) {
        let len = u32::from_le_bytes(bytes[at + 12..at + 16].try_into().unwrap()) as usize;
        let mut changed = bytes.clone();
        changed[at + 24] ^= 1;
        fs::write(&damaged, changed).unwrap();
        for (stack, _) in stacks(&damaged) {
            // A comm that was lost with its block is not known.
            let known = whole.iter().any(|known| known[1..] == stack[1..]);
            assert!(known, "block {blocks}: {stack:?}");
        }
        at += 24 + len;
        blocks += 1;
    }
    assert!(blocks > 3, "{blocks} blocks");
}

#[test]
fn a_reader_that_has_seen_enough_is_no_failure() {
    let scene = Scene::new();
    let program = scene.compile("shares.c", &[]);
    let spool = scene.record(&[], &program, &["0.3"]);
    let mut report = stackpulse()
        .args(["info", "--dump"])
        .arg(&spool)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(report.stdout.take());
    let output = report.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(stderr(&output), "");
}
