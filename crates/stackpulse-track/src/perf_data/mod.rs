//! `perf.data` files: the engine's events and world, read from what `perf record --call-graph dwarf` wrote.
//!
//! [`PerfData`] yields the [`Event`]s of a file or stream, in the order of time; compressed ones (`-z`) too. [`FileSource`]
//! answers the engine's questions from files on this machine, or below a directory that holds those of another.

mod bytes;
mod events;
mod framing;
mod header;
mod inflate;
mod lifecycles;
mod order;
mod source;

pub use source::FileSource;

use events::Translator;
use framing::{Framed, Framing, Next};
use header::Header;
use inflate::Inflated;
use lifecycles::{Fate, Lifecycles};
use order::Rounds;
use stackpulse_perf::regs::Arch;
use stackpulse_perf::{Event, EventKind};
use std::collections::{HashMap, VecDeque};
use std::io::{self, Read, Seek};
use thiserror::Error;

/// So many bytes of records may wait for the end of a round that never comes.
const MAX_WAITING_BYTES: usize = 256 << 20;

/// Records that perf itself writes (`enum perf_user_event_type`).
mod user_record {
    pub(super) const FIRST: u32 = 64;
    pub(super) const HEADER_ATTR: u32 = 64;
    pub(super) const TRACING_DATA: u32 = 66;
    pub(super) const BUILD_ID: u32 = 67;
    pub(super) const FINISHED_ROUND: u32 = 68;
    pub(super) const AUXTRACE: u32 = 71;
    pub(super) const HEADER_FEATURE: u32 = 80;
    pub(super) const COMPRESSED: u32 = 81;
    pub(super) const COMPRESSED2: u32 = 83;
}

/// Why a file cannot be read as a recording.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PerfDataError {
    /// Reading failed.
    #[error("it cannot be read: {0}")]
    Io(#[from] io::Error),
    /// It does not begin as a `perf.data` file does.
    #[error("it is not a perf.data file")]
    NotPerfData,
    /// It comes from a machine of the other byte order.
    #[error("it was recorded on a big-endian machine, which is not supported")]
    BigEndian,
    /// A part that nothing can be read without does not make sense.
    #[error("its {0} is damaged")]
    Damaged(&'static str),
    /// Registers of this machine are not known.
    #[error("it was recorded on {0:?}; x86_64 and aarch64 are supported")]
    Architecture(String),
    /// There are no stacks to unwind.
    #[error(
        "its event {0} carries no user registers and stacks; record with `perf record --call-graph dwarf`"
    )]
    NoStacks(String),
    /// Several events whose records cannot be told apart.
    #[error("its records do not say which of several events they are of")]
    NoIdentifier,
}

/// What a file says of the recording and the machine; empty or zero where it does not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Facts {
    /// The event whose samples are read.
    pub event: String,
    /// Samples per second asked for; zero if a period was.
    pub rate_hz: u32,
    /// Bytes of user stack asked for with each sample.
    pub stack_size_bytes: u32,
    /// Whether kernel frames were recorded.
    pub kernel_frames: bool,
    /// Whether children were followed.
    pub follows_children: bool,
    /// As `uname -m` names it.
    pub architecture: String,
    /// `uname -r`.
    pub kernel_release: String,
    /// The processor's model name.
    pub cpu_model: String,
    /// Online CPUs.
    pub online_cpus: u32,
    /// One moment on the events' clock and as nanoseconds since 1970 UTC.
    pub clock_pair: Option<(u64, u64)>,
    /// Build ids by path.
    pub build_ids: HashMap<Vec<u8>, Vec<u8>>,
}

impl Facts {
    /// Whose registers the samples carry; a file that does not say so is taken for one of this machine.
    pub(crate) fn arch(&self) -> Option<Arch> {
        match self.architecture.as_str() {
            "x86_64" | "amd64" => Some(Arch::X86_64),
            "aarch64" | "arm64" => Some(Arch::Aarch64),
            "" => Arch::native(),
            _ => None,
        }
    }
}

/// What was met while reading.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Statistics {
    /// Events the kernel dropped.
    pub lost: u64,
    /// Records that do not hold what they must.
    pub bad_records: u64,
    /// Samples of other events than the one that is read.
    pub samples_of_other_events: u64,
    /// Whether the file ends in the middle, as when perf was killed.
    pub is_cut: bool,
}

