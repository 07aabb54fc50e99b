//! `record`: from what was typed to a finished spool.

use crate::args::{EventName, Rate, RecordArgs};
use crate::commands::report;
use crate::failure::{Failure, NOT_EXECUTABLE, NOT_FOUND, RECORDER_FAILED};
use crate::output::Output;
use crate::render::summary::{Closing, own_cpu_seconds, print_summary};
use crate::signals::{EndSignal, EndSignals};
use crate::{names, open};
use clap::Parser;
use stackpulse_record::process::{Launch, LaunchError, LaunchedProcess, SuspendedLaunchedProcess};
use stackpulse_record::{
    AttachMode, AttachOutcome, EventChoice, Recorder, RecorderOptions, SampleRate, Settings,
    Summary,
};
use stackpulse_spool::append_symbols;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
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
    let options = options(args)?;
    let (output, undo) = Output::create(&args.output)?;
    let started = if args.pid.is_empty() {
        launch(args, output, &options)
    } else {
        attach(args, output, &options).map(|recorder| (recorder, Target::Attached))
    };
    let (mut recorder, mut target) = match started {
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
    conclude(args, settings, &summary, output)?;
    status(target, &end)
}

fn own_failure(message: impl Into<String>) -> Failure {
    Failure::with_status(RECORDER_FAILED, message)
}

/// A failure in the middle: says what is left of the recording.
fn kept(args: &RecordArgs, failure: &Failure) -> Failure {
    own_failure(format!("{failure}; what was recorded before is kept in {}", args.output.display()))
}

fn options(args: &RecordArgs) -> Result<RecorderOptions, Failure> {
    let mut options = RecorderOptions::default();
    options.sample_rate = match args.freq {
        Rate::Maximum => SampleRate::Maximum,
        Rate::Hz(hz) => SampleRate::hz(hz).map_err(|error| own_failure(error.to_string()))?,
    };
    options.event = match args.event {
        None => EventChoice::Automatic,
        Some(EventName::Cycles) => EventChoice::Cycles,
        Some(EventName::CpuClock) => EventChoice::CpuClock,
    };
    options.stack_size = args.call_graph.stack_size;
    if let Some(pages) = args.mmap_pages {
        let stack = options.stack_size.max(PAGE_BYTES);
        options.ring_buffer_stacks = (u64::from(pages) * u64::from(PAGE_BYTES) / u64::from(stack))
            .try_into()
            .unwrap_or(u32::MAX)
            .max(1);
    }
    options.include_kernel = !args.no_kernel;
    options.inherit_children = !args.no_inherit;
    options.start_enabled = args.delay.is_none();
    Ok(options)
}

/// perf counts rings in pages of this size.
const PAGE_BYTES: u32 = 4096;

fn attach(
    args: &RecordArgs,
    output: Output,
    options: &RecorderOptions,
) -> Result<Recording, Failure> {
    let mode = if args.no_stop { AttachMode::Running } else { AttachMode::StopWhileAttaching };
    let failed = |error: stackpulse_record::Error| own_failure(error.to_string());
    let mut pids = args.pid.iter().copied();
    let first = pids.next().unwrap_or_default();
    let mut recorder =
        Recorder::attach_with_writer(first, output, mode, options).map_err(failed)?;
    kernel_as_asked(args, &recorder)?;
    for pid in pids {
        if recorder.attach_process(pid, mode).map_err(failed)? == AttachOutcome::Exited {
            return Err(own_failure(format!("there is no process {pid}")));
        }
    }
    Ok(recorder)
}

/// Refuses to go on without kernel frames that were asked for.
fn kernel_as_asked(args: &RecordArgs, recorder: &Recording) -> Result<(), Failure> {
    if !args.kernel || recorder.settings().kernel_frames {
        return Ok(());
    }
    Err(own_failure(
        "kernel frames are not permitted here; lower kernel.perf_event_paranoid to 1, or record as root",
    ))
}

fn launch(
    args: &RecordArgs,
    output: Output,
    options: &RecorderOptions,
) -> Result<(Recording, Target), Failure> {
    let launch =
        Launch { output_to_stderr: args.output == Path::new("-"), ..command(&args.command)? };
    let suspended =
        SuspendedLaunchedProcess::launch(&launch).map_err(|error| not_launched(&error))?;
    let recorder =
        Recorder::attach_with_writer(suspended.pid(), output, AttachMode::OnExec, options)
            .map_err(|error| own_failure(error.to_string()))?;
    kernel_as_asked(args, &recorder)?;
    let launched = suspended.resume().map_err(|error| not_launched(&error))?;
    Ok((recorder, Target::Launched(launched)))
}

