//! `top`: the hottest functions while they run, in the terminal.

mod draw;
mod source;
mod view;

use crate::args::TopArgs;
use crate::failure::Failure;
use crate::signals::EndSignals;
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyEventKind};
use source::Source;
use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};
use view::{Step, View};

/// How long a key may wait for being looked at.
const LOOK: Duration = Duration::from_millis(50);
/// How often the numbers change, at most.
const REFRESH: Duration = Duration::from_millis(500);
/// Counting and naming take at most one part in so many of the time.
const SHARE_OF_TIME: u32 = 5;

pub(crate) fn run(args: &TopArgs) -> Result<(), Failure> {
    if !io::stdout().is_terminal() {
        return Err(Failure::new(
            "top needs a terminal; for a file or a pipe use `stackpulse report`",
        ));
    }
    let mut source = Source::open(args)?;
    // A terminal that is left raw is of no use to the shell.
    let signals = EndSignals::take_over()?;
    let mut terminal = ratatui::try_init()
        .map_err(|error| Failure::new(format!("take over the terminal: {error}")))?;
    let shown = show(&mut terminal, &mut source, signals, args);
    ratatui::restore();
    shown
}

fn show(
    terminal: &mut DefaultTerminal,
    source: &mut Source,
    mut signals: EndSignals,
    args: &TopArgs,
) -> Result<(), Failure> {
    let drawn = |error: io::Error| Failure::new(format!("draw on the terminal: {error}"));
    let mut view = View::new(source.name(), args.select.percent_limit.unwrap_or(0.0));
    view.is_coloured = anstream::AutoStream::choice(&io::stdout()) != anstream::ColorChoice::Never;
    let mut refresh_at = Instant::now();
    while signals.pending().is_none() {
        source.advance()?;
        if Instant::now() >= refresh_at && !view.is_frozen() {
            let before = Instant::now();
            view.refresh(source.profile(&args.select), source.facts());
            refresh_at = Instant::now() + REFRESH.max(before.elapsed() * SHARE_OF_TIME);
        }
        terminal.draw(|frame| draw::draw(frame, &mut view)).map_err(drawn)?;
        if event::poll(LOOK).map_err(drawn)?
            && let Event::Key(key) = event::read().map_err(drawn)?
            && key.kind != KeyEventKind::Release
            && view.key(key) == Step::Leave
        {
            break;
        }
    }
    Ok(())
}
