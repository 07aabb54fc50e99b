//! What the end of a recording says.

use super::{bytes, duration, percent, plural, printable};
use crate::names::{Unnamed, UnnamedModule};
use stackpulse_record::{Settings, Summary};
use std::io::{self, Write};
use std::path::Path;

/// What there is to say.
pub(crate) struct Closing<'a> {
    pub(crate) path: &'a Path,
    pub(crate) bytes: u64,
    pub(crate) settings: Settings,
    pub(crate) summary: &'a Summary,
    pub(crate) unnamed: Option<Unnamed>,
    /// When the first and the last events were lost, since the start.
    pub(crate) lost_span_ns: Option<(u64, u64)>,
    /// CPU time that recording itself took, naming left out.
    pub(crate) own_cpu_seconds: Option<f64>,
    pub(crate) is_verbose: bool,
}

/// Prints it: samples, duration and file; loss; truncation with its main reason; names; own cost.
pub(crate) fn print_summary(closing: &Closing<'_>, out: &mut impl Write) -> io::Result<()> {
    let summary = closing.summary;
    let span_ns = summary.end_ns.saturating_sub(summary.start_ns);
    writeln!(
        out,
        "stackpulse: {} in {} ({} at {} Hz), {} ({})",
        plural(summary.samples_written, "sample"),
        duration(span_ns),
        closing.settings.event.name(),
        closing.settings.frequency_hz,
        closing.path.display(),
        bytes(closing.bytes),
    )?;
    let lost = Lost { events: summary.events_lost, span_ns: closing.lost_span_ns };
    print_loss(summary.samples_written, lost, out)?;
    print_truncation(summary.samples_written, &summary.counters, out)?;
    if let Some(unnamed) = &closing.unnamed {
        let mut opening = format!(
            "  without a name: {:.1}% of samples, most",
            percent(unnamed.samples, summary.samples_written)
        );
        for module in &unnamed.modules {
            writeln!(out, "{opening} in {}; {}", printable(&module.module), who_names(module))?;
            let next = unnamed.modules.iter().skip_while(|it| *it != module).nth(1);
            let share = next.map_or(0, |next| next.samples);
            opening = format!("    and {:.1}%", percent(share, summary.samples_written));
        }
    }
    if let Some(own) = closing.own_cpu_seconds {
        let seconds = std::time::Duration::from_nanos(span_ns.max(1)).as_secs_f64();
        writeln!(out, "  own CPU: {:.1}% of one core", own * 100.0 / seconds)?;
    }
    if summary.samples_written == 0 {
        let counter = |name: &str| summary.counter(name).unwrap_or_default();
        writeln!(
            out,
            "  0 samples because {}",
            why_none(counter, span_ns, closing.settings.frequency_hz)
        )?;
    }
    if closing.is_verbose {
        let settings = closing.settings;
        writeln!(
            out,
            "  rings: {} a CPU on {}{}; kernel frames: {}",
            bytes(settings.ring_bytes as u64),
            plural(settings.cpus as u64, "CPU"),
            if settings.rings_reduced {
                ", less than asked for (perf_event_mlock_kb, RLIMIT_MEMLOCK)"
            } else {
                ""
            },
            if settings.kernel_frames { "on" } else { "off" },
        )?;
        for (name, value) in &summary.counters {
            writeln!(out, "  {name}: {value}")?;
        }
    }
    Ok(())
}

/// What the kernel dropped.
#[derive(Clone, Copy)]
pub(crate) struct Lost {
    /// How many events.
    pub(crate) events: u64,
    /// When the first and the last were, since the start, where that is known.
    pub(crate) span_ns: Option<(u64, u64)>,
}

impl From<u64> for Lost {
    fn from(events: u64) -> Self {
        Self { events, span_ns: None }
    }
}

