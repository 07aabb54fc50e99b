//! What the tests share: programs that may be missing, tests that run a part of themselves in a process of its own, and
//! waiting for what other processes do.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// Names the part of a test that runs in a process of its own.
const PART: &str = "STACKPULSE_TEST_PART";

/// How long anything may take on a machine that does much else.
const PATIENCE: Duration = Duration::from_secs(60);

/// Keeps tests that measure, or that change the machine, apart from each other.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Says why a test cannot run here; with `STACKPULSE_SKIP_NOTHING` set, as in continuous integration, it must.
pub(crate) fn skip(why: &str) {
    assert!(std::env::var_os("STACKPULSE_SKIP_NOTHING").is_none(), "{why}");
    eprintln!("skipped: {why}");
}

/// Whether these tools are here.
pub(crate) fn has_tools(tools: &[&str]) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_here =
        |tool: &&&str| std::env::split_paths(&path).any(|directory| directory.join(tool).is_file());
    let missing = tools.iter().find(|tool| !is_here(tool));
    if let Some(tool) = missing {
        skip(&format!("{tool} is not installed"));
    }
    missing.is_none()
}

/// Whether this is root, who may do what the test does to see how it ends for others.
pub(crate) fn is_root() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        skip("only root can change users, namespaces and CPUs");
    }
    is_root
}

/// Where control groups of version 2 are mounted.
pub(crate) fn control_groups() -> Option<PathBuf> {
    let mounts = std::fs::read_to_string("/proc/mounts").unwrap();
    mounts.lines().find_map(|line| {
        let mut fields = line.split(' ').skip(1);
        let place = fields.next()?;
        (fields.next()? == "cgroup2").then(|| place.into())
    })
}

/// Runs the part `namespace` of a test in a pid namespace of its own, if that can be made.
pub(crate) fn run_in_pid_namespace(test: &str) {
    if !is_root() || !has_tools(&["unshare"]) {
        return;
    }
    let words = ["unshare", "--pid", "--fork", "--mount-proc"];
    let output = part(&words, &this_program(), test, "namespace").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Whether this process is the named part of a test, which another process has started.
pub(crate) fn is_part(name: &str) -> bool {
    std::env::var(PART).is_ok_and(|part| part == name)
}

/// The command that runs a part of a test: `words` go before it, such as another program that starts it.
pub(crate) fn part(words: &[&str], program: &Path, test: &str, name: &str) -> Command {
    let mut all = words.iter().map(|word| (*word).into()).collect::<Vec<std::ffi::OsString>>();
    all.push(program.into());
    all.extend(["--exact", test, "--nocapture", "--test-threads=1"].map(Into::into));
    let mut command = Command::new(&all[0]);
    command.args(&all[1..]).env(PART, name);
    command
}

/// This test program.
pub(crate) fn this_program() -> PathBuf {
    std::env::current_exe().expect("a test knows its program")
}

/// A process that talks in lines on its standard error, and listens on its standard input.
pub(crate) struct Talker {
    pub(crate) child: Child,
    input: ChildStdin,
    output: BufReader<std::process::ChildStderr>,
}

impl Talker {
    pub(crate) fn start(command: &mut Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let input = child.stdin.take().expect("piped");
        let output = BufReader::new(child.stderr.take().expect("piped"));
        Self { child, input, output }
    }

    /// Waits for a line that begins with `beginning`, and returns the rest of it.
    pub(crate) fn hear(&mut self, beginning: &str) -> String {
        let mut seen = String::new();
        loop {
            let mut line = String::new();
            let len = self.output.read_line(&mut line).expect("text");
            assert!(len > 0, "it ended before it said {beginning:?}: {seen}");
            if let Some(rest) = line.strip_prefix(beginning) {
                return rest.trim().to_owned();
            }
            seen.push_str(&line);
        }
    }

    pub(crate) fn say(&mut self, word: &str) {
        writeln!(self.input, "{word}").expect("it listens");
    }

    /// Lets it end, and returns what it still says and whether it succeeded.
    pub(crate) fn end(mut self) -> (String, bool) {
        drop(self.input);
        let mut rest = String::new();
        std::io::Read::read_to_string(&mut self.output, &mut rest).expect("text");
        (rest, self.child.wait().expect("a child of ours").success())
    }
}

/// Looks again and again until `is_so`, with a limit that only a failure reaches.
pub(crate) fn await_that(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < PATIENCE, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// The states of a process's threads as letters of proc_pid_stat(5); empty if it has gone.
pub(crate) fn states(pid: u32) -> String {
    let Ok(tasks) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return String::new() };
    let stats =
        tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("stat")).ok());
    stats.filter_map(|stat| stat.rsplit_once(") ")?.1.chars().next()).collect()
}

/// Whether nobody holds any of a process's threads, by ptrace or by a signal.
pub(crate) fn runs(pid: u32) -> bool {
    let states = states(pid);
    !states.is_empty() && !states.contains(['t', 'T'])
}

/// CPU time of each thread of a process, in nanoseconds.
pub(crate) fn cpu_times_ns(pid: u32) -> std::collections::BTreeMap<u32, u64> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).expect("it lives");
    let time = |task: std::io::Result<std::fs::DirEntry>| {
        let task = task.ok()?;
        let text = std::fs::read_to_string(task.path().join("schedstat")).ok()?;
        let tid = task.file_name().to_str()?.parse().ok()?;
        Some((tid, text.split_whitespace().next()?.parse().ok()?))
    };
    tasks.filter_map(time).collect()
}
