//! Events in, records out.

use crate::by_id::{ById, Slot};
use crate::generations::Generations;
use crate::images::Images;
use crate::maps;
use crate::moved_text;
use crate::output::Output;
use crate::process::{Process, Thread};
use crate::source::ProcessSource;
use crate::stats::Statistics;
use stackpulse_perf::{AttachedProcess, Event, EventKind, Mmap, Task};
use stackpulse_spool::{Frame, ProcessId, Record, RecordSink};
use stackpulse_unwind::{Region, Shown};
use std::ops::Range;

/// After a loss, processes are compared with the world at most this often.
const RECOVERY_INTERVAL_NS: u64 = 250_000_000;

/// What an [`Engine`] does with the events.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct EngineOptions {
    /// Whether the events carry the kernel's frames. Off: samples in the kernel are counted and left out.
    pub kernel_frames: bool,
    /// Whether stacks that are deeper than what was captured are joined, behind a [`Frame::Joined`], to the callers that an earlier
    /// stack of the thread showed, where it had the same frame at the end of the captured bytes. Off: they are cut.
    pub join_cut_stacks: bool,
}

impl Default for EngineOptions {
    fn default() -> Self {
        Self { kernel_frames: false, join_cut_stacks: true }
    }
}

/// Follows processes and unwinds samples; the records go to a sink of its own.
///
/// Call [`handle`](Self::handle) for each event in the order of time, [`tick`](Self::tick) now and then, and
/// [`finish`](Self::finish) at the end. The same events and the same world give the same records.
#[derive(Debug)]
pub struct Engine<S, K> {
    pub(crate) source: S,
    pub(crate) processes: ById<Process>,
    generations: Generations,
    pub(crate) images: Images,
    pub(crate) output: Output<K>,
    pub(crate) statistics: Statistics,
    pub(crate) options: EngineOptions,
    /// When lifecycle events were lost, until a recovery.
    gap_since_ns: Option<u64>,
    last_recovery_ns: u64,
    /// Memory used again for each sample.
    pub(crate) frames: Vec<Frame>,
}

impl<S: ProcessSource, K: RecordSink> Engine<S, K> {
    /// Makes an engine that knows no process yet.
    pub fn new(source: S, sink: K, options: EngineOptions) -> Self {
        let mut images = Images::default();
        if !options.join_cut_stacks {
            images.unwinder.leave_cut_stacks();
        }
        Self {
            source,
            processes: ById::default(),
            generations: Generations::default(),
            images,
            output: Output::new(sink),
            statistics: Statistics::default(),
            options,
            gap_since_ns: None,
            last_recovery_ns: 0,
            frames: Vec::new(),
        }
    }

    /// Returns the sink. What is recorded past the engine must define nothing.
    pub fn sink(&mut self) -> &mut K {
        &mut self.output.sink
    }

    /// Gives the sink back.
    pub fn into_sink(self) -> K {
        self.output.sink
    }

    /// Takes an event in; its memory is given back when this returns.
    ///
    /// # Errors
    ///
    /// Those of the sink; the recording is then over.
    pub fn handle(&mut self, event: Event) -> Result<(), K::Error> {
        let Event { time_ns, cpu, kind } = event;
        if self.output.is_full() {
            self.start_epoch()?;
        }
        match kind {
            EventKind::Sample(sample) => self.sample(time_ns, cpu, &sample),
            EventKind::Attached(process) => self.attached(time_ns, process),
            EventKind::Mmap(mmap) => self.mapped(time_ns, &mmap),
            EventKind::Comm { task, comm, exec: true } => self.executed(time_ns, task, comm),
            EventKind::Comm { task, comm, exec: false } => self.renamed(time_ns, task, comm),
            EventKind::Fork { child, parent } => self.forked(time_ns, child, parent),
            EventKind::Exit { task } => self.thread_ended(time_ns, task),
            EventKind::ProcessExit { pid } => self.process_ended(time_ns, pid),
            EventKind::Lost { events, lifecycle } => {
                if lifecycle {
                    self.gap_since_ns.get_or_insert(time_ns);
                }
                self.output.record(&Record::Lost { time_ns, cpu, events })
            }
            EventKind::Throttle { throttled } => {
                self.output.record(&Record::Throttle { time_ns, cpu, throttled })
            }
            EventKind::Pause { paused } => self.output.record(&Record::Pause { time_ns, paused }),
            _ => Ok(()),
        }
    }

    /// Does what is due at this time of the events' clock.
    ///
    /// # Errors
    ///
    /// Those of the sink.
    pub fn tick(&mut self, now_ns: u64) -> Result<(), K::Error> {
        if now_ns.saturating_sub(self.last_recovery_ns) >= RECOVERY_INTERVAL_NS {
            self.recover(now_ns)?;
        }
        Ok(())
    }

