//! Opening a spool, with a clear sentence for whatever else the file is.

use crate::args::SelectArgs;
use crate::failure::Failure;
use crate::render::plural;
use crate::render::summary::why_none;
use crate::{names, select};
use rustc_hash::FxHashMap;
use stackpulse_export::{Loader, Profile, Stacks};
use stackpulse_spool::{ReadError, Record, Replay, State, SymbolTable};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// A spool brought together.
pub(crate) struct Loaded {
    pub(crate) stacks: Stacks,
    /// Names stored in it.
    pub(crate) symbols: Option<SymbolTable>,
    /// The boot it was recorded in.
    pub(crate) boot_id: Vec<u8>,
    /// What is to be known before believing it: one sentence each.
    pub(crate) notes: Vec<String>,
    /// Counters, length and rate, which tell why there may be no samples.
    made: Made,
}

/// How a recording went.
#[derive(Debug, Default)]
struct Made {
    counters: FxHashMap<String, u64>,
    start_ns: u64,
    end_ns: u64,
    rate_hz: u32,
}

/// The samples of a spool that were asked for, with names.
pub(crate) struct Opened {
    pub(crate) profile: Profile,
    /// What is to be known before believing it: one sentence each.
    pub(crate) notes: Vec<String>,
    made: Made,
}

impl Opened {
    /// Why there are no samples.
    pub(crate) fn why_none(&self) -> String {
        let left_out = self.profile.stacks.left_out;
        if left_out > 0 {
            return format!("none of {left_out} passes the filters");
        }
        if !self.notes.is_empty() {
            return "none could be read, or none had been published".to_owned();
        }
        let counter = |name: &str| self.made.counters.get(name).copied().unwrap_or_default();
        why_none(counter, self.made.end_ns.saturating_sub(self.made.start_ns), self.made.rate_hz)
    }
}

/// Opens a spool for one pass.
pub(crate) fn replay(path: &Path) -> Result<Replay<File>, Failure> {
    let shown = path.display();
    // Opening a FIFO would wait for its writer.
    let is_special =
        std::fs::metadata(path).is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir());
    if is_special {
        return Err(Failure::new(format!(
            "{shown} is no regular file; name a file that `stackpulse record` wrote"
        )));
    }
    let file = File::open(path).map_err(|error| {
        Failure::new(match error.kind() {
            std::io::ErrorKind::NotFound => {
                format!("there is no file {shown}; record one with `stackpulse record -o {shown} -- COMMAND`")
            }
            _ => format!("open {shown}: {error}"),
        })
    })?;
    let metadata =
        file.metadata().map_err(|error| Failure::new(format!("inspect {shown}: {error}")))?;
    if metadata.is_dir() {
        return Err(Failure::new(format!(
            "{shown} is a directory, not a spool; name the file in it"
        )));
    }
    Replay::open(file).map_err(|error| Failure::new(explain(path, &error)))
}

/// One sentence on why a file is no spool that can be read, and what to do.
pub(crate) fn explain(path: &Path, error: &ReadError) -> String {
    let shown = path.display();
    match error {
        ReadError::Empty => {
            format!(
                "{shown} is empty: the recording was not started, or its disk was full; record again"
            )
        }
        ReadError::NotASpool { .. } => format!("{shown} is not a spool: it is {}", kind_of(path)),
        ReadError::NewerVersion { found, supported } => format!(
            "{shown} was written by a newer stackpulse (format {found}, this one reads up to {supported}); update this one"
        ),
        ReadError::TextMode => {
            format!("{shown} was damaged by a transfer in text mode; copy it again in binary mode")
        }
        ReadError::DamagedHeader => {
            format!(
                "{shown} is damaged in its first bytes, so nothing of it can be trusted; copy it again"
            )
        }
        other => format!("{shown}: {other}"),
    }
}

/// What a file that is no spool looks like, by its first bytes, and what to do with it.
fn kind_of(path: &Path) -> &'static str {
    let mut first = [0; 16];
    let read = File::open(path).and_then(|mut file| file.read(&mut first)).unwrap_or_default();
    match &first[..read] {
        [0x7f, b'E', b'L', b'F', ..] => {
            "an ELF file; to record that program use `stackpulse record -- PROGRAM`"
        }
        first if first.starts_with(b"PERFILE2") || first.starts_with(b"2ELIFREP") => {
            "a perf.data file; `stackpulse import` makes a spool of it"
        }
        [0x1f, 0x8b, ..] => "gzip data; if it holds a spool, unpack it first with gunzip",
        [0x28, 0xb5, 0x2f, 0xfd, ..] => {
            "zstd data; if it holds a spool, unpack it first with unzstd"
        }
        [b'{' | b'[', ..] => "a JSON file, such as another profiler's output",
        _ => "of a kind that is not known here; name a file that `stackpulse record` wrote",
    }
}

