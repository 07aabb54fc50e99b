//! `cargo`: what is built is what is recorded.

use crate::harness::{Scene, has_tool, percent, stackpulse, stacks, stderr};
use std::fs;
use std::path::Path;

/// A package with a binary, an example, a test and a library, each of which burns in a function of its own.
fn package(scene: &Scene) {
    let burn = |function: &str| {
        format!(
            "#[inline(never)]\nfn {function}() {{\n    let end = std::time::Instant::now() + std::time::Duration::from_millis(400);\n    \
             let mut n = 0u64;\n    while std::time::Instant::now() < end {{ for _ in 0..10_000 {{ n = std::hint::black_box(n + 1); }} }}\n}}\n"
        )
    };
    let program = |function: &str| {
        format!(
            "{}fn main() {{ assert_eq!(std::env::args().nth(1).as_deref(), Some(\"word\")); {function}(); }}\n",
            burn(function)
        )
    };
    let write = |path: &str, text: String| {
        let path = scene.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write(
        "Cargo.toml",
        "[package]\nname = \"burner\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[workspace]\n"
            .to_owned(),
    );
    write("src/main.rs", program("burn_in_binary"));
    write("examples/shown.rs", program("burn_in_example"));
    write(
        "tests/tested.rs",
        format!("{}#[test]\nfn word_holds() {{ burn_in_test(); }}\n", burn("burn_in_test")),
    );
}

fn recorded(scene: &Scene, options: &[&str], arguments: &[&str]) -> std::path::PathBuf {
    let spool = scene.path("x.spool");
    let output = stackpulse()
        .args(["cargo", "-q", "--manifest-path"])
        .arg(scene.path("Cargo.toml"))
        .args(options)
        .arg("-o")
        .arg(&spool)
        .arg("--")
        .args(arguments)
        .env("CARGO_TARGET_DIR", scene.path("target"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{options:?}: {}", stderr(&output));
    spool
}

fn share(spool: &Path, function: &str) -> f64 {
    percent(&stacks(spool), |stack| stack.iter().any(|frame| frame.ends_with(function)))
}

#[test]
fn binaries_examples_and_tests_are_built_and_recorded() {
    if !has_tool("cargo") {
        return;
    }
    let scene = Scene::new();
    package(&scene);
    for (options, arguments, function) in [
        (&[][..], &["word"][..], "burn_in_binary"),
        (&["--bin", "burner", "--dev"], &["word"], "burn_in_binary"),
        (&["--example", "shown"], &["word"], "burn_in_example"),
        (&["--test", "tested"], &["word"], "burn_in_test"),
    ] {
        let spool = recorded(&scene, options, arguments);
        assert!(share(&spool, function) > 50.0, "{options:?}: {} %", share(&spool, function));
    }
}

#[test]
fn what_cannot_be_built_is_not_recorded() {
    if !has_tool("cargo") {
        return;
    }
    let scene = Scene::new();
    package(&scene);
    fs::write(scene.path("src/main.rs"), "fn main() { no_such_function(); }").unwrap();
    let output = stackpulse()
        .args(["cargo", "--manifest-path"])
        .arg(scene.path("Cargo.toml"))
        .arg("-o")
        .arg(scene.path("x.spool"))
        .env("CARGO_TARGET_DIR", scene.path("target"))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(125));
    assert!(stderr(&output).contains("no_such_function"), "cargo's own words are shown");
    assert!(stderr(&output).contains("stackpulse: cargo could not build it"));
    assert!(!scene.path("x.spool").exists());
}
