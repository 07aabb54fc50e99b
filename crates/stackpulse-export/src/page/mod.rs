//! One page that holds the profile and draws it: no network, no other file.

use crate::names::clean;
use crate::profile::{Mode, Profile};
use crate::timeline::{MarkKind, Timeline};
use crate::tree::CallTree;
use rustc_hash::FxHashMap;
use serde_json::json;
use std::io::{self, Write};

const STYLE: &str = include_str!("page.css");
const BODY: &str = include_str!("page.html");
const SCRIPTS: [&str; 4] = [
    include_str!("tree.js"),
    include_str!("flame.js"),
    include_str!("axis.js"),
    include_str!("app.js"),
];

/// Writes a page that shows the profile in any browser, from a file or a server.
///
/// It has a flame graph with zoom and search, from the roots or from the hottest functions; callers and callees of one function;
/// threads and parts of the time to choose; losses and gaps on the axis of time. Names are data in it, never markup.
///
/// # Errors
///
/// Those of `out`; a profile without a [`Timeline`] is written without samples.
pub fn write_html(profile: &Profile, mut out: impl Write) -> io::Result<()> {
    out.write_all(b"<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n")?;
    // Nothing but what is in the page may be loaded or run.
    out.write_all(b"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:\">\n")?;
    out.write_all(b"<meta name=\"viewport\" content=\"width=device-width\"><meta name=\"generator\" content=\"stackpulse\">\n")?;
    write!(
        out,
        "<title>Stackpulse</title><link rel=\"icon\" href=\"data:,\"><style>\n{STYLE}</style></head><body>\n{BODY}"
    )?;
    out.write_all(b"<script type=\"application/json\" id=\"profile\">")?;
    write_data(profile, &mut Escaped(&mut out))?;
    out.write_all(b"</script>\n")?;
    for script in SCRIPTS {
        write!(out, "<script>\n{script}</script>\n")?;
    }
    out.write_all(b"</body></html>\n")?;
    out.flush()
}

/// JSON in which no markup can begin.
struct Escaped<W>(W);

impl<W: Write> Write for Escaped<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for (at, part) in bytes.split(|&byte| byte == b'<').enumerate() {
            if at > 0 {
                // Outside strings JSON has no such character.
                self.0.write_all(b"\\u003c")?;
            }
            self.0.write_all(part)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

fn write_data(profile: &Profile, out: &mut impl Write) -> io::Result<()> {
    let empty = Timeline::default();
    let timeline = profile.stacks.timeline.as_ref().unwrap_or(&empty);
    let mut tree = CallTree::new(profile);
    let leaves: Vec<u32> = timeline.stacks.iter().map(|&stack| tree.add(0, stack)).collect();
    write_facts(profile, timeline, out)?;
    write_functions(profile, out)?;
    write_numbers(out, "parents", tree.parents.iter().copied())?;
    write_numbers(
        out,
        "labels",
        tree.labels.iter().map(|label| label.0).map(|at| if at == u32::MAX { 0 } else { at }),
    )?;
    let (threads, numbers) = sampled_threads(profile, timeline);
    out.write_all(b",\"threads\":")?;
    serde_json::to_writer(&mut *out, &threads)?;
    out.write_all(b",\"samples\":{\"0\":0")?;
    write_numbers(
        out,
        "node",
        timeline.samples.iter().map(|sample| leaves[sample.stack as usize]),
    )?;
    let thread = |stack: u32| timeline.stacks[stack as usize].actor.thread;
    write_numbers(
        out,
        "thread",
        timeline.samples.iter().map(|sample| numbers[&thread(sample.stack)]),
    )?;
    let mut last_us = 0;
    let deltas = timeline.samples.iter().map(|sample| {
        let now_us = timeline.since_start_ns(sample.time_ns) / 1000;
        i128::from(now_us) - i128::from(std::mem::replace(&mut last_us, now_us))
    });
    write_numbers(out, "delta", deltas)?;
    out.write_all(b"}}")
}

/// Name, length, losses and gaps.
fn write_facts(profile: &Profile, timeline: &Timeline, out: &mut impl Write) -> io::Result<()> {
    let first = profile.stacks.processes.first().map(|process| &process.comm);
    let name = clean(&String::from_utf8_lossy(first.map_or(b"no samples", Vec::as_slice)));
    let duration = timeline.since_start_ns(timeline.end_ns) / 1000;
    let mut lost = 0u64;
    let marks: Vec<_> = timeline
        .marks
        .iter()
        .map(|mark| {
            let is_loss = matches!(mark.kind, MarkKind::Lost { .. });
            if let MarkKind::Lost { events, .. } = mark.kind {
                lost = lost.saturating_add(events);
            }
            let since = |time_ns| timeline.since_start_ns(time_ns) / 1000;
            json!([since(mark.start_ns), since(mark.end_ns), mark.kind.label(), is_loss])
        })
        .collect();
    write!(out, "{{\"name\":{},\"duration\":{duration},\"lost\":{lost},\"marks\":", json!(name))?;
    serde_json::to_writer(&mut *out, &marks)?;
    Ok(())
}

fn write_functions(profile: &Profile, out: &mut impl Write) -> io::Result<()> {
    let names: Vec<String> =
        profile.functions.iter().map(|function| clean(&function.label())).collect();
    let (mut modules, mut index) = (Vec::new(), FxHashMap::default());
    let module: Vec<usize> = profile
        .functions
        .iter()
        .map(|function| {
            *index.entry(&*function.module).or_insert_with(|| {
                modules.push(clean(&function.module));
                modules.len() - 1
            })
        })
        .collect();
    let mode: String = profile
        .functions
        .iter()
        .map(|function| match function.mode {
            Mode::User => 'u',
            Mode::Kernel => 'k',
            Mode::Generated => 'j',
            Mode::Marker => 'm',
        })
        .collect();
    out.write_all(b",\"functions\":")?;
    serde_json::to_writer(&mut *out, &names)?;
    out.write_all(b",\"modules\":")?;
    serde_json::to_writer(&mut *out, &modules)?;
    out.write_all(b",\"module\":")?;
    serde_json::to_writer(&mut *out, &module)?;
    write!(out, ",\"mode\":\"{mode}\"")
}

/// The threads that have samples, those with most first, and the number of each.
fn sampled_threads(profile: &Profile, timeline: &Timeline) -> (Vec<String>, FxHashMap<u32, u32>) {
    let mut counts: FxHashMap<u32, u64> = FxHashMap::default();
    for sample in &timeline.samples {
        *counts.entry(timeline.stacks[sample.stack as usize].actor.thread).or_default() += 1;
    }
    let mut threads: Vec<(u64, u32)> =
        counts.into_iter().map(|(thread, count)| (count, thread)).collect();
    threads.sort_unstable_by_key(|&(count, thread)| (std::cmp::Reverse(count), thread));
    let label = |&(_, thread): &(u64, u32)| clean(&profile.stacks.thread_label(thread as usize));
    let labels = threads.iter().map(label).collect();
    let numbers = threads.iter().zip(0u32..).map(|(&(_, thread), at)| (thread, at)).collect();
    (labels, numbers)
}

fn write_numbers<N: std::fmt::Display>(
    out: &mut impl Write,
    name: &str,
    numbers: impl Iterator<Item = N>,
) -> io::Result<()> {
    write!(out, ",\"{name}\":[")?;
    for (at, number) in numbers.enumerate() {
        if at > 0 {
            out.write_all(b",")?;
        }
        write!(out, "{number}")?;
    }
    out.write_all(b"]")
}
