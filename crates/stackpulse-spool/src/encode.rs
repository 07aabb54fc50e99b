//! Records into the columns of a block that is being filled.

use crate::columns::{self, Predictor};
use crate::error::Damage;
use crate::limits;
use crate::record::{Frame, Image, Mapping, Process, Record, Sample, Settings, StackRun, Thread};
use crate::record::{Host, ImageId, ProcessId, ThreadId};
use crate::tables::Counts;
use crate::tag;
use crate::varint;

/// A block of records being filled: takes a record at a time, and checks that it only refers to what was defined.
#[derive(Debug)]
pub(crate) struct Encoder {
    columns: [Vec<u8>; columns::COUNT],
    predictor: Predictor,
    epoch: u32,
    counts: Counts,
    time_shift: u32,
    start: Start,
    records: u64,
    samples: u64,
    /// Earliest and latest time of the block's records; the wrong way round while none has one.
    times: (u64, u64),
}

/// Before any record with a time.
const NO_TIMES: (u64, u64) = (u64::MAX, 0);

/// What the block's preface says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Start {
    pub(crate) epoch: u32,
    pub(crate) counts: Counts,
    pub(crate) base_ns: u64,
    /// The time between samples of one CPU; zero: not known.
    pub(crate) interval_ns: u64,
    /// Times are told in units of 2^shift nanoseconds.
    pub(crate) time_shift: u32,
}

impl Encoder {
    /// Times are rounded down to multiples of 2^`time_shift` nanoseconds.
    pub(crate) fn new(time_shift: u32) -> Self {
        Self {
            columns: [const { Vec::new() }; columns::COUNT],
            predictor: Predictor::new(),
            epoch: 0,
            counts: Counts::default(),
            time_shift,
            start: Start::default(),
            records: 0,
            samples: 0,
            times: NO_TIMES,
        }
    }

    pub(crate) fn epoch(&self) -> u32 {
        self.epoch
    }

    pub(crate) fn start(&self) -> Start {
        self.start
    }

    pub(crate) fn columns(&self) -> &[Vec<u8>] {
        &self.columns
    }

    pub(crate) fn samples(&self) -> u64 {
        self.samples
    }

    pub(crate) fn records(&self) -> u64 {
        self.records
    }

    pub(crate) fn times(&self) -> Option<(u64, u64)> {
        (self.times.0 <= self.times.1).then_some(self.times)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.records == 0
    }

    /// Bytes in the columns.
    pub(crate) fn len(&self) -> usize {
        self.columns.iter().map(Vec::len).sum()
    }

    /// Empties the columns for the next block.
    pub(crate) fn restart(&mut self) {
        self.columns.iter_mut().for_each(Vec::clear);
        self.records = 0;
        self.samples = 0;
        self.times = NO_TIMES;
    }

    /// Takes one record; one that breaks a rule changes nothing.
    pub(crate) fn encode(&mut self, record: &Record<'_>) -> Result<(), Damage> {
        if let Record::Sample(sample) = record {
            self.check_sample(sample)?;
            let time_ns = self.rounded(sample.time_ns);
            self.begin(time_ns);
            self.see(time_ns);
            self.sample(time_ns, sample);
            return Ok(());
        }
        self.check(record)?;
        let time_ns = time_of(record).map(|time_ns| self.rounded(time_ns));
        self.begin(time_ns.unwrap_or(self.predictor.time_ns));
        if let Some(time_ns) = time_ns {
            self.see(time_ns);
        }
        match record {
            Record::Frame(frame) => self.frame(*frame),
            Record::Stack(run) => self.run(run),
            _ => self.other(record),
        }
        Ok(())
    }

    #[inline(always)]
    fn rounded(&self, time_ns: u64) -> u64 {
        time_ns >> self.time_shift << self.time_shift
    }

    /// Begins a block with its first record.
    #[inline]
    fn begin(&mut self, base_ns: u64) {
        if self.records == 0 {
            let interval_ns = self.predictor.latest_interval_ns();
            let &mut Self { epoch, counts, time_shift, .. } = self;
            self.start = Start { epoch, counts, base_ns, interval_ns, time_shift };
            self.predictor.restart(&self.start);
        }
        self.records += 1;
    }

