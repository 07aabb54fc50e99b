//! speedscope's own form: for each thread the calls that begin and end, over accumulated weight.

use crate::names::clean;
use crate::profile::{Mode, Profile};
use crate::timeline::Timeline;
use crate::tree::{CallTree, Step};
use serde_json::{Value, json};
use std::io::{self, Write};

/// Writes a speedscope file: a profile for each thread, in order of time.
///
/// The axis is the weight of the samples: CPU time for `cpu-clock`, otherwise the number of samples; time in which
/// a thread was not sampled takes no room. A function in the kernel ends in ` [k]`.
///
/// # Errors
///
/// Those of `out`; a profile without a [`Timeline`] is written without samples.
pub fn write_speedscope(profile: &Profile, mut out: impl Write) -> io::Result<()> {
    let empty = Timeline::default();
    let timeline = profile.stacks.timeline.as_ref().unwrap_or(&empty);
    out.write_all(b"{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",")?;
    write!(out, "\"exporter\":\"stackpulse@{}\",\"name\":", env!("CARGO_PKG_VERSION"))?;
    serde_json::to_writer(&mut out, &name(profile))?;
    out.write_all(b",\"shared\":{\"frames\":[")?;
    write_frames(profile, &mut out)?;
    out.write_all(b"]},\"profiles\":[")?;
    let mut tree = CallTree::new(profile);
    let leaves: Vec<u32> = timeline.stacks.iter().map(|&stack| tree.add(0, stack)).collect();
    let mut is_first = true;
    for (thread, samples) in
        timeline.by_thread(profile.stacks.threads.len()).into_iter().enumerate()
    {
        if samples.is_empty() {
            continue;
        }
        if !std::mem::take(&mut is_first) {
            out.write_all(b",")?;
        }
        out.write_all(b"{\"type\":\"evented\",\"name\":")?;
        serde_json::to_writer(&mut out, &clean(&profile.stacks.thread_label(thread)))?;
        let unit = if timeline.is_cpu_time() { "nanoseconds" } else { "none" };
        write!(out, ",\"unit\":\"{unit}\",\"startValue\":0,\"events\":[")?;
        let end = write_events(timeline, &samples, (&tree, &leaves), &mut out)?;
        write!(out, "],\"endValue\":{end}}}")?;
    }
    out.write_all(b"]}\n")?;
    out.flush()
}

/// Writes one thread's events and returns where they end.
fn write_events(
    timeline: &Timeline,
    samples: &[u32],
    (tree, leaves): (&CallTree<'_>, &[u32]),
    out: &mut impl Write,
) -> io::Result<u64> {
    let (mut at, mut node, mut is_first) = (0u64, 0, true);
    let last = std::iter::once(None);
    for sample in samples.iter().map(|&at| Some(&timeline.samples[at as usize])).chain(last) {
        let next = sample.map_or(0, |sample| leaves[sample.stack as usize]);
        tree.go(node, next, |step, label| {
            let comma = if std::mem::take(&mut is_first) { "" } else { "," };
            let kind = if step == Step::Open { 'O' } else { 'C' };
            write!(out, "{comma}{{\"type\":\"{kind}\",\"frame\":{},\"at\":{at}}}", label.0)
        })?;
        node = next;
        let weight = sample.map_or(0, |sample| sample.weight);
        at = at.saturating_add(if timeline.is_cpu_time() {
            weight
        } else {
            sample.map_or(0, |_| 1)
        });
    }
    Ok(at)
}

/// Writes the functions; a frame's number is its function's.
fn write_frames(profile: &Profile, out: &mut impl Write) -> io::Result<()> {
    let mut files = vec![None; profile.functions.len()];
    for call in profile.calls.iter().flatten() {
        let file = &mut files[call.function.0 as usize];
        if file.is_none() {
            *file = call.file.as_deref();
        }
    }
    for (at, (function, file)) in profile.functions.iter().zip(files).enumerate() {
        if at > 0 {
            out.write_all(b",")?;
        }
        let mut name = clean(&function.label());
        if function.mode == Mode::Kernel {
            name.push_str(" [k]");
        }
        let mut frame = json!({ "name": name });
        if let Some(file) = file {
            frame["file"] = Value::from(clean(file));
        } else if !function.module.is_empty() {
            frame["file"] = Value::from(clean(&function.module));
        }
        serde_json::to_writer(&mut *out, &frame)?;
    }
    Ok(())
}

fn name(profile: &Profile) -> String {
    let first = profile.stacks.processes.first();
    let comm = first.map(|process| clean(&String::from_utf8_lossy(&process.comm)));
    comm.filter(|comm| !comm.is_empty()).unwrap_or_else(|| "stackpulse".to_owned())
}
