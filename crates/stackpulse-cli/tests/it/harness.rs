//! Programs compiled for the tests, and the command run on them.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The command.
pub(crate) fn stackpulse() -> Command {
    Command::new(env!("CARGO_BIN_EXE_stackpulse"))
}

/// Runs the command and returns what it said.
pub(crate) fn run(words: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Output {
    stackpulse().args(words).stdin(Stdio::null()).output().expect("run stackpulse")
}

pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Whether a tool is here that a test needs and a machine with only Rust and a C compiler may lack. Says so if not; with
/// `STACKPULSE_SKIP_NOTHING` set, as in continuous integration, it must be here.
pub(crate) fn has_tool(tool: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).any(|directory| directory.join(tool).is_file());
    if !found {
        assert!(std::env::var_os("STACKPULSE_SKIP_NOTHING").is_none(), "{tool} is not installed");
        eprintln!("skipped: {tool} is not installed");
    }
    found
}

/// A directory for one test, and the programs in it.
pub(crate) struct Scene(tempfile::TempDir);

impl Scene {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().expect("make a directory"))
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Compiles one of the targets.
    pub(crate) fn compile(&self, source: &str, flags: &[&str]) -> PathBuf {
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/targets");
        let source = sources.join(source);
        let program = self.path(source.file_stem().and_then(OsStr::to_str).expect("a name"));
        let compiler = match source.extension().and_then(OsStr::to_str) {
            Some("c") => "cc",
            Some("cpp") => "c++",
            _ => "rustc",
        };
        let mut command = Command::new(compiler);
        if compiler == "rustc" {
            command.args(["-O", "-g", "--edition", "2024"]);
        } else {
            command.args([
                "-O2",
                "-g",
                "-fomit-frame-pointer",
                "-fno-optimize-sibling-calls",
                "-pthread",
            ]);
        }
        let compiled = command.args(flags).arg(&source).arg("-o").arg(&program).output();
        let compiled = compiled.unwrap_or_else(|error| panic!("run {compiler}: {error}"));
        assert!(
            compiled.status.success(),
            "{compiler} {}: {}",
            source.display(),
            stderr(&compiled)
        );
        program
    }

    /// Records a program, and returns the spool.
    pub(crate) fn record(&self, options: &[&str], program: &Path, arguments: &[&str]) -> PathBuf {
        let spool = self.path("recorded.spool");
        let mut command = stackpulse();
        command
            .arg("record")
            .args(options)
            .arg("-o")
            .arg(&spool)
            .arg("--")
            .arg(program)
            .args(arguments);
        let output = command.output().expect("run stackpulse");
        assert!(output.status.success(), "{}", stderr(&output));
        spool
    }
}

/// A spool's collapsed stacks: frames from comm and root to leaf, and the number of samples.
pub(crate) fn stacks(spool: &Path) -> Vec<(Vec<String>, u64)> {
    let output = stackpulse()
        .args(["export", "-f", "collapsed"])
        .arg(spool)
        .output()
        .expect("run stackpulse");
    assert!(output.status.success(), "{}", stderr(&output));
    stdout(&output)
        .lines()
        .map(|line| {
            let (stack, count) = line.rsplit_once(' ').expect("a count");
            (stack.split(';').map(str::to_owned).collect(), count.parse().expect("a number"))
        })
        .collect()
}

/// The share, in percent, of samples whose stack satisfies `is_so`.
#[expect(clippy::cast_precision_loss, reason = "counts of samples are small")]
pub(crate) fn percent(stacks: &[(Vec<String>, u64)], is_so: impl Fn(&[String]) -> bool) -> f64 {
    let all: u64 = stacks.iter().map(|(_, count)| count).sum();
    let so: u64 = stacks.iter().filter(|(stack, _)| is_so(stack)).map(|(_, count)| count).sum();
    so as f64 * 100.0 / all.max(1) as f64
}

/// Whether the names stand one directly inside the other somewhere in the stack, outermost first.
pub(crate) fn has_chain(stack: &[String], chain: &[&str]) -> bool {
    stack
        .windows(chain.len())
        .any(|window| window.iter().zip(chain).all(|(frame, name)| frame == name))
}

/// What `info --json` says.
pub(crate) fn info(spool: &Path) -> serde_json::Value {
    let output = stackpulse().args(["info", "--json"]).arg(spool).output().expect("run stackpulse");
    assert!(output.status.success(), "{}", stderr(&output));
    serde_json::from_slice(&output.stdout).expect("JSON")
}
