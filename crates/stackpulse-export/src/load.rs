//! From a spool's records to distinct stacks.

use crate::filter::{NameMatches, SampleFilter};
use crate::stacks::{
    Actor, Node, Place, ProfileProcess, ProfileThread, RecordedName, StackKey, Stacks,
};
use crate::timeline::{Mark, MarkKind, Timeline};
use rustc_hash::FxHashMap;
use stackpulse_spool::{
    Frame, ImageId, OwnedImage, Process, ProcessId, Record, Sample, StackId, StackRun, Tables,
    Thread, ThreadId, Truncation,
};

/// Brings the records of one spool together as [`Stacks`].
///
/// Feed it every record in order, with the tables as of then, with [`take`](Self::take). A record that refers to
/// something not defined (its block was damaged) is left out.
#[derive(Debug, Default)]
pub struct Loader {
    stacks: Stacks,
    images: FxHashMap<OwnedImage, u32>,
    places: FxHashMap<Place, u32>,
    processes: FxHashMap<(u32, u32), u32>,
    threads: FxHashMap<(u32, u32, u64), u32>,
    comms: FxHashMap<Vec<u8>, u32>,
    /// The comm of each of the profile's processes.
    process_comms: Vec<u32>,
    /// The name of each of the profile's threads, where it has one of its own.
    thread_names: Vec<Option<u32>>,
    filter: SampleFilter,
    /// Which comms the filter's patterns match, as far as it was asked.
    comm_matches: NameMatches,
    thread_matches: NameMatches,
    /// Stacks cut to the filter's depth: their node of callers.
    cut: FxHashMap<(u32, u32), u32>,
    cut_nodes: FxHashMap<(u32, u32), u32>,
    epoch: Epoch,
}

/// From the ids of the current epoch to those of the profile.
#[derive(Debug, Default)]
struct Epoch {
    number: u32,
    images: ById,
    places: ById,
    processes: ById,
    threads: ById,
    /// The empty stack is zero in both.
    nodes: ById,
}

/// What each id of the spool became; ids that damage took along became nothing.
#[derive(Debug, Default)]
struct ById(Vec<u32>);

impl ById {
    const NOTHING: u32 = u32::MAX;

    fn set(&mut self, id: u32, value: u32) {
        let at = id as usize;
        if self.0.len() <= at {
            self.0.resize(at + 1, Self::NOTHING);
        }
        self.0[at] = value;
    }

    fn get(&self, id: u32) -> Option<u32> {
        self.0.get(id as usize).copied().filter(|&value| value != Self::NOTHING)
    }
}

impl Loader {
    /// Makes a loader that counts only the samples that pass the filter.
    #[must_use]
    pub fn with_filter(filter: SampleFilter) -> Self {
        Self { filter, ..Self::default() }
    }

    /// Keeps, besides the counts, when each sample was taken, in [`Stacks::timeline`].
    #[must_use]
    pub fn keep_times(mut self) -> Self {
        self.stacks.timeline = Some(Timeline::default());
        self
    }

    /// Takes the next record, and what has been defined up to it.
    pub fn take(&mut self, record: &Record<'_>, tables: &Tables) {
        if tables.epoch() != self.epoch.number {
            self.epoch = Epoch { number: tables.epoch(), ..Epoch::default() };
        }
        let counts = tables.counts();
        match *record {
            Record::Image(ref image) => {
                self.define_image(ImageId(counts.images - 1), OwnedImage::from(image));
            }
            Record::Process(process) => self.define_process(counts.processes - 1, process),
            Record::Thread(thread) => self.define_thread(counts.threads - 1, thread),
            Record::Frame(frame) => self.define_frame(counts.frames - 1, frame),
            Record::Stack(ref run) => self.define_nodes(counts.nodes, run),
            Record::Sample(ref sample) => {
                self.count(sample);
            }
            Record::Comm { process, comm, .. } => self.rename_process(process, comm),
            Record::CommandLine { process, arguments, .. } => {
                if let Some(process) = self.process(process) {
                    self.stacks.processes[process as usize].command_line = arguments.to_vec();
                }
            }
            Record::ThreadName { thread, name, .. } => self.rename_thread(thread, name),
            Record::Fork { parent, child, .. } => self.fork(parent, child),
            Record::GeneratedName { image, address, size, name, .. }
            | Record::Symbol { image, address, size, name } => {
                if let Some(image) = self.epoch.images.get(image.0) {
                    self.stacks.names.push(RecordedName {
                        image,
                        address,
                        size,
                        name: name.to_vec(),
                    });
                }
            }
            Record::ProcessExit { process, time_ns } => {
                if let Some(process) = self.process(process) {
                    self.stacks.processes[process as usize].end_ns = Some(time_ns);
                }
            }
            Record::ThreadExit { thread, time_ns } => {
                if let Some(thread) = self.thread(thread) {
                    self.stacks.threads[thread as usize].end_ns = Some(time_ns);
                }
            }
            ref other => self.take_time(other),
        }
    }

