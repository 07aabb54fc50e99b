//! `info`: what a spool says of itself.

use crate::analysis::health::{self, Health};
use crate::args::FileArgs;
use crate::commands::report::closed_pipe_is_fine;
use crate::failure::Failure;
use crate::names::{self, Unnamed};
use crate::open;
use crate::render::summary::who_names;
use crate::render::{bytes, duration, percent, plural, printable};
use rustc_hash::FxHashMap;
use serde_json::{Map, Value, json};
use stackpulse_export::{Loader, Stacks};
use stackpulse_spool::{Frame, Record, Sample, StackId, State, Tables, Truncation, text};
use std::collections::BTreeMap;
use std::io::{self, BufWriter, Write};

/// Everything but the samples.
#[derive(Default)]
struct Facts {
    event: String,
    rate_hz: u32,
    stack_size: u32,
    kernel_frames: bool,
    start_ns: u64,
    start_realtime_ns: u64,
    end_ns: u64,
    host: Vec<(&'static str, String)>,
    samples: u64,
    lost: u64,
    losses: Vec<(u64, Option<u32>, u64)>,
    gaps: Vec<(u64, u64)>,
    throttles: u64,
    pauses: u64,
    truncated: BTreeMap<&'static str, u64>,
    counters: BTreeMap<String, u64>,
    unnamed: Option<Unnamed>,
}

pub(crate) fn run(args: &FileArgs) -> Result<(), Failure> {
    if args.dump {
        return dump(args);
    }
    let mut replay = open::replay(&args.file)?;
    let mut facts = Facts::default();
    let mut loader = Loader::default();
    let mut outermost = Outermost::default();
    loop {
        match replay.next_with_tables() {
            Ok(Some((record, tables))) => {
                if let Record::Sample(sample) = record
                    && let Some(reason) = outermost.truncation(sample, tables)
                {
                    *facts.truncated.entry(text::truncation(reason)).or_default() += 1;
                }
                facts.take(&record);
                loader.take(&record, tables);
            }
            Ok(None) => break,
            Err(error) => return Err(Failure::new(open::explain(&args.file, &error))),
        }
    }
    let size = std::fs::metadata(&args.file).map_or(0, |metadata| metadata.len());
    let stacks = loader.finish();
    facts.unnamed = replay.take_names().and_then(|table| names::unnamed(&stacks, &table));
    let out = BufWriter::new(io::stdout().lock());
    closed_pipe_is_fine(if args.json {
        print_json(&facts, &stacks, replay.state(), size, out)
    } else {
        print_text(&facts, &stacks, replay.state(), size, out)
    })
}

fn dump(args: &FileArgs) -> Result<(), Failure> {
    let mut replay = open::replay(&args.file)?;
    let mut out = BufWriter::new(io::stdout().lock());
    loop {
        let written = match replay.next() {
            Ok(Some(record)) => writeln!(out, "{}", text::line(&record)),
            Ok(None) => break,
            Err(error) => return Err(Failure::new(open::explain(&args.file, &error))),
        };
        if written.is_err() {
            return closed_pipe_is_fine(written);
        }
    }
    closed_pipe_is_fine(out.flush())
}

/// A recording's end, in one word.
pub(crate) fn state_word(state: State) -> &'static str {
    match state {
        State::Finished => "finished",
        State::Aborted => "aborted",
        State::Torn { .. } => "torn",
    }
}

