//! A comparison as text, Markdown and JSON.

use super::sides::Side;
use super::{Compared, Comparison};
use crate::analysis::compare::Change;
use crate::render::{Screen, elide, plural, printable, wrap};
use serde_json::{Value, json};
use std::io::{self, Write};

/// How wide text is in a file.
const PLAIN_WIDTH: usize = 100;

pub(super) fn text(comparison: &Comparison, screen: &mut Screen) -> io::Result<()> {
    let width = screen.width;
    lines(comparison, width, screen)?;
    screen.flush()
}

pub(super) fn plain(comparison: &Comparison, out: &mut impl Write) -> io::Result<()> {
    lines(comparison, PLAIN_WIDTH, out)
}

fn lines(comparison: &Comparison, width: usize, out: &mut impl Write) -> io::Result<()> {
    let sides = [("A", &comparison.sides.before), ("B", &comparison.sides.after)];
    for (letter, side) in sides {
        let told = format!(
            "{letter}: {} ({}, drawn by {})",
            files(side),
            plural(side.samples, "sample"),
            side.unit
        );
        for line in side.notes.iter().map(|note| format!("note: {note}")).chain([told]) {
            wrap(&printable(&line), width).iter().try_for_each(|line| writeln!(out, "{line}"))?;
        }
    }
    writeln!(out)?;
    const NUMBERS: usize = 46;
    // Where there is no room for intervals the change alone is told, with a star where it is sure.
    let has_intervals = width >= NUMBERS + 16;
    let name_width = if has_intervals { width - NUMBERS } else { width.saturating_sub(10).max(8) };
    writeln!(
        out,
        "{}",
        if has_intervals {
            "self A   self B   change  95% interval      total change  function"
        } else {
            " change  function"
        }
    )?;
    for compared in &comparison.functions {
        let Change { before, after, low, high } = compared.own;
        let sure = if compared.own.is_sure() { '*' } else { ' ' };
        let name = elide(&printable(&label(compared)), name_width);
        if has_intervals {
            let interval = format!("[{low:+.2}, {high:+.2}]");
            let total_sure = if compared.total.is_sure() { '*' } else { ' ' };
            writeln!(
                out,
                "{before:5.2}%  {after:5.2}%  {:+6.2}{sure}  {interval:16}  {:+6.2}{total_sure}  {name}",
                compared.own.change(),
                compared.total.change(),
            )?;
        } else {
            writeln!(out, "{:+6.2}{sure}  {name}", compared.own.change())?;
        }
    }
    writeln!(out)?;
    let note = "shares and changes are in percent of all samples; * marks a change whose interval leaves out zero";
    wrap(note, width).iter().try_for_each(|line| writeln!(out, "{line}"))?;
    for (condition, function) in &comparison.failed {
        writeln!(out, "failed: {condition} holds for {}", printable(function))?;
    }
    Ok(())
}

fn files(side: &Side) -> String {
    side.files.iter().map(|file| file.display().to_string()).collect::<Vec<_>>().join(", ")
}

fn label(compared: &Compared) -> String {
    let function = &compared.function;
    match &function.name {
        Some(name) if !function.module.is_empty() => format!("{name}  [{}]", function.module),
        _ => function.label(),
    }
}

pub(super) fn markdown(comparison: &Comparison, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "| function | self A | self B | change | 95% interval | total change |")?;
    writeln!(out, "|---|--:|--:|--:|---|--:|")?;
    for compared in &comparison.functions {
        let Change { before, after, low, high } = compared.own;
        let strong = if compared.own.is_sure() { "**" } else { "" };
        writeln!(
            out,
            "| {} | {before:.2}% | {after:.2}% | {strong}{:+.2}{strong} | {low:+.2} to {high:+.2} | {:+.2} |",
            code(&label(compared)),
            compared.own.change(),
            compared.total.change(),
        )?;
    }
    writeln!(
        out,
        "\nA: {} ({}). B: {} ({}). Percent of all samples; bold where the interval leaves out zero; shares below {}% are left out.",
        code(&files(&comparison.sides.before)),
        plural(comparison.sides.before.samples, "sample"),
        code(&files(&comparison.sides.after)),
        plural(comparison.sides.after.samples, "sample"),
        comparison.percent_limit,
    )?;
    for (condition, function) in &comparison.failed {
        writeln!(out, "\n**Failed**: {} holds for {}", code(condition), code(function))?;
    }
    Ok(())
}

/// Text that Markdown takes as it is: no backquote ends it, no bar ends its cell.
fn code(text: &str) -> String {
    let safe = printable(text).replace('`', "'").replace('|', "\\|");
    format!("`{safe}`")
}

pub(super) fn json(comparison: &Comparison, out: &mut impl Write) -> io::Result<()> {
    let change = |change: &Change| {
        json!({
            "a": change.before,
            "b": change.after,
            "change": change.change(),
            "low": change.low,
            "high": change.high,
            "sure": change.is_sure(),
        })
    };
    let functions: Vec<Value> = comparison
        .functions
        .iter()
        .map(|compared| {
            json!({
                "name": compared.function.label(),
                "module": compared.function.module,
                "self": change(&compared.own),
                "total": change(&compared.total),
            })
        })
        .collect();
    let side = |side: &Side| {
        let files: Vec<_> = side.files.iter().map(|file| file.display().to_string()).collect();
        json!({"files": files, "samples": side.samples, "unit": side.unit, "units": side.own.len(), "notes": side.notes})
    };
    let failed: Vec<Value> = comparison
        .failed
        .iter()
        .map(|(condition, function)| json!({"condition": condition, "function": function}))
        .collect();
    let all = json!({
        "a": side(&comparison.sides.before),
        "b": side(&comparison.sides.after),
        "functions": functions,
        "failed": failed,
    });
    writeln!(out, "{all:#}")
}
