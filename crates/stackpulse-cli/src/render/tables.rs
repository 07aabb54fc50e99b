//! Tables and trees of sample counts.

use super::{elide, percent, printable};
use anstyle::{AnsiColor, Style};
use std::io::{self, Write};

/// How wide, of how many samples, and whether in colour.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Table {
    /// Characters a line may have.
    pub(crate) width: usize,
    /// What 100 % is.
    pub(crate) samples: u64,
    /// Whether shares and headings are coloured.
    pub(crate) is_coloured: bool,
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

/// Characters that a share takes, with the space before the next column.
const SHARE: usize = 9;
/// Below this width there is no column of modules.
const MODULES_FROM: usize = 60;
/// Below this width there is one share only: self in a table, total in a tree.
const TWO_SHARES_FROM: usize = 40;
/// A share from which it is red, and one from which it is green.
const HOT: f64 = 5.0;
const WARM: f64 = 0.5;

impl Table {
    /// Prints self and total shares, names, and modules at the right of them.
    pub(crate) fn print_rows(
        self,
        heading: &str,
        rows: &[Row],
        out: &mut impl Write,
    ) -> io::Result<()> {
        let longest = rows.iter().map(|row| row.module.chars().count()).max().unwrap_or(0);
        let module_width =
            if self.width < MODULES_FROM || longest == 0 { 0 } else { longest.clamp(6, 24) };
        let gap = if module_width == 0 { 0 } else { 2 };
        let name_width = self.width.saturating_sub(self.shares_width() + module_width + gap).max(8);
        let module_heading = if module_width > 0 { "module" } else { "" };
        let name_heading = pad(&elide(heading, name_width), name_width + gap);
        let line =
            format!("{}{name_heading}{module_heading}", self.share_headings("self", "total"));
        self.print_heading(line.trim_end(), out)?;
        for row in rows {
            let name = pad(&elide(&printable(&row.label), name_width), name_width + gap);
            let module = elide(&printable(&row.module), module_width);
            let text = format!("{name}{module}");
            writeln!(out, "{}{}", self.shares(row.own, Some(row.total)), text.trim_end())?;
        }
        Ok(())
    }

    /// Prints the line above a tree.
    pub(crate) fn print_tree_heading(self, heading: &str, out: &mut impl Write) -> io::Result<()> {
        let shares = self.share_headings("total", "self");
        let name = elide(heading, self.width.saturating_sub(shares.len()).max(8));
        self.print_heading(&format!("{shares}{name}"), out)
    }

    /// Prints one line of a tree: share, indentation and name.
    ///
    /// Past a depth that leaves no room for names the indentation stays, and the depth is told as a number.
    pub(crate) fn print_tree_row(
        self,
        depth: usize,
        row: &Row,
        out: &mut impl Write,
    ) -> io::Result<()> {
        let room = self.width.saturating_sub(self.shares_width());
        let step = if self.width < TWO_SHARES_FROM { 1 } else { 2 };
        // A name wants 32 characters, or what is left where that is the half of it.
        let deepest = room.saturating_sub(32.min(room.div_ceil(2))) / step;
        let number = format!("[{depth}] ");
        let indent = if depth <= deepest {
            " ".repeat(depth * step)
        } else {
            format!("{:width$}{number}", "", width = (deepest * step).saturating_sub(number.len()))
        };
        let label = if row.module.is_empty() {
            printable(&row.label)
        } else {
            format!("{}  [{}]", printable(&row.label), printable(&row.module))
        };
        let own = (row.own > 0).then_some(row.own);
        let name = elide(&label, room.saturating_sub(indent.len()).max(4));
        writeln!(out, "{}{indent}{name}", self.shares(row.total, own))
    }

    fn shares_width(self) -> usize {
        if self.width < TWO_SHARES_FROM { SHARE } else { 2 * SHARE }
    }

    /// The heads of the columns of shares; the second only where there is room.
    fn share_headings(self, first: &str, second: &str) -> String {
        if self.width < TWO_SHARES_FROM {
            format!("{first:>7}  ")
        } else {
            format!("{first:>7}  {second:>7}  ")
        }
    }

    fn shares(self, first: u64, second: Option<u64>) -> String {
        let mut text = self.share(Some(first));
        if self.width >= TWO_SHARES_FROM {
            text.push_str(&self.share(second));
        }
        text
    }

    fn share(self, samples: Option<u64>) -> String {
        let Some(samples) = samples else { return " ".repeat(SHARE) };
        let share = percent(samples, self.samples);
        let style = match share {
            _ if !self.is_coloured => Style::new(),
            HOT.. => AnsiColor::Red.on_default().bold(),
            WARM.. => AnsiColor::Green.on_default(),
            _ => Style::new().dimmed(),
        };
        format!("{style}{share:6.2}%{style:#}  ")
    }

    fn print_heading(self, text: &str, out: &mut impl Write) -> io::Result<()> {
        let style = if self.is_coloured { Style::new().bold() } else { Style::new() };
        writeln!(out, "{style}{text}{style:#}")
    }
}

/// Fills a name up to `width` columns.
fn pad(name: &str, width: usize) -> String {
    let used = super::text::columns(name);
    format!("{name}{}", " ".repeat(width.saturating_sub(used)))
}
