//! The text of `perf script`, which many tools import.

use crate::names::clean;
use crate::profile::{Mode, Profile};
use crate::stacks::Place;
use crate::timeline::Timeline;
use std::io::{self, Write};

/// Writes every sample as `perf script` prints it: a line of facts, a line for each frame, an empty line.
///
/// Addresses are those that the image's file states; inlined calls have the module `(inlined)`, as perf's have.
///
/// # Errors
///
/// Those of `out`; a profile without a [`Timeline`] is written without samples.
pub fn write_perf_script(profile: &Profile, mut out: impl Write) -> io::Result<()> {
    let empty = Timeline::default();
    let timeline = profile.stacks.timeline.as_ref().unwrap_or(&empty);
    let places: Vec<String> = (0..profile.calls.len()).map(|at| frame_lines(profile, at)).collect();
    let comms: Vec<String> = profile.stacks.comms.iter().map(|comm| one_word(comm)).collect();
    let event = if timeline.event.is_empty() { "samples" } else { &timeline.event };
    for sample in &timeline.samples {
        let stack = timeline.stacks[sample.stack as usize];
        let thread = &profile.stacks.threads[stack.actor.thread as usize];
        let pid = profile.stacks.processes[thread.process as usize].pid;
        let micros = sample.time_ns / 1000;
        writeln!(
            out,
            "{} {pid}/{} [{:03}] {}.{:06}: {:>10} {event}: ",
            comms[stack.actor.comm as usize],
            thread.tid,
            sample.cpu,
            micros / 1_000_000,
            micros % 1_000_000,
            sample.weight,
        )?;
        for place in profile.stacks.places_of(stack) {
            out.write_all(places[place as usize].as_bytes())?;
        }
        out.write_all(b"\n")?;
    }
    out.flush()
}

/// The lines of a place, innermost call first.
fn frame_lines(profile: &Profile, place: usize) -> String {
    let (address, path) = match profile.stacks.places[place] {
        Place::Code { image, address } => {
            let image = &profile.stacks.images[image as usize];
            let path = clean(&String::from_utf8_lossy(&image.path));
            let name = if path.is_empty() { clean(&crate::module_name(image)) } else { path };
            (address, name)
        }
        Place::Truncated(_) => (0, "[missing]".to_owned()),
        Place::Joined => (0, "[joined]".to_owned()),
    };
    let calls = &profile.calls[place];
    let mut lines = String::new();
    for (at, call) in calls.iter().enumerate() {
        let function = profile.function(call.function);
        let name = match (&function.name, function.mode) {
            (Some(name), _) => clean(name),
            (None, _) => "[unknown]".to_owned(),
        };
        let module = match (at + 1 < calls.len(), function.mode) {
            (true, _) => "inlined",
            (false, Mode::Kernel) if !path.starts_with('/') => "[kernel.kallsyms]",
            (false, _) => &path,
        };
        lines.push_str(&format!("\t{address:16x} {name} ({module})\n"));
    }
    lines
}

/// A comm as perf's readers expect it: on one line, and not empty.
fn one_word(comm: &[u8]) -> String {
    match clean(&String::from_utf8_lossy(comm)) {
        comm if comm.trim().is_empty() => ":unknown".to_owned(),
        comm => comm,
    }
}