/// Reads a whole spool.
pub(crate) fn load(path: &Path) -> Result<Loaded, Failure> {
    load_with(path, Loader::default())
}

/// Reads the samples of a spool that were asked for, and names them.
pub(crate) fn profile(path: &Path, args: &SelectArgs) -> Result<Opened, Failure> {
    named(path, args, Loader::with_filter(select::sample_filter(path, args)?))
}

/// As [`profile`], with the time of each sample.
pub(crate) fn profile_over_time(path: &Path, args: &SelectArgs) -> Result<Opened, Failure> {
    named(path, args, Loader::with_filter(select::sample_filter(path, args)?).keep_times())
}

fn named(path: &Path, args: &SelectArgs, loader: Loader) -> Result<Opened, Failure> {
    let loaded = load_with(path, loader)?;
    let mut profile =
        names::resolve(loaded.stacks, loaded.symbols.as_ref(), loaded.boot_id, &args.symbols);
    profile.keep(&select::name_filter(args));
    Ok(Opened { profile, notes: loaded.notes, made: loaded.made })
}

fn load_with(path: &Path, mut loader: Loader) -> Result<Loaded, Failure> {
    let mut replay = replay(path)?;
    let mut boot_id = Vec::new();
    let mut made = Made::default();
    let mut lost = 0u64;
    loop {
        match replay.next_with_tables() {
            Ok(None) => break,
            Ok(Some((record, tables))) => {
                match record {
                    Record::Host(host) => boot_id = host.boot_id.to_vec(),
                    Record::Lost { events, .. } => lost = lost.saturating_add(events),
                    Record::Settings(settings) => {
                        (made.start_ns, made.rate_hz) =
                            (settings.start_monotonic_ns, settings.rate_hz);
                    }
                    Record::Counter { name, value } => {
                        made.counters.insert(String::from_utf8_lossy(name).into_owned(), value);
                    }
                    Record::End { time_ns } => made.end_ns = time_ns,
                    _ => {}
                }
                loader.take(&record, tables);
            }
            Err(error) => return Err(Failure::new(explain(path, &error))),
        }
    }
    let mut notes = Vec::new();
    if lost > 0 {
        notes.push(format!(
            "{} lost while recording; what is shown is a part",
            plural(lost, "event")
        ));
    }
    notes.extend(state_note(replay.state()));
    if !replay.damage().is_empty() {
        let blocks = replay.damage().len() as u64;
        notes.push(format!(
            "{} could not be read (see `stackpulse verify`); the rest is shown",
            plural(blocks, "damaged block")
        ));
    }
    Ok(Loaded { stacks: loader.finish(), symbols: replay.take_names(), boot_id, notes, made })
}

/// When the kernel dropped the first and the last events, if it did: since the recording's start.
pub(crate) fn lost_span_ns(path: &Path) -> Result<Option<(u64, u64)>, Failure> {
    let mut replay = replay(path)?;
    let (mut start_ns, mut span) = (0, None::<(u64, u64)>);
    loop {
        match replay.next() {
            Ok(Some(Record::Settings(settings))) => start_ns = settings.start_monotonic_ns,
            Ok(Some(Record::Lost { time_ns, .. })) => {
                let after = time_ns.saturating_sub(start_ns);
                let (first, last) = span.unwrap_or((after, after));
                span = Some((first.min(after), last.max(after)));
            }
            Ok(Some(_)) => {}
            Ok(None) => return Ok(span),
            Err(error) => return Err(Failure::new(explain(path, &error))),
        }
    }
}

/// What to say of a spool that did not end as it should.
pub(crate) fn state_note(state: State) -> Option<String> {
    match state {
        State::Finished => None,
        State::Aborted => Some("the recording ended early, by a failure".to_owned()),
        State::Torn { .. } => Some(
            "the recording has no end: it still runs, or was killed; everything published is shown"
                .to_owned(),
        ),
    }
}
