//! How far long work is: a line on the terminal, where work takes more than a moment.

use indicatif::{ProgressBar, ProgressStyle};
use stackpulse_symbolize::Progress;
use std::io::{self, IsTerminal};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

/// Work that is done earlier is not talked about.
const SILENT: Duration = Duration::from_millis(500);

/// How often the line is drawn while nothing else happens.
const TICK: Duration = Duration::from_millis(100);

/// Who is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Audience {
    /// Standard error, if it is a terminal.
    Terminal,
    Nobody,
}

/// Does the work, which tells how far it is, and shows that to the audience. What the work returns is returned.
pub(crate) fn shown<T: Send>(
    what: &'static str,
    audience: Audience,
    work: impl FnOnce(&mut dyn FnMut(Progress)) -> T + Send,
) -> T {
    if audience == Audience::Nobody || !io::stderr().is_terminal() {
        return work(&mut |_| ());
    }
    let (sender, receiver) = mpsc::channel();
    std::thread::scope(|scope| {
        let worker = scope.spawn(move || {
            work(&mut |progress| {
                // The receiver lives until the sender is gone.
                let _ = sender.send(progress);
            })
        });
        draw(what, &receiver);
        worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Draws until the work is done; nothing is left of the line then.
fn draw(what: &'static str, receiver: &Receiver<Progress>) {
    let begin = Instant::now();
    let mut line: Option<ProgressBar> = None;
    let mut last = Progress { done: 0, of: 0 };
    loop {
        match receiver.recv_timeout(TICK) {
            Ok(progress) => last = progress,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        if begin.elapsed() >= SILENT {
            let line = line.get_or_insert_with(|| new_line(what));
            line.set_length(last.of as u64);
            line.set_position(last.done as u64);
            line.tick();
        }
    }
    if let Some(line) = line {
        line.finish_and_clear();
    }
}

fn new_line(what: &'static str) -> ProgressBar {
    let style = ProgressStyle::with_template("{spinner} {msg} {wide_bar} {pos}/{len}");
    let style = style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("=> ");
    ProgressBar::new(0).with_style(style).with_message(what)
}
