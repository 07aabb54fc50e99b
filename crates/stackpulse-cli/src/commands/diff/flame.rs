//! A flame graph of B, coloured by what changed since A.

use super::sides::{Side, Sides};
use inferno::{differential, flamegraph};
use stackpulse_export::write_collapsed;
use stackpulse_symbolize::without_suffixes;
use std::io::{self, Write};

pub(super) fn draw(sides: &Sides, out: &mut impl Write) -> io::Result<()> {
    let (before, after) = (collapsed(&sides.before)?, collapsed(&sides.after)?);
    let mut both = Vec::new();
    let scaled = differential::Options { normalize: true, ..differential::Options::default() };
    differential::from_readers(scaled, &before[..], &after[..], &mut both)?;
    let mut options = flamegraph::Options::default();
    "What changed from A to B".clone_into(&mut options.title);
    options.subtitle =
        Some("red: a larger share in B; blue: a smaller one; widths are those of B".to_owned());
    flamegraph::from_reader(&mut options, &both[..], out)
}

/// The collapsed stacks of a side, names folded.
fn collapsed(side: &Side) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    for profile in &side.profiles {
        let mut lines = Vec::new();
        write_collapsed(profile, &mut lines)?;
        for line in String::from_utf8_lossy(&lines).lines() {
            let (stack, count) = line.rsplit_once(' ').unwrap_or((line, "0"));
            let folded: Vec<&str> = stack.split(';').map(without_suffixes).collect();
            writeln!(text, "{} {count}", folded.join(";"))?;
        }
    }
    Ok(text)
}
