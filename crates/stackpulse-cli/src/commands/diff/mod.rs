//! `diff`: which functions take more or less of the time, and how sure that is.

mod flame;
mod print;
mod sides;

use crate::analysis::compare::{Change, compare};
use crate::args::{Condition, DiffArgs, DiffFormat, Measure};
use crate::commands::report::closed_pipe_is_fine;
use crate::failure::Failure;
use crate::render::Screen;
use sides::{Function, Side, Sides};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

/// The exit status where a condition of `--fail-if` holds.
const FAILED: u8 = 1;

/// One function on both sides.
struct Compared {
    function: Function,
    own: Change,
    total: Change,
}

/// All there is to say.
struct Comparison {
    sides: Sides,
    /// What changed most comes first.
    functions: Vec<Compared>,
    /// The conditions that hold, each with the function it holds for.
    failed: Vec<(String, String)>,
    percent_limit: f64,
}

pub(crate) fn run(args: &DiffArgs) -> Result<u8, Failure> {
    let (before, after) = files(args);
    let mut sides = Sides::load([&before, &after], &args.select)?;
    let functions = sides.functions();
    let changes = |side: fn(&Side) -> &[crate::analysis::compare::Unit]| {
        compare(side(&sides.before), side(&sides.after), functions.len())
    };
    let own = changes(|side| &side.own);
    let total = changes(|side| &side.total);
    let mut compared: Vec<Compared> = functions
        .into_iter()
        .zip(own.into_iter().zip(total))
        .map(|(function, (own, total))| Compared { function, own, total })
        .collect();
    compared.sort_by(|a, b| {
        let size = |of: &Compared| (of.own.change().abs(), of.total.change().abs());
        let ((a_own, a_total), (b_own, b_total)) = (size(a), size(b));
        b_own
            .total_cmp(&a_own)
            .then(b_total.total_cmp(&a_total))
            .then_with(|| a.function.cmp(&b.function))
    });
    let failed = failed(&args.fail_if, &compared)?;
    let is_json = args.json || args.format == DiffFormat::Json;
    // A table for people leaves out what is small on both sides; programs get all.
    let percent_limit = args.select.percent_limit.unwrap_or(if is_json { 0.0 } else { 0.5 });
    compared.retain(|function| {
        [function.own, function.total]
            .iter()
            .any(|change| change.before.max(change.after) >= percent_limit)
    });
    let comparison = Comparison { sides, functions: compared, failed, percent_limit };
    closed_pipe_is_fine(print(args, &comparison, is_json))?;
    Ok(if comparison.failed.is_empty() { 0 } else { FAILED })
}

fn files(args: &DiffArgs) -> (Vec<PathBuf>, Vec<PathBuf>) {
    match &args.files[..] {
        [before, after] => (vec![before.clone()], vec![after.clone()]),
        _ => (args.before.clone(), args.after.clone()),
    }
}

fn print(args: &DiffArgs, comparison: &Comparison, is_json: bool) -> io::Result<()> {
    let mut out: Box<dyn Write> = match &args.output {
        Some(path) => {
            let named = |error: io::Error| {
                io::Error::new(error.kind(), format!("create {}: {error}", path.display()))
            };
            Box::new(BufWriter::new(File::create(path).map_err(named)?))
        }
        None if args.format == DiffFormat::Text && !is_json => {
            let mut screen = Screen::open(false);
            return print::text(comparison, &mut screen);
        }
        None => Box::new(BufWriter::new(io::stdout())),
    };
    match args.format {
        _ if is_json => print::json(comparison, &mut out)?,
        DiffFormat::Markdown => print::markdown(comparison, &mut out)?,
        DiffFormat::Svg => flame::draw(&comparison.sides, &mut out)?,
        _ => print::plain(comparison, &mut out)?,
    }
    out.flush()
}

/// The conditions that hold, for whom: the change is beyond the limit, and its interval leaves no change out.
fn failed(
    conditions: &[Condition],
    functions: &[Compared],
) -> Result<Vec<(String, String)>, Failure> {
    let mut failed = Vec::new();
    for condition in conditions {
        let mut is_known = condition.function.is_none();
        for compared in functions {
            let name = compared.function.label();
            if condition.function.as_ref().is_some_and(|wanted| *wanted != name) {
                continue;
            }
            is_known = true;
            let change = match condition.measure {
                Measure::Own => compared.own,
                Measure::Total => compared.total,
            };
            let is_beyond = if condition.is_above {
                change.change() > condition.limit_percent
            } else {
                change.change() < condition.limit_percent
            };
            if is_beyond && change.is_sure() {
                failed.push((condition.text.clone(), name));
            }
        }
        if !is_known {
            return Err(Failure::with_status(
                2,
                format!(
                    "no function is named {} on either side; `stackpulse diff --json` lists their names",
                    condition.function.as_deref().unwrap_or_default()
                ),
            ));
        }
    }
    Ok(failed)
}
