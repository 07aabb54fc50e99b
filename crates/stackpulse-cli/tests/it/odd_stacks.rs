//! Stacks that other means than plain calls made, and code of other compilers.

use crate::harness::{Scene, has_chain, has_tool, info, percent, stacks, stderr};
use std::path::Path;
use std::process::Command;

/// Checks that of the stacks that hold `leaf` at least so many percent show the whole chain, to its root.
fn check(spool: &Path, (leaf, chain): (&str, &[&str]), (at_least, root): (f64, &str)) {
    let mut stacks = stacks(spool);
    stacks.retain(|(stack, _)| stack.iter().any(|frame| frame == leaf));
    let samples: u64 = stacks.iter().map(|(_, count)| count).sum();
    assert!(samples > 50, "{samples} samples of {leaf}");
    let whole = percent(&stacks, |stack| {
        let has_root = stack.get(1).is_some_and(|outermost| {
            // Some functions have a second name with more or fewer underscores.
            let plain = |name: &str| name.trim_start_matches('_').to_owned();
            plain(outermost) == plain(root)
                || root.is_empty() && !outermost.starts_with("[truncated")
        });
        has_root && has_chain(stack, chain)
    });
    assert!(whole >= at_least, "{whole} % show {root} and {chain:?}: {:?}", stacks.first());
}

#[test]
fn stacks_that_were_not_made_by_plain_calls_are_whole() {
    let scene = Scene::new();
    let program = scene.compile("odd.c", &[]);
    for (kind, chain, root) in [
        ("aligned", &["main", "aligned_frame", "odd_leaf"][..], "_start"),
        ("signal", &["handler", "odd_leaf"], "_start"),
        // The function that a context begins in has a name only where libc's own symbols are installed.
        ("coroutine", &["coroutine", "odd_leaf"], ""),
        ("clone", &["cloned", "odd_leaf"], "__clone"),
        ("stack", &["on_own_stack", "odd_leaf"], "__clone3"),
        ("vfork", &["main", "borrowing_parent", "odd_leaf"], "_start"),
        ("spawn", &["main", "aligned_frame", "odd_leaf"], "_start"),
    ] {
        let spool = scene.record(&["--no-kernel"], &program, &["0.3", kind]);
        check(&spool, ("odd_leaf", chain), (95.0, root));
        if kind == "signal" {
            let behind = percent(&stacks(&spool), |stack| {
                has_chain(stack, &["main", "interrupted"])
                    && stack.last().is_some_and(|leaf| leaf == "odd_leaf")
            });
            assert!(behind > 90.0, "{behind} % show what the signal interrupted");
        }
    }
}

#[test]
fn a_frame_larger_than_the_capture_ends_its_stack_with_the_reason() {
    let scene = Scene::new();
    let program = scene.compile("odd.c", &[]);
    let spool = scene.record(&["--no-kernel"], &program, &["0.5", "large"]);
    let cut = percent(&stacks(&spool), |stack| {
        stack[1] == "[truncated:outside_capture]" && has_chain(stack, &["large_frame", "odd_leaf"])
    });
    assert!(cut > 90.0, "{cut} %");
    let facts = info(&spool);
    let health = &facts["health"][0];
    assert_eq!(health["module"], "odd", "{facts}");
    assert_eq!(health["stopped"]["outside_capture"], facts["truncated"]["total"]);
    let invented = percent(&stacks(&spool), |stack| has_chain(stack, &["main", "large_frame"]));
    assert!(invented < f64::EPSILON, "{invented} %");
}

#[test]
fn exceptions_in_flight_are_unwound() {
    let scene = Scene::new();
    let program = scene.compile("throws.cpp", &[]);
    let spool = scene.record(&["--no-kernel"], &program, &["1"]);
    let stacks = stacks(&spool);
    let in_flight = percent(&stacks, |stack| has_chain(stack, &["main", "catcher()"]));
    let whole = percent(&stacks, |stack| stack[1] == "_start");
    assert!(in_flight > 90.0 && whole > 95.0, "{in_flight} %, {whole} % whole");
}

#[test]
fn rust_without_unwinding_and_with_lto_is_unwound() {
    let scene = Scene::new();
    let program = scene.compile("nested.rs", &["-Cpanic=abort", "-Clto=fat", "-Ccodegen-units=1"]);
    let spool = scene.record(&["--no-kernel"], &program, &["0.5"]);
    let stacks = stacks(&spool);
    let whole = percent(&stacks, |stack| {
        stack[1] == "_start" && stack.iter().any(|frame| frame == "nested::rust_leaf")
    });
    assert!(whole > 95.0, "{whole} %: {:?}", stacks.first());
}

#[test]
fn go_is_unwound_by_its_debug_frame_and_frame_pointers() {
    if !has_tool("go") {
        return;
    }
    let scene = Scene::new();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/targets/spin.go");
    for flags in ["", "-s -w"] {
        let program = scene.path("spin");
        let mut go = Command::new("go");
        go.args(["build", "-ldflags", flags, "-o"]).arg(&program).arg(&source);
        let built = go.env("GOCACHE", scene.path("cache")).env("GOFLAGS", "-mod=mod").output();
        let built = built.expect("run go");
        assert!(built.status.success(), "{}", stderr(&built));
        let spool = scene.record(&["--no-kernel"], &program, &["0.5"]);
        let facts = info(&spool);
        let (samples, cut) =
            (facts["samples"].as_u64().unwrap(), facts["truncated"]["total"].as_u64().unwrap());
        assert!(samples > 100 && cut * 20 < samples, "{flags:?}: {facts}");
        if flags.is_empty() {
            let chain = ["main.main", "main.goOuter", "main.goLeaf"];
            let known = percent(&stacks(&spool), |stack| has_chain(stack, &chain));
            assert!(known > 90.0, "{known} %: {:?}", stacks(&spool).first());
        }
    }
}