    #[inline]
    fn see(&mut self, time_ns: u64) {
        self.times = (self.times.0.min(time_ns), self.times.1.max(time_ns));
    }

    fn put(&mut self, column: usize, value: u64) {
        varint::put(&mut self.columns[column], value);
    }

    fn tag(&mut self, tag: u8) {
        self.columns[columns::TAGS].push(tag);
    }

    fn number(&mut self, value: u64) {
        self.put(columns::NUMBERS, value);
    }

    fn string(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.columns[columns::STRINGS].extend_from_slice(bytes);
    }

    fn time(&mut self, time_ns: u64) {
        let time_ns = self.rounded(time_ns);
        let distance = time_ns.wrapping_sub(self.predictor.time_ns).cast_signed();
        self.number(varint::fold(distance >> self.time_shift));
        self.predictor.time_ns = time_ns;
    }

    fn sample(&mut self, time_ns: u64, sample: &Sample) {
        self.samples += 1;
        self.columns[columns::TAGS].push(tag::SAMPLE);
        let newest = self.counts.nodes;
        let leaf = self.predictor.leaf(sample.leaf.0, self.counts.frames);
        varint::put(&mut self.columns[columns::LEAF], leaf);
        let state = self.predictor.cpu(sample.cpu);
        let residual = state.residual(time_ns, self.time_shift);
        varint::put(&mut self.columns[columns::TIME], varint::fold(residual));
        let thread = u64::from(sample.thread.0);
        varint::put_difference(&mut self.columns[columns::THREAD], thread, state.thread);
        varint::put(&mut self.columns[columns::CPU], u64::from(sample.cpu));
        varint::put_difference(&mut self.columns[columns::WEIGHT], sample.weight, state.weight);
        state.saw(time_ns);
        state.thread = thread;
        state.weight = sample.weight;
        let expected = self.predictor.callers(sample.leaf.0);
        let callers = if sample.callers.0 == *expected {
            0
        } else {
            1 + u64::from(newest - sample.callers.0)
        };
        *expected = sample.callers.0;
        varint::put(&mut self.columns[columns::CALLERS], callers);
    }

    fn frame(&mut self, frame: Frame) {
        self.tag(tag::FRAME);
        self.counts.frames += 1;
        match frame {
            Frame::Joined => self.put(columns::FRAME_IMAGE, tag::FRAME_JOINED),
            Frame::Truncated(reason) => {
                self.put(columns::FRAME_IMAGE, tag::FRAME_TRUNCATED);
                let reason = tag::truncation_number(reason).unwrap_or_default();
                self.put(columns::FRAME_ADDRESS, u64::from(reason));
            }
            Frame::Code { image, address } => {
                self.put(columns::FRAME_IMAGE, tag::FRAME_CODE + u64::from(image.0));
                let last = self.predictor.address(image.0);
                varint::put_difference(&mut self.columns[columns::FRAME_ADDRESS], address, *last);
                *last = address;
            }
        }
    }

    fn run(&mut self, run: &StackRun<'_>) {
        self.tag(tag::STACK);
        self.put(columns::RUN, u64::from(self.counts.nodes - run.parent.0));
        self.put(columns::RUN, run.frames.len() as u64);
        for frame in run.frames {
            let code = self.predictor.frame_in_run(frame.0);
            varint::put(&mut self.columns[columns::RUN_FRAMES], code);
        }
        self.counts.nodes += u32::try_from(run.frames.len()).expect("checked against MAX_RUN");
    }

