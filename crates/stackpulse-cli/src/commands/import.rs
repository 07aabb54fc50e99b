//! `import`: from a recording of perf's to a spool.

use crate::args::ImportArgs;
use crate::failure::Failure;
use crate::output::Output;
use crate::render::progress::Audience;
use crate::render::summary::{print_loss, print_truncation};
use crate::render::{bytes, duration, plural};
use crate::{names, open};
use stackpulse_spool::{Record, RecordSink, WriteError, Writer, WriterOptions, append_symbols};
use stackpulse_track::perf_data::{Facts, FileSource, PerfData, PerfDataError, Statistics};
use stackpulse_track::{Engine, EngineOptions};
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

/// What came of it.
struct Imported {
    facts: Facts,
    read: Statistics,
    counters: Vec<(String, u64)>,
    /// First and last time of an event.
    span_ns: (u64, u64),
    /// Why it ended before the end of the file, if it did.
    damage: Option<PerfDataError>,
}

pub(crate) fn run(args: &ImportArgs) -> Result<(), Failure> {
    let data = open_data(&args.file)?;
    let (output, undo) = Output::create(&args.output)?;
    undo.keep();
    let mut writer = Writer::new(output, WriterOptions::default()).map_err(written)?;
    let imported = import(data, args, &mut writer)?;
    let (output, mut spool_bytes) =
        writer.finish().map_err(|unfinished| written(unfinished.error))?;
    if let Some(mut file) = output.into_file() {
        if !args.no_symbols {
            store_names(args, &mut file)?;
        }
        spool_bytes = file.metadata().map_or(spool_bytes, |metadata| metadata.len());
    }
    if !args.quiet {
        // Standard error may be closed; the spool is complete all the same.
        let _ = tell(args, &imported, spool_bytes, &mut io::stderr().lock());
    }
    Ok(())
}

/// Opens a recording, with one sentence for whatever else the file is.
fn open_data(path: &Path) -> Result<PerfData<File>, Failure> {
    let shown = path.display();
    let path = if path == Path::new("-") { Path::new("/dev/stdin") } else { path };
    let failed = |error: io::Error| {
        Failure::new(match error.kind() {
            io::ErrorKind::NotFound => format!(
                "there is no file {shown}; record one with `perf record --call-graph dwarf -o {shown} -- COMMAND`"
            ),
            _ => format!("open {shown}: {error}"),
        })
    };
    let metadata = std::fs::metadata(path).map_err(failed)?;
    if metadata.is_dir() {
        return Err(Failure::new(format!(
            "{shown} is a directory; recordings of `perf record --threads` cannot be imported, only single files"
        )));
    }
    let file = File::open(path).map_err(failed)?;
    PerfData::open(file).map_err(|error| {
        Failure::new(match error {
            PerfDataError::NotPerfData if metadata.len() == 0 && metadata.is_file() => {
                format!("{shown} is empty: nothing was recorded in it")
            }
            PerfDataError::NotPerfData => {
                format!("{shown} is not a perf.data file; name one that `perf record` wrote")
            }
            error => format!("{shown} cannot be imported: {error}"),
        })
    })
}

fn import(
    mut data: PerfData<File>,
    args: &ImportArgs,
    writer: &mut Writer<Output>,
) -> Result<Imported, Failure> {
    let facts = data.facts().clone();
    let source = FileSource::new(&facts, args.symfs.clone());
    let mut options = EngineOptions::default();
    options.kernel_frames = facts.kernel_frames;
    options.join_cut_stacks = !args.no_join;
    let mut damage = None;
    let mut next = || {
        data.next_event().unwrap_or_else(|error| {
            // What came before the damage is good.
            damage = Some(error);
            None
        })
    };
    let first = next();
    let start_ns = first.as_ref().map_or(0, |event| event.time_ns);
    begin(&facts, start_ns, writer).map_err(written)?;
    let mut engine = Engine::new(source, &mut *writer, options);
    let mut end_ns = start_ns;
    let mut event = first;
    while let Some(current) = event {
        end_ns = current.time_ns;
        engine.handle(current).map_err(written)?;
        engine.tick(end_ns).map_err(written)?;
        event = next();
    }
    engine.finish(end_ns).map_err(written)?;
    let read = data.statistics();
    let mut counters = engine.statistics().counters();
    counters.extend([
        ("events_lost".to_owned(), read.lost),
        ("records_bad".to_owned(), read.bad_records),
        ("skipped.other_event".to_owned(), read.samples_of_other_events),
    ]);
    counters.sort();
    for (name, value) in &counters {
        let counter = Record::Counter { name: name.as_bytes(), value: *value };
        writer.record(&counter).map_err(written)?;
    }
    writer.record(&Record::End { time_ns: end_ns }).map_err(written)?;
    Ok(Imported { facts, read, counters, span_ns: (start_ns, end_ns), damage })
}