impl Facts {
    fn take(&mut self, record: &Record<'_>) {
        let string = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        match *record {
            Record::Settings(settings) => {
                self.event = string(settings.event);
                self.rate_hz = settings.rate_hz;
                self.stack_size = settings.stack_size_bytes;
                self.kernel_frames = settings.kernel_frames;
                self.start_ns = settings.start_monotonic_ns;
                self.start_realtime_ns = settings.start_realtime_ns;
            }
            Record::Host(host) => {
                self.host = vec![
                    ("architecture", string(host.architecture)),
                    ("kernel", string(host.kernel_release)),
                    ("boot_id", string(host.boot_id)),
                    ("cpu_model", string(host.cpu_model)),
                    ("online_cpus", host.online_cpus.to_string()),
                ];
            }
            Record::Sample(sample) => {
                self.samples += 1;
                self.end_ns = self.end_ns.max(sample.time_ns);
            }
            Record::Lost { time_ns, cpu, events } => {
                self.lost = self.lost.saturating_add(events);
                self.losses.push((time_ns, cpu, events));
            }
            Record::Gap { start_ns, end_ns } => self.gaps.push((start_ns, end_ns)),
            Record::Throttle { throttled, .. } => self.throttles += u64::from(throttled),
            Record::Pause { paused, .. } => self.pauses += u64::from(paused),
            Record::Counter { name, value } => {
                self.counters.insert(string(name), value);
            }
            Record::End { time_ns } => self.end_ns = self.end_ns.max(time_ns),
            _ => {}
        }
    }

    fn duration_ns(&self) -> u64 {
        self.end_ns.saturating_sub(self.start_ns)
    }

    fn truncated_total(&self) -> u64 {
        self.truncated.values().sum()
    }
}

/// The outermost frame of each stack that was met, so that no stack is walked twice.
#[derive(Default)]
struct Outermost {
    epoch: u32,
    known: FxHashMap<StackId, Option<Truncation>>,
    /// The nodes of the stack being walked.
    walked: Vec<StackId>,
}

impl Outermost {
    /// Why a sample's stack ends before its root, if it does.
    fn truncation(&mut self, sample: Sample, tables: &Tables) -> Option<Truncation> {
        if tables.epoch() != self.epoch {
            *self = Self { epoch: tables.epoch(), ..Self::default() };
        }
        let mut outermost = sample.leaf;
        let mut node = sample.callers;
        self.walked.clear();
        let ending = loop {
            if let Some(&known) = self.known.get(&node) {
                break known;
            }
            let Some((frame, parent)) = tables.node(node) else {
                break match tables.frame(outermost) {
                    Some(Frame::Truncated(reason)) => Some(reason),
                    _ => None,
                };
            };
            self.walked.push(node);
            (outermost, node) = (frame, parent);
        };
        self.known.extend(self.walked.iter().map(|&node| (node, ending)));
        ending
    }
}

fn print_json(
    facts: &Facts,
    stacks: &Stacks,
    state: State,
    size: u64,
    mut out: impl Write,
) -> io::Result<()> {
    let host: Map<String, Value> =
        facts.host.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
    let losses: Vec<_> = facts
        .losses
        .iter()
        .map(|(time_ns, cpu, events)| json!({"time_ns": time_ns, "cpu": cpu, "events": events}))
        .collect();
    let gaps: Vec<_> =
        facts.gaps.iter().map(|(start, end)| json!({"start_ns": start, "end_ns": end})).collect();
    let info = json!({
        "samples": facts.samples,
        "lost": facts.lost,
        "truncated": {"total": facts.truncated_total(), "reasons": facts.truncated},
        "duration_ns": facts.duration_ns(),
        "event": facts.event,
        "rate_hz": facts.rate_hz,
        "stack_size_bytes": facts.stack_size,
        "kernel_frames": facts.kernel_frames,
        "bytes": size,
        "state": state_word(state),
        "start_realtime_ns": facts.start_realtime_ns,
        "processes": processes(stacks),
        "threads": stacks.threads.len(),
        "gaps": gaps,
        "unnamed": unnamed_json(facts),
        "health": health::by_image(stacks).iter().map(health_json).collect::<Vec<_>>(),
        "losses": losses,
        "throttles": facts.throttles,
        "pauses": facts.pauses,
        "host": host,
        "counters": facts.counters,
    });
    writeln!(out, "{info:#}")?;
    out.flush()
}

fn health_json(health: &Health) -> Value {
    json!({
        "module": health.module,
        "samples": health.samples,
        "complete": health.complete,
        "stopped": health.stopped,
    })
}