    /// Takes what only a timeline shows.
    fn take_time(&mut self, record: &Record<'_>) {
        let Some(timeline) = &mut self.stacks.timeline else { return };
        match *record {
            Record::Settings(settings) => {
                timeline.start_ns = settings.start_monotonic_ns;
                timeline.start_realtime_ns = settings.start_realtime_ns;
                timeline.event = String::from_utf8_lossy(settings.event).into_owned();
                timeline.rate_hz = settings.rate_hz;
            }
            Record::Lost { time_ns, cpu, events } => timeline.marks.push(Mark {
                start_ns: time_ns,
                end_ns: time_ns,
                kind: MarkKind::Lost { events, cpu },
            }),
            Record::Gap { start_ns, end_ns } => {
                timeline.marks.push(Mark { start_ns, end_ns, kind: MarkKind::Gap });
            }
            Record::Throttle { time_ns, cpu, throttled } => {
                timeline.switch(time_ns, MarkKind::Throttled(cpu), throttled);
            }
            Record::Pause { time_ns, paused } => {
                timeline.switch(time_ns, MarkKind::Paused, paused);
            }
            Record::End { time_ns } => timeline.end_ns = timeline.end_ns.max(time_ns),
            _ => {}
        }
    }

    /// Returns what has been brought together so far.
    #[must_use]
    pub fn stacks(&self) -> &Stacks {
        &self.stacks
    }

    /// Returns what has been brought together.
    #[must_use]
    pub fn finish(mut self) -> Stacks {
        if let Some(timeline) = &mut self.stacks.timeline {
            timeline.close();
        }
        self.stacks
    }

    fn define_image(&mut self, id: ImageId, image: OwnedImage) {
        // What is told of memory without a file is not enough to know it again.
        let same = if image.path.is_empty() { None } else { self.images.get(&image).copied() };
        let at = same.unwrap_or_else(|| {
            let at = index(self.stacks.images.len());
            self.stacks.images.push(image.clone());
            self.stacks.image_ids.push(Vec::new());
            self.images.insert(image, at);
            at
        });
        self.stacks.image_ids[at as usize].push((self.epoch.number, id));
        self.epoch.images.set(id.0, at);
    }

    fn define_process(&mut self, id: u32, process: Process) {
        let parent = process.parent.and_then(|parent| self.process(parent));
        let comm = self.comm(b"");
        let at = *self.processes.entry((process.pid, process.generation)).or_insert_with(|| {
            self.stacks.processes.push(ProfileProcess {
                pid: process.pid,
                generation: process.generation,
                parent,
                comm: Vec::new(),
                command_line: Vec::new(),
                start_ns: process.time_ns,
                end_ns: None,
            });
            self.process_comms.push(comm);
            index(self.stacks.processes.len() - 1)
        });
        self.epoch.processes.set(id, at);
    }

    fn define_thread(&mut self, id: u32, thread: Thread) {
        let Some(process) = self.process(thread.process) else { return };
        let at = *self.threads.entry((process, thread.tid, thread.time_ns)).or_insert_with(|| {
            self.stacks.threads.push(ProfileThread {
                process,
                tid: thread.tid,
                name: None,
                start_ns: thread.time_ns,
                end_ns: None,
            });
            self.thread_names.push(None);
            index(self.stacks.threads.len() - 1)
        });
        self.epoch.threads.set(id, at);
    }

    fn define_frame(&mut self, id: u32, frame: Frame) {
        let place = match frame {
            Frame::Code { image, address } => {
                let Some(image) = self.epoch.images.get(image.0) else { return };
                Place::Code { image, address }
            }
            Frame::Truncated(reason) => Place::Truncated(reason),
            Frame::Joined => Place::Joined,
        };
        let at = self.place(place);
        self.epoch.places.set(id, at);
    }

    /// Defines the nodes of a run, the last of which has this id.
    fn define_nodes(&mut self, last: u32, run: &StackRun<'_>) {
        let Some(mut parent) = self.node(run.parent) else { return };
        for (frame, id) in run.frames.iter().zip(last + 1 - index(run.frames.len())..) {
            let Some(place) = self.epoch.places.get(frame.0) else { return };
            self.stacks.nodes.push(Node { parent, place });
            parent = index(self.stacks.nodes.len() - 1);
            self.epoch.nodes.set(id, parent);
        }
    }