/// Reads a recording of perf's.
///
/// ```no_run
/// use stackpulse_track::perf_data::{FileSource, PerfData};
/// use stackpulse_track::{Engine, EngineOptions};
/// # fn convert(mut writer: impl stackpulse_spool::RecordSink<Error = std::io::Error>)
/// # -> Result<(), Box<dyn std::error::Error>> {
/// let mut data = PerfData::open(std::fs::File::open("perf.data")?)?;
/// let source = FileSource::new(data.facts(), None);
/// let mut options = EngineOptions::default();
/// options.kernel_frames = data.facts().kernel_frames;
/// let mut engine = Engine::new(source, &mut writer, options);
/// while let Some(event) = data.next_event()? {
///     engine.handle(event)?;
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct PerfData<R> {
    input: R,
    /// How many bytes of records are left in a file; a stream goes on to its end.
    left_bytes: Option<u64>,
    framing: Framing,
    inflated: Option<Inflated>,
    /// Whether there are records left in the compressed one read last.
    is_inflating: bool,
    /// Bytes that are no records.
    skip_bytes: u64,
    header: Header,
    translator: Option<Translator>,
    rounds: Rounds<Event>,
    waiting_bytes: usize,
    lifecycles: Lifecycles,
    /// Events in order: those without a time wait here for the first that has one.
    ready: VecDeque<Event>,
    last_ns: u64,
    has_ended: bool,
    statistics: Statistics,
}

impl<R: Read + Seek> PerfData<R> {
    /// Reads the beginning: of a file, or of a stream that `perf record -o -` wrote, for which `input` is never asked to seek.
    ///
    /// # Errors
    ///
    /// When it is no recording that can be unwound.
    pub fn open(mut input: R) -> Result<Self, PerfDataError> {
        let header = Header::read(&mut input)?;
        let statistics = Statistics { is_cut: header.is_cut, ..Statistics::default() };
        let mut data = Self {
            input,
            left_bytes: header.data_bytes,
            framing: Framing::new(),
            inflated: None,
            is_inflating: false,
            skip_bytes: 0,
            header,
            translator: None,
            rounds: Rounds::new(),
            waiting_bytes: 0,
            lifecycles: Lifecycles::default(),
            ready: VecDeque::new(),
            last_ns: 0,
            has_ended: false,
            statistics,
        };
        // What a stream says of itself comes before its first record of the kernel's.
        while data.translator.is_none() && !data.has_ended {
            data.read_record()?;
        }
        if data.translator.is_none() {
            data.translate()?;
        }
        Ok(data)
    }

    /// Returns what the file says of itself.
    pub fn facts(&self) -> &Facts {
        &self.header.facts
    }

    /// Returns what was met so far.
    pub fn statistics(&self) -> Statistics {
        self.statistics
    }

    /// Returns the next event, in the order of time; `None` after the last. A file that ends early ends here early.
    ///
    /// # Errors
    ///
    /// When the file cannot be read on, or is damaged so that its next record cannot be found.
    pub fn next_event(&mut self) -> Result<Option<Event>, PerfDataError> {
        loop {
            // Without a time, an event was before all others: it gets the time of the first that has one.
            if self.last_ns > 0
                && let Some(event) = self.ready.pop_front()
            {
                return Ok(Some(Event { time_ns: event.time_ns.max(self.last_ns), ..event }));
            }
            match self.rounds.pop() {
                Some((time_ns, event)) => {
                    self.waiting_bytes = self.waiting_bytes.saturating_sub(weight(&event));
                    self.last_ns = self.last_ns.max(time_ns);
                    self.follow(event);
                }
                None if self.has_ended => return Ok(self.ready.pop_front()),
                None => self.read_record()?,
            }
        }
    }

    fn follow(&mut self, event: Event) {
        let Event { time_ns, cpu, .. } = event;
        match self.lifecycles.follow(&event) {
            Fate::Dropped => {}
            Fate::Kept => self.ready.push_back(event),
            Fate::LastOf(pid) => {
                self.ready.push_back(event);
                self.ready.push_back(Event { time_ns, cpu, kind: EventKind::ProcessExit { pid } });
            }
        }
    }

    /// Chooses what to read by what the header says.
    fn translate(&mut self) -> Result<(), PerfDataError> {
        let translator = Translator::new(&self.header)?;
        self.header.tell_facts(translator.chosen());
        self.translator = Some(translator);
        Ok(())
    }

