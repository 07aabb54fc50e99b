//! Chrome's trace events, for Perfetto and whatever else reads them: calls on the axis of time.

use crate::names::clean;
use crate::profile::{Mode, Profile};
use crate::timeline::Timeline;
use crate::tree::{CallTree, Step};
use serde_json::json;
use std::io::{self, Write};

/// Writes a trace: for each thread the calls that begin and end, and losses and gaps as instant events.
///
/// A call lasts from the first sample that shows it to the last in a row; between samples nothing is known. Where a thread
/// was not sampled for more than two intervals its calls end. Times are microseconds since the recording's start.
///
/// # Errors
///
/// Those of `out`; a profile without a [`Timeline`] is written without events.
pub fn write_chrome(profile: &Profile, mut out: impl Write) -> io::Result<()> {
    let empty = Timeline::default();
    let timeline = profile.stacks.timeline.as_ref().unwrap_or(&empty);
    let exporter = format!("stackpulse {}", env!("CARGO_PKG_VERSION"));
    write!(out, "{{\"displayTimeUnit\":\"ns\",\"otherData\":{},", json!({ "exporter": exporter }))?;
    out.write_all(b"\"traceEvents\":[")?;
    write!(out, "{}", json!({"ph": "M", "name": "trace", "pid": 0, "tid": 0, "args": {}}))?;
    write_marks(timeline, &mut out)?;
    let names: Vec<String> = profile.functions.iter().map(quoted).collect();
    let mut tree = CallTree::new(profile);
    let leaves: Vec<u32> = timeline.stacks.iter().map(|&stack| tree.add(0, stack)).collect();
    for (thread, samples) in
        timeline.by_thread(profile.stacks.threads.len()).into_iter().enumerate()
    {
        if samples.is_empty() {
            continue;
        }
        let ids = write_names(profile, thread, &mut out)?;
        let mut calls = Calls { timeline, tree: &tree, names: &names, ids, node: 0, out: &mut out };
        calls.write(&samples, &leaves)?;
    }
    out.write_all(b"\n]}\n")?;
    out.flush()
}

/// The calls of one thread.
struct Calls<'a, W> {
    timeline: &'a Timeline,
    tree: &'a CallTree<'a>,
    names: &'a [String],
    /// The fields that name process and thread.
    ids: String,
    /// Where the thread is.
    node: u32,
    out: W,
}

impl<W: Write> Calls<'_, W> {
    fn write(&mut self, samples: &[u32], leaves: &[u32]) -> io::Result<()> {
        let interval_ns = self.timeline.interval_ns();
        let mut until_ns: Option<u64> = None;
        for &at in samples {
            let sample = self.timeline.samples[at as usize];
            let longest_ns = interval_ns.saturating_mul(2);
            if let Some(until_ns) = until_ns.filter(|&last| sample.time_ns > last + longest_ns) {
                self.go(0, until_ns.saturating_add(interval_ns))?;
            }
            self.go(leaves[sample.stack as usize], sample.time_ns)?;
            until_ns = Some(sample.time_ns);
        }
        self.go(0, until_ns.unwrap_or_default().saturating_add(interval_ns))
    }

    fn go(&mut self, to: u32, time_ns: u64) -> io::Result<()> {
        let time = microseconds(self.timeline.since_start_ns(time_ns));
        let (names, ids, out) = (self.names, &self.ids, &mut self.out);
        self.tree.go(self.node, to, |step, label| {
            // Some readers match the end of a call to its begin by name.
            let (kind, name) =
                (if step == Step::Open { 'B' } else { 'E' }, &names[label.0 as usize]);
            write!(out, ",\n{{\"ph\":\"{kind}\",\"ts\":{time},{name},{ids}}}")
        })?;
        self.node = to;
        Ok(())
    }
}

/// Names a thread and its process, and returns the fields that refer to it.
fn write_names(profile: &Profile, thread: usize, out: &mut impl Write) -> io::Result<String> {
    let stacks = &profile.stacks;
    let process = &stacks.processes[stacks.threads[thread].process as usize];
    let (pid, tid) = (process.pid, stacks.threads[thread].tid);
    let comm = clean(&String::from_utf8_lossy(&process.comm));
    for (name, text) in
        [("process_name", comm), ("thread_name", clean(&stacks.thread_label(thread)))]
    {
        let named =
            json!({"ph": "M", "name": name, "pid": pid, "tid": tid, "args": {"name": text}});
        write!(out, ",\n{named}")?;
    }
    Ok(format!("\"pid\":{pid},\"tid\":{tid}"))
}

fn write_marks(timeline: &Timeline, out: &mut impl Write) -> io::Result<()> {
    for mark in &timeline.marks {
        let name = json!(mark.kind.label());
        let start = microseconds(timeline.since_start_ns(mark.start_ns));
        write!(
            out,
            ",\n{{\"ph\":\"i\",\"s\":\"g\",\"ts\":{start},\"name\":{name},\"pid\":0,\"tid\":0}}"
        )?;
    }
    Ok(())
}

/// The fields that name a function.
fn quoted(function: &crate::Function) -> String {
    let category = match function.mode {
        Mode::User => "user",
        Mode::Kernel => "kernel",
        Mode::Generated => "jit",
        Mode::Marker => "missing",
    };
    format!("\"name\":{},\"cat\":\"{category}\"", json!(clean(&function.label())))
}

/// Nanoseconds as microseconds, exactly.
fn microseconds(ns: u64) -> String {
    format!("{}.{:03}", ns / 1000, ns % 1000)
}