fn unnamed_json(facts: &Facts) -> Value {
    let Some(unnamed) = &facts.unnamed else { return json!({"samples": 0, "modules": []}) };
    let modules: Vec<_> = unnamed
        .modules
        .iter()
        .map(|module| {
            let build_id: String =
                module.build_id.iter().map(|byte| format!("{byte:02x}")).collect();
            json!({
                "module": module.module,
                "samples": module.samples,
                "build_id": build_id,
                "reason": module.reason.words(),
            })
        })
        .collect();
    json!({"samples": unnamed.samples, "modules": modules})
}

fn processes(stacks: &Stacks) -> Vec<Value> {
    stacks
        .processes
        .iter()
        .map(|process| {
            let parent = process.parent.and_then(|parent| stacks.processes.get(parent as usize));
            json!({
                "pid": process.pid,
                "generation": process.generation,
                "comm": String::from_utf8_lossy(&process.comm),
                "command_line": command_line(&process.command_line),
                "parent": parent.map(|parent| parent.pid),
            })
        })
        .collect()
}

fn command_line(arguments: &[u8]) -> String {
    let text = String::from_utf8_lossy(arguments);
    text.trim_end_matches('\0').replace('\0', " ")
}

fn print_text(
    facts: &Facts,
    stacks: &Stacks,
    state: State,
    size: u64,
    mut out: impl Write,
) -> io::Result<()> {
    writeln!(out, "state       {}", state_word(state))?;
    if let Some(note) = open::state_note(state) {
        writeln!(out, "            {note}")?;
    }
    writeln!(out, "samples     {} in {}", facts.samples, duration(facts.duration_ns()))?;
    writeln!(out, "lost        {}", plural(facts.lost, "event"))?;
    writeln!(out, "truncated   {}", plural(facts.truncated_total(), "stack"))?;
    for (reason, count) in &facts.truncated {
        writeln!(out, "            {count} {reason}")?;
    }
    for health in health::by_image(stacks).iter().take(MOST_STOPS) {
        for (reason, count) in &health.stopped {
            let name = printable(&health.module);
            writeln!(out, "            of these {count} in {name}: {reason}")?;
        }
    }
    if let Some(unnamed) = &facts.unnamed {
        let share = percent(unnamed.samples, facts.samples);
        writeln!(out, "unnamed     {share:.1}% of samples")?;
        for module in &unnamed.modules {
            let share = percent(module.samples, facts.samples);
            let name = printable(&module.module);
            writeln!(out, "            {share:.1}% in {name}; {}", who_names(module))?;
        }
    }
    writeln!(out, "gaps        {}", facts.gaps.len())?;
    let kernel = if facts.kernel_frames { "with" } else { "without" };
    writeln!(
        out,
        "settings    {} at {} Hz, {} of stack, {kernel} kernel frames",
        facts.event,
        facts.rate_hz,
        bytes(u64::from(facts.stack_size))
    )?;
    writeln!(out, "file        {}", bytes(size))?;
    for (name, value) in &facts.host {
        writeln!(out, "{name:11} {value}")?;
    }
    writeln!(
        out,
        "processes   {}, {} with samples",
        stacks.processes.len(),
        plural(stacks.threads.len() as u64, "thread")
    )?;
    for process in stacks.processes.iter().take(MOST_PROCESSES) {
        writeln!(
            out,
            "            {} {}  {}",
            process.pid,
            String::from_utf8_lossy(&process.comm),
            command_line(&process.command_line)
        )?;
    }
    if stacks.processes.len() > MOST_PROCESSES {
        writeln!(
            out,
            "            and {} more (--json lists all)",
            stacks.processes.len() - MOST_PROCESSES
        )?;
    }
    out.flush()
}

/// How many images the text lists in which stacks stop.
const MOST_STOPS: usize = 5;

/// How many processes the text lists.
const MOST_PROCESSES: usize = 20;