    fn other(&mut self, record: &Record<'_>) {
        match *record {
            Record::Epoch => {
                self.tag(tag::EPOCH);
                self.epoch += 1;
                self.counts = Counts::default();
                self.predictor.start_epoch();
            }
            Record::Settings(ref settings) => self.settings(settings),
            Record::Host(ref host) => self.host(host),
            Record::Image(ref image) => self.image(image),
            Record::Process(process) => self.process(process),
            Record::Thread(thread) => self.thread(thread),
            Record::Comm { process, time_ns, comm } => {
                self.of_process(tag::COMM, process, time_ns);
                self.string(comm);
            }
            Record::CommandLine { process, time_ns, arguments } => {
                self.of_process(tag::COMMAND_LINE, process, time_ns);
                self.string(arguments);
            }
            Record::ThreadName { thread, time_ns, name } => {
                self.of_thread(tag::THREAD_NAME, thread, time_ns);
                self.string(name);
            }
            Record::Fork { parent, child, time_ns } => {
                self.of_process(tag::FORK, child, time_ns);
                self.number(u64::from(self.counts.processes - parent.0));
            }
            Record::Exec { process, time_ns } => self.of_process(tag::EXEC, process, time_ns),
            Record::ProcessExit { process, time_ns } => {
                self.of_process(tag::PROCESS_EXIT, process, time_ns);
            }
            Record::ThreadExit { thread, time_ns } => {
                self.of_thread(tag::THREAD_EXIT, thread, time_ns);
            }
            Record::Mapping(ref mapping) => self.mapping(mapping),
            Record::Unmapping { process, time_ns, start_avma, end_avma } => {
                self.of_process(tag::UNMAPPING, process, time_ns);
                self.range(start_avma, end_avma);
            }
            Record::Annotation { process, time_ns, key, value } => {
                self.of_process(tag::ANNOTATION, process, time_ns);
                self.string(key);
                self.string(value);
            }
            _ => self.fact(record),
        }
    }

    /// Records that belong to no process.
    fn fact(&mut self, record: &Record<'_>) {
        match *record {
            Record::Lost { time_ns, cpu, events } => {
                self.on_cpu(tag::LOST, time_ns, cpu);
                self.number(events);
            }
            Record::Throttle { time_ns, cpu, throttled } => {
                self.on_cpu(tag::THROTTLE, time_ns, cpu);
                self.number(u64::from(throttled));
            }
            Record::Gap { start_ns, end_ns } => {
                self.tag(tag::GAP);
                self.time(start_ns);
                self.time(end_ns);
            }
            Record::Pause { time_ns, paused } => {
                self.tag(tag::PAUSE);
                self.time(time_ns);
                self.number(u64::from(paused));
            }
            Record::GeneratedName { image, time_ns, address, size, name } => {
                self.tag(tag::GENERATED_NAME);
                self.time(time_ns);
                self.named(image, address, size, name);
            }
            Record::Symbol { image, address, size, name } => {
                self.tag(tag::SYMBOL);
                self.named(image, address, size, name);
            }
            Record::Counter { name, value } => {
                self.tag(tag::COUNTER);
                self.string(name);
                self.number(value);
            }
            Record::End { time_ns } => {
                self.tag(tag::END);
                self.time(time_ns);
            }
            _ => {}
        }
    }

    fn settings(&mut self, settings: &Settings<'_>) {
        self.tag(tag::SETTINGS);
        self.string(settings.event);
        self.number(u64::from(settings.rate_hz));
        self.number(u64::from(settings.stack_size_bytes));
        self.number(u64::from(settings.kernel_frames) | u64::from(settings.follows_children) << 1);
        self.time(settings.start_monotonic_ns);
        self.number(settings.start_realtime_ns);
    }

    fn host(&mut self, host: &Host<'_>) {
        self.tag(tag::HOST);
        let strings = [
            host.architecture,
            host.kernel_release,
            host.boot_id,
            host.kernel_build_id,
            host.cpu_model,
        ];
        for string in strings {
            self.string(string);
        }
        self.number(u64::from(host.online_cpus));
    }

    fn image(&mut self, image: &Image<'_>) {
        self.tag(tag::IMAGE);
        self.counts.images += 1;
        self.number(u64::from(tag::image_kind_number(image.kind).unwrap_or_default()));
        self.string(image.path);
        self.string(image.build_id);
        let (major, minor) = image.device;
        for number in [major.into(), minor.into(), image.inode, image.file_size, image.modified_ns]
        {
            self.number(number);
        }
    }

