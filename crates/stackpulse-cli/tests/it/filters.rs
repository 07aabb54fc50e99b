//! The options that choose samples, on recordings whose parts are known.

use crate::harness::{Scene, info, percent, run, stackpulse, stderr, stdout};
use std::path::Path;

type Stacks = Vec<(Vec<String>, u64)>;

/// The collapsed stacks that pass.
fn filtered(spool: &Path, options: &[&str]) -> Stacks {
    let output =
        stackpulse().args(["export", "-f", "collapsed"]).args(options).arg(spool).output().unwrap();
    assert!(output.status.success(), "{options:?}: {}", stderr(&output));
    let line = |line: &str| {
        let (stack, count) = line.rsplit_once(' ').unwrap();
        (stack.split(';').map(str::to_owned).collect(), count.parse().unwrap())
    };
    stdout(&output).lines().map(line).collect()
}

fn samples(stacks: &Stacks) -> u64 {
    stacks.iter().map(|(_, count)| count).sum()
}

fn with(name: &str) -> impl Fn(&[String]) -> bool + '_ {
    move |stack| stack.iter().any(|frame| frame == name)
}

#[test]
fn parts_of_the_time_add_up_to_the_whole() {
    let scene = Scene::new();
    let program = scene.compile("shares.c", &[]);
    let spool = scene.record(&["--no-kernel"], &program, &["0.8"]);
    let all = samples(&filtered(&spool, &[]));
    assert_eq!(all, info(&spool)["samples"].as_u64().unwrap());
    let parts =
        ["0%-25%", "25%-50%", "50%-100%"].map(|part| samples(&filtered(&spool, &["--time", part])));
    assert_eq!(parts.iter().sum::<u64>(), all, "{parts:?}");
    assert!(parts.iter().all(|&part| part > all / 10), "{parts:?} of {all}");
    let early = samples(&filtered(&spool, &["--time=-300ms"]));
    let late = samples(&filtered(&spool, &["--time", "300ms-"]));
    assert!(early > 0 && late > 0 && early + late == all, "{early} + {late} of {all}");
    assert_eq!(samples(&filtered(&spool, &["--time", "1h-2h"])), 0);
}

#[test]
fn processes_and_threads_are_told_apart() {
    let scene = Scene::new();
    let program = scene.compile("children.c", &[]);
    let spool = scene.record(&["--no-kernel"], &program, &["6"]);
    let all = samples(&filtered(&spool, &[]));
    let forked = filtered(&spool, &["--comm", "^children$"]);
    let execed = filtered(&spool, &["--thread", "exe"]);
    assert!(percent(&forked, with("burn_after_exec")) < 0.1);
    assert!(percent(&execed, with("burn_after_exec")) > 90.0);
    assert_eq!(samples(&forked) + samples(&execed), all);
    let facts = info(&spool);
    let pids: Vec<String> =
        facts["processes"].as_array().unwrap().iter().map(|p| p["pid"].to_string()).collect();
    let by_pid: u64 = pids.iter().map(|pid| samples(&filtered(&spool, &["--pid", pid]))).sum();
    let by_tid = samples(&filtered(&spool, &["--tid", &pids.join(",")]));
    assert_eq!((by_pid, by_tid), (all, all));
}

#[test]
fn names_choose_whole_stacks() {
    let scene = Scene::new();
    let program = scene.compile("shares.c", &[]);
    let spool = scene.record(&["--no-kernel"], &program, &["0.8"]);
    let all = samples(&filtered(&spool, &[]));
    let sixty = filtered(&spool, &["-I", "^middle_sixty$"]);
    assert!(percent(&sixty, with("main")) > 99.0, "whole stacks are kept");
    let others = filtered(&spool, &["-X", "^middle_sixty$"]);
    assert_eq!(samples(&sixty) + samples(&others), all);
    assert_eq!(samples(&filtered(&spool, &["-I", "leaf_sixty", "-I", "leaf_ten"])), 0);
    let ran = filtered(&spool, &["--module", "^shares$"]);
    let elsewhere = samples(&filtered(&spool, &["--module", "^libc|vdso|\\[|^ld-"]));
    assert!(samples(&ran) > all / 2);
    assert_eq!(samples(&ran) + elsewhere, all);
}

#[test]
fn depth_and_rareness_cut_stacks_and_keep_their_weight() {
    let scene = Scene::new();
    let program = scene.compile("shares.c", &[]);
    let spool = scene.record(&["--no-kernel"], &program, &["0.8"]);
    let all = samples(&filtered(&spool, &[]));
    let cut = filtered(&spool, &["--max-stack", "2"]);
    assert_eq!(samples(&cut), all);
    // The comm, a marker, and two frames.
    let marked = |stack: &[String]| stack.len() == 4 && stack[1] == "[truncated:depth_limit]";
    assert!(percent(&cut, marked) > 90.0, "{cut:?}");
    let common = filtered(&spool, &["--percent-limit", "25"]);
    assert_eq!(samples(&common), all);
    assert!(percent(&common, with("leaf_sixty")) > 50.0);
    assert!(percent(&common, with("middle_ten")) < 0.1, "{common:?}");
    assert!(percent(&filtered(&spool, &[]), with("middle_ten")) > 5.0);
}

#[test]
fn a_report_tells_how_much_was_left_out() {
    let scene = Scene::new();
    let program = scene.compile("shares.c", &[]);
    let spool = scene.record(&["--no-kernel"], &program, &["0.4"]);
    let spool = spool.to_str().unwrap();
    let some = run(["report", "-I", "leaf_ten", spool]);
    let all = info(Path::new(spool))["samples"].as_u64().unwrap();
    let said = format!("of {all} samples pass the filters");
    assert!(stdout(&some).contains(&said), "{}", stdout(&some));
    let none = run(["report", "--comm", "no such comm", spool]);
    assert_eq!(stdout(&none), format!("0 samples because none of {all} passes the filters\n"));
}

#[test]
fn what_is_no_filter_is_refused_in_a_sentence() {
    for (option, value, sentence) in [
        ("--time", "5s-1s", "ends before it begins"),
        ("--time", "soon", "give a range such as"),
        ("--comm", "(", "unclosed group"),
        ("--percent-limit", "101", "from 0 to 100"),
        ("--max-stack", "0", "0 is not in 1.."),
    ] {
        let output = run(["report", option, value]);
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr(&output).contains(sentence), "{option}: {}", stderr(&output));
    }
}
