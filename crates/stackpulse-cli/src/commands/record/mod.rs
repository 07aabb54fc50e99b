//! `record`: from what was typed to a finished spool.

mod control_group;
mod end;
mod live;
mod start;

use crate::args::RecordArgs;
use crate::failure::{Failure, RECORDER_FAILED};
use crate::output::Output;
use crate::signals::{EndSignal, EndSignals};
use live::LiveLine;
use stackpulse_record::Recorder;
use stackpulse_record::process::LaunchedProcess;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

/// How often it is looked whether the recording is to end.
const LOOK: Duration = Duration::from_millis(50);

/// How long a launched program may take to end after a signal was passed on to it.
const PATIENCE: Duration = Duration::from_secs(2);

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
    let settings = recorder.settings();
    let end = follow(&mut recorder, &mut target, args, &mut signals)
        .map_err(|failure| kept(args, &failure))?;
    let (summary, output) =
        recorder.finish().map_err(|error| kept(args, &own_failure(error.to_string())))?;
    end::conclude(args, settings, &summary, output)?;
    status(target, &end)
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
        recorder.poll(LOOK).map_err(failed)?;
        if let Some(line) = &mut line {
            line.show(started.elapsed(), recorder.summary());
        }
        if let Some(signal) = signals.pending() {
            return Ok(End::Signal(signal));
        }
        if delay.is_some_and(|delay| started.elapsed() >= delay) {
            recorder.enable().map_err(failed)?;
            delay = None;
        }
        let total = args.duration.map(|duration| duration + args.delay.unwrap_or_default());
        let is_large = |limit| recorder.summary().bytes_written >= limit;
        if total.is_some_and(|total| started.elapsed() >= total)
            || args.max_size.is_some_and(is_large)
        {
            return Ok(End::Done);
        }
        let ended = match target {
            Target::Launched(child) => child
                .try_wait()
                .map_err(|error| own_failure(format!("wait for the program: {error}")))?
                .is_some(),
            Target::Attached => recorder.active_process_count().map_err(failed)? == 0,
            Target::Machine => false,
        };
        if ended {
            return Ok(End::Done);
        }
    }
}

/// The launched program's exit status is ours; a signal is passed on unless the terminal sent it to both.
fn status(target: Target, end: &End) -> Result<u8, Failure> {
    let Target::Launched(mut child) = target else { return Ok(0) };
    let waited = |error| own_failure(format!("wait for the program: {error}"));
    let End::Signal(signal) = end else {
        // With a duration the recording may end before the program: it runs on, and we with it.
        return child.wait().map(exit_code).map_err(waited);
    };
    if !signal.from_terminal && child.try_wait().map_err(waited)?.is_none() {
        // It may have ended in between.
        let _ = child.signal(signal.number);
    }
    let asked = Instant::now();
    while asked.elapsed() < PATIENCE {
        if let Some(status) = child.try_wait().map_err(waited)? {
            return Ok(exit_code(status));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    // It goes on by its own choice.
    Ok(u8::try_from(128 + signal.number).unwrap_or(RECORDER_FAILED))
}

fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default());
    u8::try_from(code).unwrap_or(u8::MAX)
}