    fn process(&mut self, process: Process) {
        self.tag(tag::PROCESS);
        self.time(process.time_ns);
        self.number(u64::from(process.pid));
        self.number(u64::from(process.generation));
        // Zero: none; else how many definitions ago.
        let parent = process.parent.map_or(0, |parent| u64::from(self.counts.processes - parent.0));
        self.number(parent);
        self.counts.processes += 1;
    }

    fn thread(&mut self, thread: Thread) {
        self.of_process(tag::THREAD, thread.process, thread.time_ns);
        self.number(u64::from(thread.tid));
        self.counts.threads += 1;
    }

    fn mapping(&mut self, mapping: &Mapping) {
        self.of_process(tag::MAPPING, mapping.process, mapping.time_ns);
        self.range(mapping.start_avma, mapping.end_avma);
        self.number(mapping.file_offset);
        self.number(u64::from(mapping.image.0));
    }

    fn of_process(&mut self, tag: u8, process: ProcessId, time_ns: u64) {
        self.tag(tag);
        self.time(time_ns);
        self.number(u64::from(self.counts.processes - 1 - process.0));
    }

    fn of_thread(&mut self, tag: u8, thread: ThreadId, time_ns: u64) {
        self.tag(tag);
        self.time(time_ns);
        self.number(u64::from(self.counts.threads - 1 - thread.0));
    }

    fn on_cpu(&mut self, tag: u8, time_ns: u64, cpu: Option<u32>) {
        self.tag(tag);
        self.time(time_ns);
        self.number(cpu.map_or(0, |cpu| u64::from(cpu) + 1));
    }

    fn range(&mut self, start_avma: u64, end_avma: u64) {
        let numbers = &mut self.columns[columns::NUMBERS];
        varint::put_difference(numbers, start_avma, self.predictor.mapping_avma);
        varint::put(numbers, end_avma - start_avma);
        self.predictor.mapping_avma = end_avma;
    }

    fn named(&mut self, image: ImageId, address: u64, size: u64, name: &[u8]) {
        self.number(u64::from(image.0));
        let last = self.predictor.address(image.0);
        varint::put_difference(&mut self.columns[columns::NUMBERS], address, *last);
        *last = address;
        self.number(size);
        self.string(name);
    }

    /// Whether the record keeps the rules: it refers to what is defined, and keeps the limits.
    fn check(&self, record: &Record<'_>) -> Result<(), Damage> {
        let defined =
            |id: u32, count: u32| if id < count { Ok(()) } else { Err(Damage::ForwardReference) };
        let below =
            |count: u32, limit: u32| if count < limit { Ok(()) } else { Err(Damage::OverLimit) };
        let counts = &self.counts;
        check_strings(record)?;
        match *record {
            Record::Image(ref image) => {
                tag::image_kind_number(image.kind).ok_or(Damage::BadTag)?;
                below(counts.images, limits::MAX_IMAGES)
            }
            Record::Process(process) => {
                process.parent.map_or(Ok(()), |parent| defined(parent.0, counts.processes))?;
                below(counts.processes, limits::MAX_PROCESSES)
            }
            Record::Thread(thread) => {
                defined(thread.process.0, counts.processes)?;
                below(counts.threads, limits::MAX_THREADS)
            }
            Record::Frame(frame) => {
                match frame {
                    Frame::Code { image, .. } => defined(image.0, counts.images)?,
                    Frame::Truncated(reason) => {
                        tag::truncation_number(reason).ok_or(Damage::BadTag)?;
                    }
                    Frame::Joined => {}
                }
                below(counts.frames, limits::MAX_FRAMES)
            }
            Record::Stack(ref run) => self.check_run(run),
            Record::Sample(ref sample) => self.check_sample(sample),
            Record::Comm { process, .. }
            | Record::CommandLine { process, .. }
            | Record::Exec { process, .. }
            | Record::ProcessExit { process, .. }
            | Record::Annotation { process, .. } => defined(process.0, counts.processes),
            Record::Fork { parent, child, .. } => {
                defined(parent.0, counts.processes)?;
                defined(child.0, counts.processes)
            }
            Record::ThreadName { thread, .. } | Record::ThreadExit { thread, .. } => {
                defined(thread.0, counts.threads)
            }
            Record::Mapping(ref mapping) => {
                defined(mapping.process.0, counts.processes)?;
                defined(mapping.image.0, counts.images)?;
                ordered(mapping.start_avma, mapping.end_avma)
            }
            Record::Unmapping { process, start_avma, end_avma, .. } => {
                defined(process.0, counts.processes)?;
                ordered(start_avma, end_avma)
            }
            Record::GeneratedName { image, .. } | Record::Symbol { image, .. } => {
                defined(image.0, counts.images)
            }
            _ => Ok(()),
        }
    }

