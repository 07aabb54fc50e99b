//! `record`: from what was typed to a finished spool.

mod control_group;
mod end;
mod live;
mod start;

use crate::args::RecordArgs;
use crate::failure::{Failure, RECORDER_FAILED};
use crate::output::Output;
use crate::signals::{EndSignal, EndSignals, Notice};
use live::LiveLine;
use stackpulse_record::Recorder;
use stackpulse_record::process::LaunchedProcess;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

/// How long it is waited at most before it is looked whether the recording is to end: what ends it wakes it as well.
const LOOK: Duration = Duration::from_secs(1);

type Recording = Recorder<Output>;

/// What is recorded.
enum Target {
    /// A program we started: the recording ends with it.
    Launched(LaunchedProcess),
    /// Processes that ran before: it ends with the last of them and their children.
    Attached,
    /// What a control group or the machine runs: it ends when it is told to.
    Machine,
}

/// Why a recording ended.
enum End {
    /// The target ended, or enough was recorded.
    Done,
    /// A signal asked for it.
    Signal(EndSignal),
}

pub(crate) fn run(args: &RecordArgs) -> Result<u8, Failure> {
    let mut signals = EndSignals::take_over()?;
    let options = start::options(args)?;
    let (output, undo) = Output::create(&args.output)?;
    let (mut recorder, mut target) = match start::start(args, output, &options) {
        Ok(started) => started,
        Err(failure) => {
            undo.undo();
            return Err(failure);
        }
    };
    undo.keep();
    signals.interrupt(recorder.interrupter());
    if let Target::Launched(_) = target {
        signals.watch_children()?;
    }
    let settings = recorder.settings();
    let end = follow(&mut recorder, &mut target, args, &mut signals)
        .map_err(|failure| kept(args, &failure))?;
    if let (End::Signal(signal), Target::Launched(child)) = (&end, &mut target) {
        pass_on(*signal, child);
    }
    let (summary, output) =
        recorder.finish().map_err(|error| kept(args, &own_failure(error.to_string())))?;
    end::conclude(args, settings, &summary, output)?;
    match target {
        Target::Launched(child) => wait_for(child, &mut signals),
        Target::Attached | Target::Machine => Ok(0),
    }
}

fn own_failure(message: impl Into<String>) -> Failure {
    Failure::with_status(RECORDER_FAILED, message)
}

/// A failure in the middle: says what is left of the recording.
fn kept(args: &RecordArgs, failure: &Failure) -> Failure {
    own_failure(format!("{failure}; what was recorded before is kept in {}", args.output.display()))
}

/// Waits for the end of the recording.
fn follow(
    recorder: &mut Recording,
    target: &mut Target,
    args: &RecordArgs,
    signals: &mut EndSignals,
) -> Result<End, Failure> {
    let failed = |error: stackpulse_record::Error| own_failure(error.to_string());
    let started = Instant::now();
    let mut delay = args.delay;
    let mut line = LiveLine::wanted(args);
    loop {
        if let Some(signal) = signals.pending() {
            return Ok(End::Signal(signal));
        }
        let elapsed = started.elapsed();
        if delay.is_some_and(|delay| elapsed >= delay) {
            recorder.enable().map_err(failed)?;
            delay = None;
        }
        let total = args.duration.map(|duration| duration + args.delay.unwrap_or_default());
        let is_large = |limit| recorder.summary().bytes_written >= limit;
        if total.is_some_and(|total| elapsed >= total) || args.max_size.is_some_and(is_large) {
            return Ok(End::Done);
        }
        let ended = match target {
            Target::Launched(child) => {
                child.try_wait().map_err(|error| not_waited(&error))?.is_some()
            }
            Target::Attached => recorder.active_process_count().map_err(failed)? == 0,
            Target::Machine => false,
        };
        if ended {
            return Ok(End::Done);
        }
        let due = [delay, total].into_iter().flatten().map(|due| due.saturating_sub(elapsed));
        let redraw = line.as_ref().map(|_| live::EVERY);
        let look = due.chain(redraw).fold(LOOK, Duration::min);
        recorder.poll(look).map_err(failed)?;
        if let Some(line) = &mut line {
            line.show(started.elapsed(), recorder.summary());
        }
    }
}

/// A signal is passed on unless the terminal sent it to both.
fn pass_on(signal: EndSignal, child: &mut LaunchedProcess) {
    if !signal.from_terminal && matches!(child.try_wait(), Ok(None)) {
        // It may have ended in between.
        let _ = child.signal(signal.number);
    }
}

/// The launched program's exit status is ours. What is recorded may have ended before it: signals are passed on to it.
fn wait_for(mut child: LaunchedProcess, signals: &mut EndSignals) -> Result<u8, Failure> {
    loop {
        if let Some(status) = child.try_wait().map_err(|error| not_waited(&error))? {
            return Ok(exit_code(status));
        }
        if let Some(Notice::End(signal)) = signals.wait(LOOK) {
            pass_on(signal, &mut child);
        }
    }
}

fn not_waited(error: &io::Error) -> Failure {
    own_failure(format!("wait for the program: {error}"))
}

fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default());
    u8::try_from(code).unwrap_or(u8::MAX)
}
