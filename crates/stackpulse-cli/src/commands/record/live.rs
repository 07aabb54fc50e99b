//! One line on the terminal that tells how the recording goes.

use crate::args::RecordArgs;
use crate::render::{bytes, elide, plural};
use stackpulse_record::Summary;
use std::io::{self, IsTerminal, Write};
use std::time::Duration;

/// How often the line changes.
pub(super) const EVERY: Duration = Duration::from_millis(250);

/// The line; it is wiped when the recording ends.
pub(super) struct LiveLine {
    next: Duration,
    /// When it was drawn last, and how many samples there were.
    before: (Duration, u64),
    /// Samples a second, over the time since the line before.
    rate: u64,
}

impl LiveLine {
    /// A line, if there is a terminal for it. A launched program keeps its terminal for itself, unless its output goes elsewhere.
    pub(super) fn wanted(args: &RecordArgs) -> Option<Self> {
        let is_ours = args.command.is_empty() || !io::stdout().is_terminal();
        (!args.quiet && io::stderr().is_terminal() && is_ours).then(|| Self {
            next: Duration::ZERO,
            before: (Duration::ZERO, 0),
            rate: 0,
        })
    }

    /// Draws the line, if it is time.
    pub(super) fn show(&mut self, elapsed: Duration, summary: &Summary) {
        if elapsed < self.next {
            return;
        }
        self.next = elapsed + EVERY;
        let (then, samples_then) = self.before;
        let milliseconds = elapsed.saturating_sub(then).as_millis();
        // The recorder publishes in steps, so a rate needs more than one of them.
        if milliseconds >= 1000 {
            let samples = u128::from(summary.samples_written.saturating_sub(samples_then));
            self.rate = u64::try_from(samples * 1000 / milliseconds).unwrap_or(u64::MAX);
            self.before = (elapsed, summary.samples_written);
        }
        let line = format!(
            "{}.{} s  {}  {}/s  {} lost  {}",
            elapsed.as_secs(),
            elapsed.subsec_millis() / 100,
            plural(summary.samples_written, "sample"),
            self.rate,
            summary.events_lost,
            bytes(summary.bytes_written),
        );
        let width = terminal_size::terminal_size_of(io::stderr()).map_or(80, |(width, _)| width.0);
        let line = elide(&line, usize::from(width).saturating_sub(1));
        // A terminal that has gone away does not end the recording.
        let _ = write!(io::stderr().lock(), "\r\x1b[K{line}");
    }
}

impl Drop for LiveLine {
    fn drop(&mut self) {
        let _ = write!(io::stderr().lock(), "\r\x1b[K");
    }
}