/// Says how many events the kernel dropped, and when.
pub(crate) fn print_loss(
    samples: u64,
    lost: impl Into<Lost>,
    out: &mut impl Write,
) -> io::Result<()> {
    let lost: Lost = lost.into();
    if lost.events == 0 {
        return writeln!(out, "  lost: none");
    }
    let when = lost.span_ns.map_or_else(String::new, |(first, last)| {
        format!(", from {} to {} after the start", duration(first), duration(last))
    });
    writeln!(
        out,
        "  lost: {} ({:.2}%){when}; use a lower rate (-F), smaller stacks (-g dwarf,8192) or larger rings (-m)",
        plural(lost.events, "event"),
        percent(lost.events, samples.saturating_add(lost.events))
    )
}

/// Which file would name what has no name.
pub(crate) fn who_names(unnamed: &UnnamedModule) -> String {
    if unnamed.module == "[kernel]" {
        return "the kernel shows its names to root, or with kernel.kptr_restrict 0".to_owned();
    }
    if unnamed.module.starts_with('[') {
        return "code made at run time needs a map of its names (/tmp/perf-PID.map)".to_owned();
    }
    match &*unnamed.build_id {
        [] => "build it with symbols (-g), and do not strip it".to_owned(),
        [first, rest @ ..] => {
            let rest: String = rest.iter().map(|byte| format!("{byte:02x}")).collect();
            format!(
                "/usr/lib/debug/.build-id/{first:02x}/{rest}.debug would name it (its debug package)"
            )
        }
    }
}

/// Why a recording has no samples, by its counters, its length and its rate.
pub(crate) fn why_none(counter: impl Fn(&str) -> u64, span_ns: u64, rate_hz: u32) -> String {
    let (kernel, lost) = (counter("skipped.kernel_mode"), counter("events_lost"));
    let period_ns = 1_000_000_000 / u64::from(rate_hz.max(1));
    if kernel > 0 {
        format!(
            "all {kernel} were in the kernel, whose frames were not recorded; record with --kernel"
        )
    } else if lost > 0 {
        format!("all {lost} were lost; use a lower rate (-F) or smaller stacks (-g dwarf,8192)")
    } else if span_ns < period_ns.saturating_mul(2) {
        format!("it lasted only {}; record longer, or at a higher rate (-F)", duration(span_ns))
    } else {
        "the program used no CPU time while it was recorded".to_owned()
    }
}

/// Says how many stacks of these samples are cut, and the main reason.
pub(crate) fn print_truncation(
    samples: u64,
    counters: &[(String, u64)],
    out: &mut impl Write,
) -> io::Result<()> {
    let reasons = counters
        .iter()
        .filter_map(|(name, count)| Some((name.strip_prefix("truncated.")?, *count)));
    let Some((reason, _)) = reasons.max_by_key(|&(_, count)| count).filter(|&(_, count)| count > 0)
    else {
        return writeln!(out, "  truncated stacks: none");
    };
    let remedy = match reason {
        "outside_capture" => ": more stack than was captured; raise -g dwarf,BYTES (at most 65528)",
        "no_unwind_info" => {
            ": code without unwind information; keep its .eh_frame, or build it with frame pointers"
        }
        _ => "",
    };
    let truncated = counters
        .iter()
        .filter(|(name, _)| name.starts_with("truncated."))
        .fold(0u64, |sum, (_, count)| sum.saturating_add(*count));
    writeln!(
        out,
        "  truncated stacks: {truncated} ({:.2}%), most by {reason}{remedy}",
        percent(truncated, samples)
    )
}

/// CPU time of this process, as `/proc/self/stat` tells it: fields 14 and 15, in ticks of 10 ms (proc_pid_stat(5)).
pub(crate) fn own_cpu_seconds() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    let after = stat.rsplit_once(')')?.1;
    let mut fields = after.split_ascii_whitespace().skip(11).map(str::parse::<u32>);
    let ticks = fields.next()?.ok()? + fields.next()?.ok()?;
    Some(f64::from(ticks) / 100.0)
}