/// Writes what the spool says of the recording and the machine.
fn begin(facts: &Facts, start_ns: u64, writer: &mut Writer<Output>) -> Result<(), WriteError> {
    let realtime_ns =
        |(event_ns, wall_ns): (u64, u64)| wall_ns.saturating_add(start_ns).saturating_sub(event_ns);
    writer.record(&Record::Settings(stackpulse_spool::Settings {
        event: facts.event.as_bytes(),
        rate_hz: facts.rate_hz,
        stack_size_bytes: facts.stack_size_bytes,
        kernel_frames: facts.kernel_frames,
        follows_children: facts.follows_children,
        start_monotonic_ns: start_ns,
        start_realtime_ns: facts.clock_pair.map_or(0, realtime_ns),
    }))?;
    let kernel_build_id = facts.build_ids.get(&b"[kernel.kallsyms]"[..]);
    writer.record(&Record::Host(stackpulse_spool::Host {
        architecture: facts.architecture.as_bytes(),
        kernel_release: facts.kernel_release.as_bytes(),
        // perf does not write it down.
        boot_id: b"",
        kernel_build_id: kernel_build_id.map_or(b"", Vec::as_slice),
        cpu_model: facts.cpu_model.as_bytes(),
        online_cpus: facts.online_cpus,
    }))
}

fn written(error: impl std::fmt::Display) -> Failure {
    Failure::new(format!("write the spool: {error}"))
}

fn store_names(args: &ImportArgs, file: &mut File) -> Result<(), Failure> {
    let loaded = open::load(&args.output)?;
    let table =
        names::table(&loaded.stacks, loaded.boot_id, args.symfs.clone(), Audience::Terminal);
    append_symbols(file, &table).map_err(|error| {
        Failure::new(format!(
            "store names in {}: {error}; the samples are complete",
            args.output.display()
        ))
    })
}

/// Says what was imported: samples, duration and file; loss; truncation; what could not be used.
fn tell(
    args: &ImportArgs,
    imported: &Imported,
    spool_bytes: u64,
    out: &mut impl Write,
) -> io::Result<()> {
    let Imported { facts, read, counters, span_ns: (start_ns, end_ns), damage } = imported;
    let counter = |name: &str| {
        counters.iter().find(|(counter, _)| counter == name).map_or(0, |&(_, value)| value)
    };
    let samples = counter("samples_written");
    let rate = if facts.rate_hz > 0 { format!(" at {} Hz", facts.rate_hz) } else { String::new() };
    writeln!(
        out,
        "stackpulse: {} in {} ({}{rate}) from {}, {} ({})",
        plural(samples, "sample"),
        duration(end_ns.saturating_sub(*start_ns)),
        facts.event,
        args.file.display(),
        args.output.display(),
        bytes(spool_bytes),
    )?;
    print_loss(samples, read.lost, out)?;
    print_truncation(samples, counters, out)?;
    let unreadable = counter("images_unreadable");
    if unreadable > 0 {
        writeln!(
            out,
            "  {} not found, or not as recorded; name the directory they lie below with --symfs DIR",
            plural(unreadable, "mapped file")
        )?;
    }
    if read.samples_of_other_events > 0 {
        let others = plural(read.samples_of_other_events, "sample");
        writeln!(out, "  {others} of other events left out: a spool holds one event's")?;
    }
    match damage {
        Some(damage) => writeln!(out, "  damaged: {damage}; what came before is imported")?,
        None if read.is_cut => writeln!(
            out,
            "  the file ends early, as when perf is killed; what was there is imported"
        )?,
        None => {}
    }
    if args.verbose {
        for (name, value) in counters {
            writeln!(out, "  {name}: {value}")?;
        }
    }
    Ok(())
}