/// Splits `VAR=VALUE... COMMAND ARGUMENT...`.
fn command(words: &[OsString]) -> Result<Launch, Failure> {
    let mut launch = Launch::default();
    let mut words = words.iter();
    for word in words.by_ref() {
        let bytes = word.as_bytes();
        match bytes.iter().position(|&byte| byte == b'=') {
            Some(at) if at > 0 && !bytes[..at].contains(&b'/') => {
                let text = |bytes: &[u8]| OsStr::from_bytes(bytes).to_owned();
                launch.environment.push((text(&bytes[..at]), text(&bytes[at + 1..])));
            }
            _ => {
                launch.program.clone_from(word);
                break;
            }
        }
    }
    launch.arguments = words.cloned().collect();
    if launch.program.is_empty() {
        return Err(own_failure(
            "nothing to record: give a command, or a running process with -p PID",
        ));
    }
    Ok(launch)
}

fn not_launched(error: &LaunchError) -> Failure {
    let program = error.program.display();
    // A directory of PATH that may not be searched makes the kernel answer "not permitted" for a program that is nowhere.
    let kind = match error.source.kind() {
        io::ErrorKind::PermissionDenied if !is_somewhere(&error.program) => io::ErrorKind::NotFound,
        kind => kind,
    };
    match kind {
        io::ErrorKind::NotFound => Failure::with_status(
            NOT_FOUND,
            format!("there is no program {program}; check its name and PATH"),
        ),
        io::ErrorKind::PermissionDenied => {
            let what = if Path::new(&error.program).is_dir() {
                "it is a directory; name a program in it"
            } else {
                "it may not be executed; check its permissions (chmod +x)"
            };
            Failure::with_status(NOT_EXECUTABLE, format!("cannot run {program}: {what}"))
        }
        _ => {
            Failure::with_status(NOT_EXECUTABLE, format!("cannot run {program}: {}", error.source))
        }
    }
}

/// Whether a program's path, or its name in a directory of `PATH`, is there.
fn is_somewhere(program: &OsStr) -> bool {
    if program.as_bytes().contains(&b'/') {
        return true;
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| directory.join(program).exists())
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
    loop {
        recorder.poll(LOOK).map_err(failed)?;
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
        };
        if ended {
            return Ok(End::Done);
        }
    }
}

/// Stores names, says what was recorded, and shows the report if that is wanted.
fn conclude(
    args: &RecordArgs,
    settings: Settings,
    summary: &Summary,
    output: Output,
) -> Result<(), Failure> {
    let own_cpu_seconds = own_cpu_seconds();
    let say = |unnamed| {
        if args.quiet {
            return;
        }
        let bytes = std::fs::metadata(&args.output)
            .map_or(summary.bytes_written, |metadata| metadata.len());
        let closing = Closing {
            path: &args.output,
            bytes,
            settings,
            summary,
            unnamed,
            own_cpu_seconds,
            is_verbose: args.verbose > 0,
        };
        // Standard error may be closed; the recording is complete all the same.
        let _ = print_summary(&closing, &mut io::stderr().lock());
    };
    let Some(mut file) = output.into_file() else {
        say(None);
        return Ok(());
    };
    let mut unnamed = None;
    if !args.no_symbols {
        let loaded = open::load(&args.output)?;
        let table = names::table(&loaded.stacks, loaded.boot_id, None);
        unnamed = names::unnamed(&loaded.stacks, &table);
        append_symbols(&mut file, &table).map_err(|error| {
            own_failure(format!(
                "store names in {}: {error}; the samples are complete",
                args.output.display()
            ))
        })?;
    }
    say(unnamed);
    drop::<File>(file);
    if args.report { show_report(args) } else { Ok(()) }
}

fn show_report(args: &RecordArgs) -> Result<(), Failure> {
    io::stdout().flush()?;
    let words = [
        OsString::from("stackpulse"),
        OsString::from("report"),
        args.output.clone().into_os_string(),
    ];
    match crate::args::Args::parse_from(words).command {
        crate::args::Command::Report(report) => report::run(&report),
        _ => Ok(()),
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

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[&str]) -> Vec<OsString> {
        words.iter().map(OsString::from).collect()
    }

    #[test]
    fn assignments_before_the_command_are_its_environment() {
        let launch = command(&words(&["A=1", "B=x=y", "prog", "C=2"])).unwrap();
        assert_eq!(launch.environment.len(), 2);
        assert_eq!(launch.environment[1], ("B".into(), "x=y".into()));
        assert_eq!(launch.program, "prog");
        assert_eq!(launch.arguments, words(&["C=2"]));
    }

    #[test]
    fn a_path_with_an_equals_sign_is_a_program() {
        assert_eq!(command(&words(&["./a=b"])).unwrap().program, "./a=b");
    }

    #[test]
    fn assignments_alone_are_nothing_to_record() {
        assert_eq!(command(&words(&["A=1"])).unwrap_err().status(), RECORDER_FAILED);
        assert_eq!(command(&[]).unwrap_err().status(), RECORDER_FAILED);
    }
}
