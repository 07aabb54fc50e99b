//! The C programs that the tests attach to.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::OnceLock;

/// Where the target is, for parts of tests that run as another user.
pub(crate) const PROGRAM: &str = "STACKPULSE_TEST_TARGET";

/// The program `target`, compiled if it is not there or older than its source.
pub(crate) fn program() -> PathBuf {
    if let Some(program) = std::env::var_os(PROGRAM) {
        return program.into();
    }
    static COMPILED: OnceLock<PathBuf> = OnceLock::new();
    let compile = || {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/targets/target.c");
        let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("perf-target");
        let changed = |path: &Path| path.metadata().and_then(|metadata| metadata.modified());
        if changed(&program).is_ok_and(|at| changed(&source).is_ok_and(|source| source < at)) {
            return program;
        }
        // Other processes may be at it: whoever is last wins, with a whole program.
        let unfinished = program.with_extension(std::process::id().to_string());
        let mut compiler = Command::new("cc");
        compiler.args(["-O1", "-pthread", "-o"]).arg(&unfinished).arg(source);
        assert!(compiler.status().expect("a C compiler").success(), "the target compiles");
        std::fs::rename(&unfinished, &program).expect("the same directory");
        program
    };
    COMPILED.get_or_init(compile).clone()
}

/// A directory that every user may enter.
pub(crate) fn directory() -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("make a directory");
    let everyone = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(directory.path(), everyone).expect("a directory of ours");
    directory
}

/// A running target; killed when dropped.
pub(crate) struct Target {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Target {
    /// Starts it, and waits until it is ready.
    pub(crate) fn start(words: &[&str]) -> Self {
        Self::start_as(Command::new(program()).args(words))
    }

    pub(crate) fn start_as(command: &mut Command) -> Self {
        let mut target = Self::start_only(command);
        target.hear("ready");
        target
    }

    /// Starts it; it has not said that it is ready.
    pub(crate) fn start_only(command: &mut Command) -> Self {
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("start a target");
        let input = child.stdin.take().expect("piped");
        let output = BufReader::new(child.stdout.take().expect("piped"));
        Self { child, input, output }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("text");
        line.trim().to_owned()
    }

    fn hear(&mut self, word: &str) {
        let line = self.line();
        assert_eq!(line, word);
    }

    /// Makes it do what the letter stands for, and waits until it is done.
    pub(crate) fn obey(&mut self, letter: &str) {
        writeln!(self.input, "{letter}").expect("it listens");
        // After an exec it is ready again.
        self.hear(if matches!(letter, "x" | "u") { "ready" } else { letter });
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).expect("a child of ours");
    }

    /// Ends it as it ends by itself, and reaps it.
    pub(crate) fn end(&mut self) {
        self.child.kill().expect("a child of ours");
        self.child.wait().expect("a child of ours");
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
