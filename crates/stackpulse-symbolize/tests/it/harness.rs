//! Programs compiled for the tests.

use object::{Object, ObjectSection, ObjectSymbol};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Whether the tools are here that a test needs. Says so if not; with `STACKPULSE_SKIP_NOTHING` set they must be.
pub(crate) fn has_tools(tools: &[&str]) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_here = |tool: &str| std::env::split_paths(&path).any(|dir| dir.join(tool).is_file());
    let Some(missing) = tools.iter().find(|tool| !is_here(tool)) else { return true };
    assert!(std::env::var_os("STACKPULSE_SKIP_NOTHING").is_none(), "{missing} is not installed");
    eprintln!("skipped: {missing} is not installed");
    false
}

/// A directory for one test.
pub(crate) struct Scene(tempfile::TempDir);

impl Scene {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Runs a line of shell in the directory; `$SRC` is where the sources are.
    pub(crate) fn shell(&self, line: &str) {
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/sources");
        let output = Command::new("sh")
            .args(["-ec", line])
            .current_dir(self.0.path())
            .env("SRC", sources)
            .output()
            .unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{line}: {stderr}");
    }
}

/// Addresses all over a program's `.text`, at most `most`.
pub(crate) fn text_addresses(program: &Path, most: u64) -> Vec<u64> {
    let bytes = std::fs::read(program).unwrap();
    let elf = object::File::parse(&*bytes).unwrap();
    let text = elf.section_by_name(".text").unwrap();
    let step = (text.size() / most).max(1);
    (0..text.size() / step).map(|at| text.address() + at * step).collect()
}

/// Address and length of a section.
pub(crate) fn section_start(program: &Path, name: &str) -> Option<(u64, u64)> {
    let bytes = std::fs::read(program).unwrap();
    let elf = object::File::parse(&*bytes).unwrap();
    let section = elf.section_by_name(name)?;
    Some((section.address(), section.size()))
}

/// Names and addresses of a program's symbols.
pub(crate) fn symbols(program: &Path) -> Vec<(String, u64)> {
    let bytes = std::fs::read(program).unwrap();
    let elf = object::File::parse(&*bytes).unwrap();
    let named =
        |symbol: object::Symbol<'_, '_>| Some((symbol.name().ok()?.to_owned(), symbol.address()));
    elf.symbols().filter_map(named).collect()
}

/// One call as llvm-symbolizer tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) function: Option<String>,
    pub(crate) file: Option<String>,
    pub(crate) line: u32,
    pub(crate) column: u32,
}

/// What llvm-symbolizer says of the addresses.
pub(crate) fn llvm_symbolizer(program: &Path, extra: &[&str], addresses: &[u64]) -> Vec<Vec<Told>> {
    let mut child = Command::new("llvm-symbolizer")
        .args(["--inlines", "--no-demangle", "--obj"])
        .arg(program)
        .args(extra)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let lines: String = addresses.iter().map(|address| format!("{address:#x}\n")).collect();
    let writer = std::thread::spawn(move || input.write_all(lines.as_bytes()).unwrap());
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.trim_end().split("\n\n").map(calls).collect()
}

fn calls(answer: &str) -> Vec<Told> {
    let lines: Vec<&str> = answer.trim().lines().collect();
    lines
        .chunks_exact(2)
        .map(|pair| {
            let mut place = pair[1].rsplitn(3, ':');
            let column = place.next().and_then(|text| text.parse().ok()).unwrap_or_default();
            let line = place.next().and_then(|text| text.parse().ok()).unwrap_or_default();
            let known = |text: &str| (text != "??").then(|| text.to_owned());
            let file = place.next().and_then(known);
            Told { function: known(pair[0]), file, line, column }
        })
        .collect()
}