    fn count(&mut self, sample: &Sample) -> Option<()> {
        let thread = self.thread(sample.thread)?;
        let process = self.stacks.threads[thread as usize].process;
        let process_comm = self.process_comms[process as usize];
        let comm = self.thread_names[thread as usize].unwrap_or(process_comm);
        let callers = self.node(sample.callers)?;
        let leaf = self.epoch.places.get(sample.leaf.0)?;
        let task =
            (self.stacks.processes[process as usize].pid, self.stacks.threads[thread as usize].tid);
        let comms = &self.stacks.comms;
        if !self.filter.admits(sample.time_ns, task)
            || !self.comm_matches.matches(self.filter.comm.as_ref(), comms, process_comm)
            || !self.thread_matches.matches(self.filter.thread.as_ref(), comms, comm)
        {
            self.stacks.left_out += 1;
            return None;
        }
        let callers = match self.filter.max_depth {
            Some(depth) => self.cut_at(depth, callers, leaf),
            None => callers,
        };
        let key = StackKey { actor: Actor { thread, comm }, callers, leaf };
        *self.stacks.counts.entry(key).or_default() += 1;
        self.stacks.total += 1;
        if let Some(timeline) = &mut self.stacks.timeline {
            timeline.end_ns = timeline.end_ns.max(sample.time_ns);
            timeline.push(sample.time_ns, sample.weight, sample.cpu, key);
        }
        Some(())
    }

    /// Returns the callers of a leaf that are left when a stack keeps its innermost `depth` places.
    fn cut_at(&mut self, depth: usize, callers: u32, leaf: u32) -> u32 {
        if let Some(&cut) = self.cut.get(&(callers, leaf)) {
            return cut;
        }
        let (mut kept, mut node) = (Vec::new(), callers);
        while node != 0 && kept.len() + 1 < depth {
            let at = self.stacks.nodes[node as usize];
            kept.push(at.place);
            node = at.parent;
        }
        let cut = if node == 0 {
            callers
        } else {
            kept.push(self.place(Place::Truncated(Truncation::DepthLimit)));
            kept.iter().rev().fold(0, |parent, &place| self.cut_node(parent, place))
        };
        self.cut.insert((callers, leaf), cut);
        cut
    }

    fn cut_node(&mut self, parent: u32, place: u32) -> u32 {
        let next = index(self.stacks.nodes.len());
        let at = *self.cut_nodes.entry((parent, place)).or_insert(next);
        if at == next {
            self.stacks.nodes.push(Node { parent, place });
        }
        at
    }

    /// Returns the index of a place, added if it was not there.
    fn place(&mut self, place: Place) -> u32 {
        *self.places.entry(place).or_insert_with(|| {
            self.stacks.places.push(place);
            index(self.stacks.places.len() - 1)
        })
    }

    fn rename_process(&mut self, process: ProcessId, comm: &[u8]) {
        let Some(process) = self.process(process) else { return };
        self.stacks.processes[process as usize].comm = comm.to_vec();
        self.process_comms[process as usize] = self.comm(comm);
    }

    fn rename_thread(&mut self, thread: ThreadId, name: &[u8]) {
        let Some(thread) = self.thread(thread) else { return };
        self.stacks.threads[thread as usize].name = Some(name.to_vec());
        self.thread_names[thread as usize] = Some(self.comm(name));
    }

    fn fork(&mut self, parent: ProcessId, child: ProcessId) {
        let (Some(parent), Some(child)) = (self.process(parent), self.process(child)) else {
            return;
        };
        let (parent, child) = (parent as usize, child as usize);
        self.process_comms[child] = self.process_comms[parent];
        self.stacks.processes[child].comm = self.stacks.processes[parent].comm.clone();
        self.stacks.processes[child].command_line =
            self.stacks.processes[parent].command_line.clone();
    }

    fn comm(&mut self, comm: &[u8]) -> u32 {
        if let Some(&at) = self.comms.get(comm) {
            return at;
        }
        let at = index(self.stacks.comms.len());
        self.stacks.comms.push(comm.to_vec());
        self.comms.insert(comm.to_vec(), at);
        at
    }

    fn process(&self, id: ProcessId) -> Option<u32> {
        self.epoch.processes.get(id.0)
    }

    fn thread(&self, id: ThreadId) -> Option<u32> {
        self.epoch.threads.get(id.0)
    }

    fn node(&self, id: StackId) -> Option<u32> {
        if id == StackId::EMPTY { Some(0) } else { self.epoch.nodes.get(id.0) }
    }
}

/// A table's length as an index; spools count in 32 bits, and so do profiles.
fn index(len: usize) -> u32 {
    u32::try_from(len).expect("a spool defines fewer than 2^32 things")
}
