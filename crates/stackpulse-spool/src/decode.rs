//! A block's columns back into records.

mod facts;

use crate::block::column;
use crate::columns::{self, Predictor};
use crate::error::Damage;
use crate::limits;
use crate::preface::Preface;
use crate::record::{
    Frame, FrameId, Host, Image, ImageId, Process, ProcessId, Record, Sample, Settings, StackId,
    StackRun, Thread, ThreadId,
};
use crate::tables::{Counts, Node, Tables};
use crate::tag;
use crate::varint::{self, Cursor};
use zstd::bulk::Decompressor;

/// Reads one block of records after another. Its buffers are used again for each.
pub(crate) struct Decoder {
    /// Made for the first compressed column.
    decompressor: Option<Decompressor<'static>>,
    columns: [Vec<u8>; columns::COUNT],
    /// How far each column has been read.
    at: [usize; columns::COUNT],
    predictor: Predictor,
    counts: Counts,
    wanted: Wanted,
    /// The record last read, if it is a sample.
    sample: Option<Sample>,
    /// The record last read, if it is none; its strings and frames left out: they lie in `strings` and `frames`.
    current: Record<'static>,
    strings: Strings,
    frames: Vec<FrameId>,
}

/// Where the strings of the current record lie, in the order of its fields.
#[derive(Clone, Copy, Debug, Default)]
struct Strings {
    places: [Place; 5],
    len: usize,
}

impl std::fmt::Debug for Decoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Decoder").field("at", &self.at).finish_non_exhaustive()
    }
}

/// What a block is read for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// All its records.
    Everything,
    /// Not its samples: their columns are not even decompressed.
    Definitions,
}

/// What the next tag of a block led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// A record: see [`Decoder::record`].
    Record,
    /// A record that refers to what a damaged block took along.
    LeftOut,
    /// A record of a later version, that may be passed over.
    Skipped,
    /// No record is left.
    End,
}

impl Decoder {
    pub(crate) fn new() -> Self {
        Self {
            decompressor: None,
            columns: [const { Vec::new() }; columns::COUNT],
            at: [0; columns::COUNT],
            predictor: Predictor::new(),
            counts: Counts::default(),
            wanted: Wanted::Everything,
            sample: None,
            current: Record::Epoch,
            strings: Strings::default(),
            frames: Vec::new(),
        }
    }

    /// Takes a block's payload, whose checksum was right; after this, [`step`](Self::step) reads its records.
    pub(crate) fn start(&mut self, payload: &[u8], wanted: Wanted) -> Result<Preface, Damage> {
        let mut cursor = Cursor::new(payload);
        let preface = Preface::decode(&mut cursor)?;
        self.at = [0; columns::COUNT];
        self.predictor.restart(&preface.start);
        self.counts = preface.start.counts;
        let decoded = column::decode(
            &mut cursor,
            &mut self.decompressor,
            &mut self.columns,
            &column::Selection {
                limit: limits::MAX_RECORDS_RAW,
                is_wanted: |column| wanted == Wanted::Everything || !columns::is_of_samples(column),
            },
        );
        self.wanted = wanted;
        if decoded.is_err() {
            self.columns.iter_mut().for_each(Vec::clear);
        }
        decoded.map(|()| preface)
    }

    /// Reads the next record, and defines in `tables` what it defines.
    pub(crate) fn step(&mut self, tables: &mut Tables) -> Result<Step, Damage> {
        let Some(&tag) = self.columns[columns::TAGS].get(self.at[columns::TAGS]) else {
            let whole = self.columns.iter().zip(&self.at).all(|(column, &at)| at == column.len());
            return if whole { Ok(Step::End) } else { Err(Damage::TrailingBytes) };
        };
        self.at[columns::TAGS] += 1;
        if tag == tag::SAMPLE && self.wanted == Wanted::Everything {
            return self.sample(tables);
        }
        self.sample = None;
        self.strings.len = 0;
        match tag {
            tag::SAMPLE => Ok(Step::Skipped),
            tag::FRAME => self.frame(tables),
            tag::STACK => self.run(tables),
            tag::EPOCH => {
                self.counts = Counts::default();
                self.predictor.start_epoch();
                let next = tables.epoch().checked_add(1).ok_or(Damage::OverLimit)?;
                tables.start_epoch(next);
                self.deliver(Record::Epoch)
            }
            tag::IMAGE | tag::PROCESS | tag::THREAD => self.definition(tag, tables),
            tag::SKIPPABLE.. => {
                self.string()?;
                Ok(Step::Skipped)
            }
            _ => self.other(tag, tables),
        }
    }