    #[inline]
    fn check_sample(&self, sample: &Sample) -> Result<(), Damage> {
        let defined = sample.thread.0 < self.counts.threads
            && sample.leaf.0 < self.counts.frames
            && sample.callers.0 <= self.counts.nodes;
        if defined { Ok(()) } else { Err(Damage::ForwardReference) }
    }

    fn check_run(&self, run: &StackRun<'_>) -> Result<(), Damage> {
        if run.frames.is_empty() {
            return Err(Damage::BadRecord);
        }
        let room = limits::MAX_NODES - self.counts.nodes;
        if run.frames.len() > limits::MAX_RUN.min(room as usize) {
            return Err(Damage::OverLimit);
        }
        let known = run.parent.0 <= self.counts.nodes
            && run.frames.iter().all(|frame| frame.0 < self.counts.frames);
        if known { Ok(()) } else { Err(Damage::ForwardReference) }
    }
}

fn ordered(start: u64, end: u64) -> Result<(), Damage> {
    if start < end { Ok(()) } else { Err(Damage::BadRecord) }
}

fn check_strings(record: &Record<'_>) -> Result<(), Damage> {
    let fits = |strings: &[&[u8]]| {
        let fit = strings.iter().all(|string| string.len() <= limits::MAX_STRING);
        if fit { Ok(()) } else { Err(Damage::OverLimit) }
    };
    match *record {
        Record::Settings(ref settings) => fits(&[settings.event]),
        Record::Host(ref host) => fits(&[
            host.architecture,
            host.kernel_release,
            host.boot_id,
            host.kernel_build_id,
            host.cpu_model,
        ]),
        Record::Image(ref image) => fits(&[image.path, image.build_id]),
        Record::Comm { comm: string, .. }
        | Record::CommandLine { arguments: string, .. }
        | Record::ThreadName { name: string, .. }
        | Record::GeneratedName { name: string, .. }
        | Record::Symbol { name: string, .. }
        | Record::Counter { name: string, .. } => fits(&[string]),
        Record::Annotation { key, value, .. } => fits(&[key, value]),
        _ => Ok(()),
    }
}

/// When a record says something happened.
pub(crate) fn time_of(record: &Record<'_>) -> Option<u64> {
    match *record {
        Record::Sample(ref sample) => Some(sample.time_ns),
        Record::Process(process) => Some(process.time_ns),
        Record::Thread(thread) => Some(thread.time_ns),
        Record::Settings(ref settings) => Some(settings.start_monotonic_ns),
        Record::Mapping(ref mapping) => Some(mapping.time_ns),
        Record::Gap { end_ns, .. } => Some(end_ns),
        Record::Comm { time_ns, .. }
        | Record::CommandLine { time_ns, .. }
        | Record::ThreadName { time_ns, .. }
        | Record::Fork { time_ns, .. }
        | Record::Exec { time_ns, .. }
        | Record::ProcessExit { time_ns, .. }
        | Record::ThreadExit { time_ns, .. }
        | Record::Unmapping { time_ns, .. }
        | Record::Lost { time_ns, .. }
        | Record::Throttle { time_ns, .. }
        | Record::Pause { time_ns, .. }
        | Record::GeneratedName { time_ns, .. }
        | Record::Annotation { time_ns, .. }
        | Record::End { time_ns } => Some(time_ns),
        _ => None,
    }
}