    /// Does what is still due. Nothing may be handled after it.
    ///
    /// # Errors
    ///
    /// Those of the sink.
    pub fn finish(&mut self, now_ns: u64) -> Result<(), K::Error> {
        self.recover(now_ns)
    }

    /// Returns what has been met so far.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        Statistics { images_unreadable: self.images.unreadable(), ..self.statistics }
    }

    /// Starts the spool's ids afresh: nothing has one any more.
    fn start_epoch(&mut self) -> Result<(), K::Error> {
        for process in self.processes.iter_mut() {
            process.ids = Default::default();
            for thread in process.threads.iter_mut() {
                thread.id = None;
                thread.forget_stacks();
            }
        }
        self.output.start_epoch()
    }

    /// Compares every process with the world, after lifecycle events were lost.
    fn recover(&mut self, now_ns: u64) -> Result<(), K::Error> {
        let Some(start_ns) = self.gap_since_ns.take() else { return Ok(()) };
        self.last_recovery_ns = now_ns;
        self.statistics.gaps = self.statistics.gaps.saturating_add(1);
        for process in self.processes.iter_mut() {
            if let Some(text) = self.source.maps(process.pid) {
                process.reconcile(&text, &mut self.images);
            }
        }
        self.output.record(&Record::Gap { start_ns, end_ns: now_ns })
    }

    /// Returns the id of a process that is known, defining it at first use.
    pub(crate) fn id_of(&mut self, slot: Slot) -> Result<ProcessId, K::Error> {
        let process = &self.processes[slot];
        if let Some(id) = process.ids.process {
            return Ok(id);
        }
        // A parent that has ended and has no id in this epoch is not defined for this alone.
        let parent = process.parent.and_then(|(pid, generation)| {
            let parent = &self.processes[self.processes.find(pid)?];
            parent.ids.process.filter(|_| parent.generation == generation)
        });
        self.output.process(&mut self.processes[slot], parent)
    }

    /// Makes a new generation of a pid; one that was there before ends.
    fn begin(&mut self, time_ns: u64, pid: u32, parent: Option<Slot>) -> Result<Slot, K::Error> {
        self.process_ended(time_ns, pid)?;
        let generation = self.generations.begin(pid);
        let process = match parent.map(|parent| &self.processes[parent]) {
            Some(parent) => parent.fork(pid, generation, time_ns),
            None => Process::new(pid, generation, time_ns),
        };
        let slot = self.processes.insert(pid, process);
        self.id_of(slot)?;
        Ok(slot)
    }

    /// Makes a process known that was not announced: its start was lost.
    #[inline]
    pub(crate) fn ensure(&mut self, time_ns: u64, pid: u32) -> Result<Slot, K::Error> {
        match self.processes.find(pid) {
            Some(slot) => Ok(slot),
            None => self.discover(time_ns, pid),
        }
    }

    fn discover(&mut self, time_ns: u64, pid: u32) -> Result<Slot, K::Error> {
        let slot = self.begin(time_ns, pid, None)?;
        if let Some(text) = self.source.maps(pid) {
            self.processes[slot].reconcile(&text, &mut self.images);
        }
        self.describe(time_ns, slot, None)?;
        Ok(slot)
    }

    fn attached(&mut self, time_ns: u64, attached: AttachedProcess) -> Result<(), K::Error> {
        let pid = attached.pid;
        let slot = self.begin(time_ns, pid, None)?;
        let parent = attached.parent_pid.and_then(|parent| self.processes.find(parent));
        let parent = parent.map(|parent| &self.processes[parent]);
        let parent = parent.map(|parent| (parent.pid, parent.generation));
        let process = &mut self.processes[slot];
        process.parent = parent;
        process.reconcile(&attached.maps, &mut self.images);
        let mut comm = None;
        for (tid, name) in attached.threads {
            let mut thread = Thread::new(time_ns);
            if tid == pid {
                comm = Some(name);
            } else {
                thread.name = Some(name);
            }
            process.threads.insert(tid, thread);
        }
        self.describe(time_ns, slot, comm)
    }

    /// Writes a process's comm and arguments.
    fn describe(
        &mut self,
        time_ns: u64,
        slot: Slot,
        comm: Option<Box<[u8]>>,
    ) -> Result<(), K::Error> {
        let process = self.id_of(slot)?;
        let known = &mut self.processes[slot];
        if let Some(comm) = comm {
            self.output.record(&Record::Comm { process, time_ns, comm: &comm })?;
            known.comm = comm;
        }
        match self.source.command_line(known.pid) {
            Some(arguments) if !arguments.is_empty() => {
                self.output.record(&Record::CommandLine { process, time_ns, arguments: &arguments })
            }
            _ => Ok(()),
        }
    }

    fn mapped(&mut self, time_ns: u64, mmap: &Mmap) -> Result<(), K::Error> {
        if !mmap.executable {
            return Ok(());
        }
        let slot = self.ensure(time_ns, mmap.task.pid)?;
        let (start_avma, end_avma) =
            (mmap.start_avma, mmap.start_avma.saturating_add(mmap.len_bytes));
        let shown = match self.images.shown(&mmap.path, &mmap.file, mmap.file_offset) {
            Shown::Anonymous => self.shown_by_memory(slot, &(start_avma..end_avma)),
            image => image,
        };
        self.processes[slot].map(Region { start_avma, end_avma, shown });
        Ok(())
    }

    /// What memory of no file shows that is mapped into a range: generated code, or an image's text that was moved.
    fn shown_by_memory(&mut self, process: Slot, avma: &Range<u64>) -> Shown {
        let process = &mut self.processes[process];
        let is_image = |region: &Region| region.shown != Shown::Anonymous;
        if !process.space.within(avma.start, avma.end).iter().any(is_image) {
            return Shown::Anonymous;
        }
        let Some(left) = process.moves_left.checked_sub(1) else { return Shown::Anonymous };
        process.moves_left = left;
        let text = self.source.maps(process.pid).unwrap_or_default();
        let lines: Vec<_> = maps::parse(&text).collect();
        moved_text::mapped_over(&process.space, avma, (&lines, &mut self.images))
            .unwrap_or(Shown::Anonymous)
    }

    fn executed(&mut self, time_ns: u64, task: Task, comm: Box<[u8]>) -> Result<(), K::Error> {
        let slot = self.ensure(time_ns, task.pid)?;
        let process = self.id_of(slot)?;
        self.output.record(&Record::Exec { process, time_ns })?;
        self.processes[slot].exec();
        self.describe(time_ns, slot, Some(comm))
    }

    fn renamed(&mut self, time_ns: u64, task: Task, comm: Box<[u8]>) -> Result<(), K::Error> {
        let slot = self.ensure(time_ns, task.pid)?;
        let process = self.id_of(slot)?;
        let known = &mut self.processes[slot];
        if task.tid == task.pid {
            self.output.record(&Record::Comm { process, time_ns, comm: &comm })?;
            known.comm = comm;
            return Ok(());
        }
        let thread = known.threads.find_or_insert(task.tid, || Thread::new(time_ns));
        let thread = &mut known.threads[thread];
        if let Some(thread) = thread.id {
            self.output.record(&Record::ThreadName { thread, time_ns, name: &comm })?;
        }
        thread.name = Some(comm);
        Ok(())
    }

    fn forked(&mut self, time_ns: u64, child: Task, parent: Task) -> Result<(), K::Error> {
        let parent_slot = self.ensure(time_ns, parent.pid)?;
        if child.pid != parent.pid {
            let child = self.begin(time_ns, child.pid, Some(parent_slot))?;
            let parent = self.id_of(parent_slot)?;
            let child = self.id_of(child)?;
            return self.output.record(&Record::Fork { parent, child, time_ns });
        }
        let process = &mut self.processes[parent_slot];
        // A thread begins with the name of the one that made it.
        let maker = process.threads.find(parent.tid);
        let name = maker.and_then(|maker| process.threads[maker].name.clone());
        process.threads.insert(child.tid, Thread { name, ..Thread::new(time_ns) });
        Ok(())
    }

    fn thread_ended(&mut self, time_ns: u64, task: Task) -> Result<(), K::Error> {
        // Of what was never seen there is nothing to end.
        let Some(slot) = self.processes.find(task.pid) else { return Ok(()) };
        let process = self.id_of(slot)?;
        let known = &mut self.processes[slot];
        // Leader exit is not process exit: siblings may run.
        let Some(mut thread) = known.threads.remove(task.tid) else { return Ok(()) };
        // A thread too short for a sample is told all the same; a process's first thread is told by the process.
        if thread.id.is_some() || task.tid != task.pid {
            let thread = self.output.thread(&mut thread, (process, task.tid), time_ns)?;
            self.output.record(&Record::ThreadExit { thread, time_ns })?;
        }
        Ok(())
    }

    fn process_ended(&mut self, time_ns: u64, pid: u32) -> Result<(), K::Error> {
        let Some(slot) = self.processes.find(pid) else { return Ok(()) };
        let process = self.id_of(slot)?;
        self.processes.remove(pid);
        self.output.record(&Record::ProcessExit { process, time_ns })
    }
}