    /// Returns the record that [`step`](Self::step) read last.
    #[inline]
    pub(crate) fn record(&self) -> Record<'_> {
        if let Some(sample) = self.sample {
            return Record::Sample(sample);
        }
        attach(self.current, &self.frames, |at| self.bytes(self.strings.places[at]))
    }

    /// Whether the last step was at a sample.
    pub(crate) fn is_at_sample(&self) -> bool {
        self.sample.is_some()
    }

    #[expect(clippy::unnecessary_wraps, reason = "reads as the end of every branch")]
    fn deliver(&mut self, record: Record<'static>) -> Result<Step, Damage> {
        self.current = record;
        Ok(Step::Record)
    }

    /// Delivers a record if what it refers to is there.
    fn deliver_if(&mut self, known: bool, record: Record<'static>) -> Result<Step, Damage> {
        self.current = record;
        Ok(if known { Step::Record } else { Step::LeftOut })
    }

    /// Reads from one column with a cursor that goes on where the last one stopped.
    #[inline(always)]
    fn read<'a, T>(
        &'a mut self,
        column: usize,
        read: impl FnOnce(&mut Cursor<'a>) -> Result<T, Damage>,
    ) -> Result<T, Damage> {
        let mut cursor = Cursor::resume(&self.columns[column], self.at[column]);
        let value = read(&mut cursor)?;
        self.at[column] = cursor.position();
        Ok(value)
    }

    /// Reads a number of a sample: these are most of a file, and mostly short.
    #[inline(always)]
    fn sample_number(&mut self, column: usize) -> Result<u64, Damage> {
        let at = self.at[column];
        match self.columns[column].get(at..) {
            Some(&[first, ..]) if first < 0x80 => {
                self.at[column] = at + 1;
                Ok(u64::from(first))
            }
            Some(&[first, second, ..]) if second < 0x80 && second > 0 => {
                self.at[column] = at + 2;
                Ok(u64::from(first & 0x7f) | u64::from(second) << 7)
            }
            Some(&[first, second, third, ..]) if second >= 0x80 && (1..0x80).contains(&third) => {
                self.at[column] = at + 3;
                let low = u64::from(first & 0x7f) | u64::from(second & 0x7f) << 7;
                Ok(low | u64::from(third) << 14)
            }
            _ => self.read(column, Cursor::number),
        }
    }

    fn number(&mut self) -> Result<u64, Damage> {
        self.read(columns::NUMBERS, Cursor::number)
    }

    fn number32(&mut self) -> Result<u32, Damage> {
        self.read(columns::NUMBERS, Cursor::number32)
    }

    fn flag(&mut self) -> Result<bool, Damage> {
        match self.number()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Damage::BadTag),
        }
    }

    fn time(&mut self) -> Result<u64, Damage> {
        let from = self.predictor.time_ns;
        let units = varint::unfold(self.number()?);
        let time_ns = from.wrapping_add((units << self.predictor.time_shift).cast_unsigned());
        self.predictor.time_ns = time_ns;
        Ok(time_ns)
    }

    /// Passes over a string and notes where it lies; what is returned stands for it in the record.
    fn string(&mut self) -> Result<&'static [u8], Damage> {
        let len = usize::try_from(self.number()?).map_err(|_| Damage::OverLimit)?;
        if len > limits::MAX_STRING {
            return Err(Damage::OverLimit);
        }
        let start = self.at[columns::STRINGS];
        self.read(columns::STRINGS, |cursor| cursor.take(len).map(|_| ()))?;
        if let Some(place) = self.strings.places.get_mut(self.strings.len) {
            *place = Place { start, end: start + len };
            self.strings.len += 1;
        }
        Ok(&[])
    }

    fn bytes(&self, place: Place) -> &[u8] {
        self.columns[columns::STRINGS].get(place.start..place.end).unwrap_or_default()
    }

    #[inline(always)]
    fn sample(&mut self, tables: &Tables) -> Result<Step, Damage> {
        let residual = varint::unfold(self.sample_number(columns::TIME)?);
        let cpu =
            u32::try_from(self.sample_number(columns::CPU)?).map_err(|_| Damage::BadNumber)?;
        let state = *self.predictor.cpu(cpu);
        let time_ns = state.time_ns(residual, self.predictor.time_shift);
        let thread = varint::add_difference(state.thread, self.sample_number(columns::THREAD)?);
        let weight = varint::add_difference(state.weight, self.sample_number(columns::WEIGHT)?);
        let leaf = self.sample_number(columns::LEAF)?;
        let leaf = self.predictor.leaf_of(leaf, self.counts.frames);
        let leaf = leaf.ok_or(Damage::ForwardReference)?;
        let callers = match self.sample_number(columns::CALLERS)? {
            0 => *self.predictor.callers(leaf),
            distance => u32::try_from(distance - 1)
                .ok()
                .and_then(|distance| self.counts.nodes.checked_sub(distance))
                .ok_or(Damage::ForwardReference)?,
        };
        *self.predictor.callers(leaf) = callers;
        let thread_id = u32::try_from(thread).map_err(|_| Damage::ForwardReference)?;
        let state = self.predictor.cpu(cpu);
        state.saw(time_ns);
        state.thread = thread;
        state.weight = weight;
        if thread_id >= self.counts.threads
            || leaf >= self.counts.frames
            || callers > self.counts.nodes
        {
            return Err(Damage::ForwardReference);
        }
        let sample = Sample {
            time_ns,
            thread: ThreadId(thread_id),
            cpu,
            weight,
            leaf: FrameId(leaf),
            callers: StackId(callers),
        };
        let known = tables.are_whole()
            || tables.thread(sample.thread).is_some()
                && tables.frame(sample.leaf).is_some()
                && (sample.callers == StackId::EMPTY || tables.node(sample.callers).is_some());
        self.sample = Some(sample);
        Ok(if known { Step::Record } else { Step::LeftOut })
    }

    fn frame(&mut self, tables: &mut Tables) -> Result<Step, Damage> {
        if self.counts.frames >= limits::MAX_FRAMES {
            return Err(Damage::OverLimit);
        }
        let frame = match self.read(columns::FRAME_IMAGE, Cursor::number)? {
            tag::FRAME_JOINED => Frame::Joined,
            tag::FRAME_TRUNCATED => {
                let reason = self.read(columns::FRAME_ADDRESS, Cursor::number)?;
                Frame::Truncated(tag::truncation(reason).ok_or(Damage::BadTag)?)
            }
            code => {
                let image = known(code - tag::FRAME_CODE, self.counts.images)?;
                let last = *self.predictor.address(image);
                let address =
                    self.read(columns::FRAME_ADDRESS, |cursor| cursor.difference(last))?;
                *self.predictor.address(image) = address;
                Frame::Code { image: ImageId(image), address }
            }
        };
        self.counts.frames += 1;
        if let Frame::Code { image, .. } = frame
            && tables.image(image).is_none()
        {
            tables.skip_to(&self.counts);
            return self.deliver_if(false, Record::Frame(frame));
        }
        tables.define_frame(frame);
        self.deliver(Record::Frame(frame))
    }

    fn run(&mut self, tables: &mut Tables) -> Result<Step, Damage> {
        let distance = self.read(columns::RUN, Cursor::number32)?;
        let len = self.read(columns::RUN, Cursor::number32)?;
        let parent = self.counts.nodes.checked_sub(distance).ok_or(Damage::ForwardReference)?;
        if len == 0 {
            return Err(Damage::BadRecord);
        }
        if len as usize > limits::MAX_RUN || len > limits::MAX_NODES - self.counts.nodes {
            return Err(Damage::OverLimit);
        }
        self.frames.clear();
        for _ in 0..len {
            let code = self.read(columns::RUN_FRAMES, Cursor::number)?;
            let frame = self.predictor.frame_of_run(code);
            let frame = frame.filter(|&frame| frame < self.counts.frames);
            self.frames.push(FrameId(frame.ok_or(Damage::ForwardReference)?));
        }
        self.counts.nodes += len;
        let parent = StackId(parent);
        let known = (parent == StackId::EMPTY || tables.node(parent).is_some())
            && self.frames.iter().all(|&frame| tables.frame(frame).is_some());
        let record = Record::Stack(StackRun { parent, frames: &[] });
        if !known {
            tables.skip_to(&self.counts);
            return self.deliver_if(false, record);
        }
        let mut at = parent;
        for &frame in &self.frames {
            at = tables.define_node(Node { parent: at, frame });
        }
        self.deliver(record)
    }

    fn definition(&mut self, tag: u8, tables: &mut Tables) -> Result<Step, Damage> {
        match tag {
            tag::IMAGE => {
                let image = self.image()?;
                if self.counts.images >= limits::MAX_IMAGES {
                    return Err(Damage::OverLimit);
                }
                self.counts.images += 1;
                self.current = Record::Image(image);
                if let Record::Image(image) = self.record() {
                    tables.define_image(&image);
                }
                Ok(Step::Record)
            }
            tag::PROCESS => {
                let process = self.process(tables)?;
                self.counts.processes += 1;
                tables.define_process(process);
                self.deliver(Record::Process(process))
            }
            _ => {
                let time_ns = self.time()?;
                let process = self.process_ago()?;
                let thread = Thread { process, tid: self.number32()?, time_ns };
                if self.counts.threads >= limits::MAX_THREADS {
                    return Err(Damage::OverLimit);
                }
                self.counts.threads += 1;
                if tables.process(process).is_none() {
                    tables.skip_to(&self.counts);
                    return self.deliver_if(false, Record::Thread(thread));
                }
                tables.define_thread(thread);
                self.deliver(Record::Thread(thread))
            }
        }
    }

    fn image(&mut self) -> Result<Image<'static>, Damage> {
        Ok(Image {
            kind: tag::image_kind(self.number()?).ok_or(Damage::BadTag)?,
            path: self.string()?,
            build_id: self.string()?,
            device: (self.number32()?, self.number32()?),
            inode: self.number()?,
            file_size: self.number()?,
            modified_ns: self.number()?,
        })
    }

    fn process(&mut self, tables: &Tables) -> Result<Process, Damage> {
        let time_ns = self.time()?;
        let pid = self.number32()?;
        let generation = self.number32()?;
        let parent = match self.number32()? {
            0 => None,
            ago => {
                let parent =
                    self.counts.processes.checked_sub(ago).ok_or(Damage::ForwardReference)?;
                // A parent that a damaged block took along is not known any more.
                Some(ProcessId(parent)).filter(|&parent| tables.process(parent).is_some())
            }
        };
        if self.counts.processes >= limits::MAX_PROCESSES {
            return Err(Damage::OverLimit);
        }
        Ok(Process { pid, generation, parent, time_ns })
    }

    fn process_ago(&mut self) -> Result<ProcessId, Damage> {
        let ago = self.number()?;
        from_newest(self.counts.processes, ago).map(ProcessId)
    }
}

