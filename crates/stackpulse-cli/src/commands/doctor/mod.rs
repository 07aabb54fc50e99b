//! `doctor`: can this user record here, and this target? Each limit with the smallest change that lifts it.

mod host;
mod kernel;
mod module;
mod proc_file;
mod target;

use super::report::closed_pipe_is_fine;
use crate::args::DoctorArgs;
use crate::failure::Failure;
use crate::render::{Screen, printable, wrap};
use module::ModuleFacts;
use serde_json::json;
use std::io::{self, Write};

/// The exit status where recording is not possible.
const NOT_POSSIBLE: u8 = 1;

/// How a thing stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// As it should be.
    Good,
    /// Recording works, with less than there could be.
    Limited,
    /// Recording does not work.
    Blocked,
}

/// One thing that was looked at.
struct Check {
    /// A stable name.
    id: &'static str,
    state: State,
    /// What was found.
    found: String,
    /// The smallest change that helps.
    remedy: Option<String>,
}

impl Check {
    fn good(id: &'static str, found: impl Into<String>) -> Self {
        Self { id, state: State::Good, found: found.into(), remedy: None }
    }

    fn limited(id: &'static str, found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { id, state: State::Limited, found: found.into(), remedy: Some(remedy.into()) }
    }

    fn blocked(id: &'static str, found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { id, state: State::Blocked, found: found.into(), remedy: Some(remedy.into()) }
    }
}

pub(crate) fn run(args: &DoctorArgs) -> Result<u8, Failure> {
    let mut checks = host::checks();
    checks.extend(kernel::checks());
    let mut modules = Vec::new();
    if let Some(pid) = args.pid {
        checks.extend(target::checks(pid));
        modules = module::of_process(pid);
        checks.extend(module::checks(pid, &modules));
    }
    let is_possible = checks.iter().all(|check| check.state != State::Blocked);
    closed_pipe_is_fine(if args.json {
        print_json(&checks, &modules, args.pid, is_possible)
    } else {
        print_text(&checks, &modules, args.pid, is_possible)
    })?;
    Ok(if is_possible { 0 } else { NOT_POSSIBLE })
}

fn word(state: State) -> &'static str {
    match state {
        State::Good => "good",
        State::Limited => "limited",
        State::Blocked => "blocked",
    }
}

fn print_json(
    checks: &[Check],
    modules: &[ModuleFacts],
    pid: Option<u32>,
    is_possible: bool,
) -> io::Result<()> {
    let checks: Vec<_> = checks
        .iter()
        .map(|check| {
            json!({
                "id": check.id,
                "state": word(check.state),
                "found": check.found,
                "remedy": check.remedy,
            })
        })
        .collect();
    let modules: Vec<_> = modules
        .iter()
        .map(|module| {
            json!({
                "path": module.path,
                "build_id": module.build_id,
                "symbols": module.symbols.word(),
                "unwind_percent": module.unwind_percent,
            })
        })
        .collect();
    let mut all = json!({"can_record": is_possible, "pid": pid, "checks": checks});
    if pid.is_some() {
        all["modules"] = modules.into();
    }
    let mut out = io::stdout().lock();
    writeln!(out, "{all:#}")
}

fn print_text(
    checks: &[Check],
    modules: &[ModuleFacts],
    pid: Option<u32>,
    is_possible: bool,
) -> io::Result<()> {
    let mut out = Screen::open(false);
    let width = out.width.saturating_sub(MARGIN).max(20);
    let widest = checks.iter().map(|check| check.id.len()).max().unwrap_or_default();
    for check in checks {
        let mark = match check.state {
            State::Good => "ok  ",
            State::Limited => "some",
            State::Blocked => "NO  ",
        };
        let mut lines = wrap(&printable(&check.found), width.saturating_sub(widest));
        if let Some(remedy) = &check.remedy {
            lines.extend(wrap(&printable(&format!("-> {remedy}")), width.saturating_sub(widest)));
        }
        for (at, line) in lines.iter().enumerate() {
            let (mark, id) = if at == 0 { (mark, check.id) } else { ("    ", "") };
            writeln!(out, "{mark} {id:widest$}  {line}")?;
        }
    }
    if !modules.is_empty() {
        writeln!(out, "\nunwind  symbols   module")?;
        for module in modules {
            let unwind = module
                .unwind_percent
                .map_or_else(|| "     ?".to_owned(), |percent| format!("{percent:5}%"));
            writeln!(out, "{unwind}  {:8}  {}", module.symbols.word(), printable(&module.path))?;
        }
    }
    let what = pid.map_or_else(|| "your programs".to_owned(), |pid| format!("process {pid}"));
    let answer = if is_possible { "can be recorded here" } else { "cannot be recorded here" };
    writeln!(out, "\n{what} {answer}")?;
    out.flush()
}

/// Columns before the text, without the name.
const MARGIN: usize = 7;
