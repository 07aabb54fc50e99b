//! Tables and trees of sample counts.

use super::{elide, percent, printable};
use std::io::{self, Write};

/// How wide, and of how many samples.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Table {
    /// Characters a line may have.
    pub(crate) width: usize,
    /// What 100 % is.
    pub(crate) samples: u64,
}

/// One line of a table.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    /// Samples that ended there.
    pub(crate) own: u64,
    /// Samples that went through it.
    pub(crate) total: u64,
    /// What it is.
    pub(crate) label: String,
    /// Where it belongs; may be empty.
    pub(crate) module: String,
}

/// Prints self and total shares, names, and modules at the right of them.
pub(crate) fn print_rows(
    table: Table,
    heading: &str,
    rows: &[Row],
    out: &mut impl Write,
) -> io::Result<()> {
    const NUMBERS: usize = 18;
    let module_width =
        rows.iter().map(|row| row.module.chars().count()).max().unwrap_or(0).clamp(6, 24);
    let name_width = table.width.saturating_sub(NUMBERS + module_width + 2).max(12);
    let module_heading = if rows.iter().any(|row| !row.module.is_empty()) { "module" } else { "" };
    writeln!(
        out,
        "{}",
        format!("    self    total  {heading:name_width$}  {module_heading}").trim_end()
    )?;
    for row in rows {
        let line = format!(
            "{:7.2}% {:7.2}%  {:name_width$}  {}",
            percent(row.own, table.samples),
            percent(row.total, table.samples),
            elide(&printable(&row.label), name_width),
            elide(&printable(&row.module), module_width),
        );
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

/// Prints one line of a tree: share, indentation and name.
///
/// Past a depth that leaves no room for names the indentation stays, and the depth is told as a number.
pub(crate) fn print_tree_row(
    table: Table,
    depth: usize,
    row: &Row,
    out: &mut impl Write,
) -> io::Result<()> {
    const NUMBERS: usize = 18;
    let deepest = table.width.saturating_sub(NUMBERS + 32) / 2;
    let indent = if depth <= deepest {
        " ".repeat(depth * 2)
    } else {
        format!("{:width$}[{depth}] ", "", width = deepest * 2)
    };
    let name_width = table.width.saturating_sub(NUMBERS + indent.len()).max(12);
    let label = if row.module.is_empty() {
        printable(&row.label)
    } else {
        format!("{}  [{}]", printable(&row.label), printable(&row.module))
    };
    let line = format!(
        "{:7.2}% {:>8}  {indent}{}",
        percent(row.total, table.samples),
        if row.own == 0 {
            String::new()
        } else {
            format!("{:.2}%", percent(row.own, table.samples))
        },
        elide(&label, name_width),
    );
    writeln!(out, "{}", line.trim_end())
}
