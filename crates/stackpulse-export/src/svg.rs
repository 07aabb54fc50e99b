//! Flame graphs as SVG, drawn by inferno.

use crate::collapsed::Counted;
use crate::profile::Profile;
use inferno::flamegraph::{self, Direction, Options};
use std::io::{self, Write};

/// How a flame graph is drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlameGraph {
    /// Callers above, what they call below.
    pub is_icicle: bool,
    /// Grown from the hottest functions to who calls them.
    pub is_reversed: bool,
}

/// Writes a flame graph: wide is what has many samples.
///
/// What is below a ten thousandth of all samples could not be seen, and is shown as part of its caller.
///
/// # Errors
///
/// Those of `out`.
pub fn write_svg(profile: &Profile, how: FlameGraph, mut out: impl Write) -> io::Result<()> {
    let counted = Counted::new(profile);
    let mut lines = Vec::new();
    counted.lines((counted.samples() / 10_000).max(1), |line| {
        lines.push(line.to_owned());
        Ok(())
    })?;
    if lines.is_empty() {
        lines.push("[no samples] 1".to_owned());
    }
    let mut options = Options::default();
    options.title = match how.is_reversed {
        false => "Flame graph".to_owned(),
        true => "Flame graph from the hottest functions to their callers".to_owned(),
    };
    options.count_name = "samples".to_owned();
    options.reverse_stack_order = how.is_reversed;
    options.deterministic = true;
    if how.is_icicle {
        options.direction = Direction::Inverted;
    }
    flamegraph::from_lines(&mut options, lines.iter().map(String::as_str), &mut out)?;
    out.flush()
}
