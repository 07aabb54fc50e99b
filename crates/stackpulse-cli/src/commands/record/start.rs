//! How a recording starts: the settings, and the program or the processes.

use super::{Recording, Target, control_group, own_failure};
use crate::args::{EventName, Rate, RecordArgs};
use crate::failure::{Failure, NOT_EXECUTABLE, NOT_FOUND};
use crate::output::Output;
use stackpulse_record::process::{Launch, LaunchError, SuspendedLaunchedProcess};
use stackpulse_record::{
    AttachMode, AttachOutcome, EventChoice, Recorder, RecorderOptions, SampleRate,
};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

pub(super) fn options(args: &RecordArgs) -> Result<RecorderOptions, Failure> {
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
    options.cpus = args.cpu.as_ref().map(|list| list.0.clone());
    Ok(options)
}

/// perf counts rings in pages of this size.
const PAGE_BYTES: u32 = 4096;

/// Starts what was asked for.
pub(super) fn start(
    args: &RecordArgs,
    output: Output,
    options: &RecorderOptions,
) -> Result<(Recording, Target), Failure> {
    let failed = |error: stackpulse_record::Error| own_failure(error.to_string());
    if !args.pid.is_empty() {
        return attach(args, output, options).map(|recorder| (recorder, Target::Attached));
    }
    let is_of_cpus = args.all_cpus || (args.cpu.is_some() && args.command.is_empty());
    let group = args.cgroup.as_deref().map(control_group::directory).transpose()?;
    let begin = |output| match group {
        Some(group) => Recorder::control_group_with_writer(group, output, options),
        None => Recorder::system_wide_with_writer(output, options),
    };
    if !is_of_cpus && args.cgroup.is_none() {
        return launch(args, |pid| {
            Recorder::attach_with_writer(pid, output, AttachMode::OnExec, options)
        });
    }
    if !args.command.is_empty() {
        return launch(args, |_| begin(output));
    }
    let recorder = begin(output).map_err(failed)?;
    kernel_as_asked(args, &recorder)?;
    Ok((recorder, Target::Machine))
}

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

/// Launches the program; `begin` starts recording while it waits for that.
fn launch(
    args: &RecordArgs,
    begin: impl FnOnce(u32) -> Result<Recording, stackpulse_record::Error>,
) -> Result<(Recording, Target), Failure> {
    let launch =
        Launch { output_to_stderr: args.output == Path::new("-"), ..command(&args.command)? };
    let suspended =
        SuspendedLaunchedProcess::launch(&launch).map_err(|error| not_launched(&error))?;
    let recorder = begin(suspended.pid()).map_err(|error| own_failure(error.to_string()))?;
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
            "nothing to record: give a command, a running process with -p PID, or -a for everything",
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::RECORDER_FAILED;

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
