//! `cargo`: builds a target of a Cargo package, and records it.

use crate::args::{Args, CargoArgs, Command as Typed, Rate};
use crate::failure::{Failure, RECORDER_FAILED};
use clap::{Parser, ValueEnum};
use serde_json::Value;
use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

/// A program that cargo has built.
struct Built {
    name: String,
    executable: String,
}

pub(crate) fn run(args: &CargoArgs) -> Result<u8, Failure> {
    let built = build(args)?;
    let executable = match &built[..] {
        [one] => one.executable.clone(),
        [] => {
            return Err(failed(
                "cargo built no program to record; name one with --bin, --example, --test or --bench",
            ));
        }
        several => {
            let names: Vec<&str> = several.iter().map(|built| built.name.as_str()).collect();
            return Err(failed(format!(
                "cargo built several programs ({}); name one with --bin, --example, --test or --bench",
                names.join(", ")
            )));
        }
    };
    match Args::try_parse_from(record_words(args, executable)) {
        Ok(Args { command: Typed::Record(record) }) => super::record::run(&record),
        Ok(_) => Err(failed("what was to be recorded is no recording")),
        Err(error) => Err(failed(error.to_string())),
    }
}

fn failed(message: impl Into<String>) -> Failure {
    Failure::with_status(RECORDER_FAILED, message)
}

fn build(args: &CargoArgs) -> Result<Vec<Built>, Failure> {
    // Cargo sets this for its subcommands; it is the cargo of the right toolchain.
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(&cargo);
    command.args(cargo_words(args)).stdin(Stdio::null()).stdout(Stdio::piped());
    for profile in ["RELEASE", "BENCH"] {
        let variable = format!("CARGO_PROFILE_{profile}_DEBUG");
        if std::env::var_os(&variable).is_none() {
            command.env(variable, "line-tables-only");
        }
    }
    let mut child = command.spawn().map_err(|error| {
        failed(format!("run {}: {error}; install Rust, or set CARGO", cargo.display()))
    })?;
    let mut built = Vec::new();
    if let Some(messages) = child.stdout.take() {
        for line in BufReader::new(messages).split(b'\n') {
            let line = line.map_err(|error| failed(format!("read what cargo says: {error}")))?;
            built.extend(
                serde_json::from_slice(&line).ok().and_then(|message| program(&message, args)),
            );
        }
    }
    let status = child.wait().map_err(|error| failed(format!("wait for cargo: {error}")))?;
    if status.success() { Ok(built) } else { Err(failed("cargo could not build it (see above)")) }
}

fn cargo_words(args: &CargoArgs) -> Vec<OsString> {
    let mut words: Vec<OsString> = Vec::new();
    let mut push = |word: &str| words.push(word.into());
    match (&args.bench, &args.test) {
        (Some(_), _) => ["bench", "--no-run"].into_iter().for_each(&mut push),
        (_, Some(_)) => ["test", "--no-run"].into_iter().for_each(&mut push),
        _ => push("build"),
    }
    push("--message-format=json-render-diagnostics");
    let named = [
        ("--bin", &args.bin),
        ("--example", &args.example),
        ("--bench", &args.bench),
        ("--package", &args.package),
    ];
    for (option, name) in named {
        if let Some(name) = name {
            [option, name].into_iter().for_each(&mut push);
        }
    }
    match args.test.as_deref() {
        Some("") => push("--lib"),
        Some(name) => ["--test", name].into_iter().for_each(&mut push),
        None => {}
    }
    match &args.profile {
        Some(profile) => ["--profile", profile].into_iter().for_each(&mut push),
        None if args.bench.is_none() && !args.dev => push("--release"),
        None => {}
    }
    for features in &args.features {
        ["--features", features].into_iter().for_each(&mut push);
    }
    for (wanted, option) in [
        (args.no_default_features, "--no-default-features"),
        (args.all_features, "--all-features"),
        (args.quiet, "--quiet"),
    ] {
        if wanted {
            push(option);
        }
    }
    if let Some(manifest) = &args.manifest_path {
        words.push("--manifest-path".into());
        words.push(manifest.into());
    }
    words
}

/// The program of a message that tells of one: examples and tests are built beside others only where they are asked for.
fn program(message: &Value, args: &CargoArgs) -> Option<Built> {
    if message["reason"] != "compiler-artifact" {
        return None;
    }
    let executable = message["executable"].as_str()?;
    let name = message["target"]["name"].as_str()?;
    let kinds = message["target"]["kind"].as_array()?;
    let is = |kind: &str| kinds.iter().any(|of| of == kind);
    let is_wanted = match (&args.bin, &args.example, &args.test, &args.bench) {
        (Some(bin), ..) => is("bin") && name == bin,
        (_, Some(example), ..) => is("example") && name == example,
        (_, _, Some(test), _) if test.is_empty() => message["profile"]["test"] == true,
        (_, _, Some(test), _) => is("test") && name == test,
        (.., Some(bench)) => is("bench") && name == bench,
        _ => is("bin"),
    };
    is_wanted.then(|| Built { name: name.to_owned(), executable: executable.to_owned() })
}

/// The command line that records the program.
fn record_words(args: &CargoArgs, executable: String) -> Vec<OsString> {
    let rate = match args.freq {
        Rate::Hz(hz) => hz.to_string(),
        Rate::Maximum => "max".to_owned(),
    };
    let mut words: Vec<OsString> =
        ["stackpulse", "record", "--freq", &rate].map(OsString::from).to_vec();
    words.push("--output".into());
    words.push(args.output.clone().into());
    if let Some(format) = args.format.and_then(|format| format.to_possible_value()) {
        words.extend(["--format".into(), OsString::from(format.get_name())]);
    }
    for (wanted, option) in [(args.report, "--report"), (args.quiet, "--quiet")] {
        if wanted {
            words.push(option.into());
        }
    }
    words.push("--".into());
    words.push(executable.into());
    if args.bench.is_some() {
        // As `cargo bench` calls it.
        words.push("--bench".into());
    }
    words.extend(args.arguments.iter().cloned());
    words
}