    /// Reads one record and takes it in.
    fn read_record(&mut self) -> Result<(), PerfDataError> {
        if self.is_inflating
            && let Some(inflated) = &mut self.inflated
        {
            match inflated.next() {
                Ok(Next::Record(record)) => return self.take(&record),
                Ok(Next::End { .. }) => self.is_inflating = false,
                Ok(Next::Damaged) | Err(_) => {
                    return Err(PerfDataError::Damaged("compressed data"));
                }
            }
        }
        self.skip_bytes = self.framing.skip(self.skip_bytes);
        let Self { framing, input, left_bytes, skip_bytes, .. } = self;
        let next = framing.next(&mut |into: &mut [u8]| {
            while *skip_bytes > 0 {
                let len = usize::try_from(*skip_bytes).unwrap_or(usize::MAX).min(into.len());
                let read = read_some(input, left_bytes, &mut into[..len])?;
                if read == 0 {
                    return Ok(0);
                }
                *skip_bytes -= read as u64;
            }
            read_some(input, left_bytes, into)
        })?;
        match next {
            Next::Record(record) => self.take(&record),
            Next::Damaged => Err(PerfDataError::Damaged("sequence of records")),
            Next::End { left_over } => {
                self.statistics.is_cut |=
                    left_over > 0 || self.left_bytes.is_some_and(|left| left > 0);
                self.rounds.end();
                self.has_ended = true;
                Ok(())
            }
        }
    }

    fn take(&mut self, record: &Framed) -> Result<(), PerfDataError> {
        let number =
            |at: usize| record.body().get(at..)?.first_chunk().copied().map(u64::from_le_bytes);
        match record.kind {
            user_record::HEADER_ATTR => self.header.attribute_record(record.body()),
            user_record::HEADER_FEATURE => self.header.feature_record(record.body()),
            user_record::BUILD_ID => self.header.build_id_record(record.misc(), record.body()),
            user_record::FINISHED_ROUND => self.rounds.end_round(),
            // These two are followed by data that is not counted in the record's size.
            user_record::AUXTRACE => self.skip_bytes = number(0).unwrap_or_default(),
            user_record::TRACING_DATA => {
                let size = number(0).unwrap_or_default() & u64::from(u32::MAX);
                self.skip_bytes = size.next_multiple_of(8);
            }
            user_record::COMPRESSED => self.inflate(record.body())?,
            user_record::COMPRESSED2 => {
                let body = record.body();
                let len = number(0).and_then(|len| usize::try_from(len).ok());
                let compressed = len.and_then(|len| body.get(8..len.checked_add(8)?));
                self.inflate(compressed.ok_or(PerfDataError::Damaged("compressed data"))?)?;
            }
            kind if kind < user_record::FIRST => self.take_event(record)?,
            _ => {}
        }
        Ok(())
    }

    fn take_event(&mut self, record: &Framed) -> Result<(), PerfDataError> {
        if self.translator.is_none() {
            self.translate()?;
        }
        let Some(translator) = &self.translator else { return Ok(()) };
        let Some(event) = translator.event(record, &mut self.statistics) else { return Ok(()) };
        self.waiting_bytes = self.waiting_bytes.saturating_add(weight(&event));
        self.rounds.push(event.time_ns, event);
        if self.waiting_bytes > MAX_WAITING_BYTES {
            self.rounds.end();
        }
        Ok(())
    }

    fn inflate(&mut self, compressed: &[u8]) -> Result<(), PerfDataError> {
        let inflated = match &mut self.inflated {
            Some(inflated) => inflated,
            none => none.insert(Inflated::new()?),
        };
        inflated.push(compressed);
        self.is_inflating = true;
        Ok(())
    }
}

/// What an event keeps in memory while it waits, about.
fn weight(event: &Event) -> usize {
    let bulk = match &event.kind {
        EventKind::Sample(sample) => sample.user_stack().len(),
        _ => 0,
    };
    bulk + 512
}

fn read_some(
    input: &mut impl Read,
    left_bytes: &mut Option<u64>,
    into: &mut [u8],
) -> io::Result<usize> {
    let len = left_bytes
        .map_or(into.len(), |left| usize::try_from(left).unwrap_or(usize::MAX).min(into.len()));
    loop {
        match input.read(&mut into[..len]) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Ok(read) => {
                if let Some(left) = left_bytes {
                    *left -= read as u64;
                }
                return Ok(read);
            }
            Err(error) => return Err(error),
        }
    }
}