/// A number below `count` as an id.
fn known(id: u64, count: u32) -> Result<u32, Damage> {
    u32::try_from(id).ok().filter(|&id| id < count).ok_or(Damage::ForwardReference)
}

/// The id that was defined `ago` definitions before the newest.
fn from_newest(count: u32, ago: u64) -> Result<u32, Damage> {
    let ago = u32::try_from(ago).ok().and_then(|ago| ago.checked_add(1));
    ago.and_then(|ago| count.checked_sub(ago)).ok_or(Damage::ForwardReference)
}

/// Where a string lies in its column.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    start: usize,
    end: usize,
}

/// Puts strings and frames back into a record that was decoded without them.
fn attach<'a>(
    record: Record<'static>,
    frames: &'a [FrameId],
    string: impl Fn(usize) -> &'a [u8],
) -> Record<'a> {
    match record {
        Record::Settings(settings) => Record::Settings(Settings { event: string(0), ..settings }),
        Record::Host(host) => Record::Host(Host {
            architecture: string(0),
            kernel_release: string(1),
            boot_id: string(2),
            kernel_build_id: string(3),
            cpu_model: string(4),
            ..host
        }),
        Record::Image(image) => {
            Record::Image(Image { path: string(0), build_id: string(1), ..image })
        }
        Record::Stack(run) => Record::Stack(StackRun { frames, ..run }),
        Record::Comm { process, time_ns, .. } => Record::Comm { process, time_ns, comm: string(0) },
        Record::CommandLine { process, time_ns, .. } => {
            Record::CommandLine { process, time_ns, arguments: string(0) }
        }
        Record::ThreadName { thread, time_ns, .. } => {
            Record::ThreadName { thread, time_ns, name: string(0) }
        }
        Record::GeneratedName { image, time_ns, address, size, .. } => {
            Record::GeneratedName { image, time_ns, address, size, name: string(0) }
        }
        Record::Symbol { image, address, size, .. } => {
            Record::Symbol { image, address, size, name: string(0) }
        }
        Record::Annotation { process, time_ns, .. } => {
            Record::Annotation { process, time_ns, key: string(0), value: string(1) }
        }
        Record::Counter { value, .. } => Record::Counter { name: string(0), value },
        other => other,
    }
}
