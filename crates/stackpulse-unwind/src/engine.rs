//! Events in, records out.

use crate::fast_walk::Trail;
use crate::generations::Generations;
use crate::image_cache::ImageCache;
use crate::output::Output;
use crate::process::{Process, Thread, region};
use crate::registers::RegisterSet;
use crate::source::ProcessSource;
use crate::stats::Statistics;
use crate::walk::WalkedFrame;
use rustc_hash::FxHashMap;
use stackpulse_perf::{AttachedProcess, Event, EventKind, Mmap, Task};
use stackpulse_spool::{Frame, Record, RecordSink};

/// After a loss, processes are compared with the world at most this often.
const RECOVERY_INTERVAL_NS: u64 = 250_000_000;

/// Follows processes and unwinds samples.
///
/// Call [`handle`](Self::handle) for each event in the order of time, [`tick`](Self::tick) now and then, and
/// [`finish`](Self::finish) at the end. The same events and the same world give the same records.
#[derive(Debug)]
pub struct Engine<S> {
    pub(crate) source: S,
    pub(crate) processes: FxHashMap<u32, Process>,
    generations: Generations,
    pub(crate) images: ImageCache,
    pub(crate) output: Output,
    pub(crate) statistics: Statistics,
    kernel_frames: bool,
    /// Whether cut stacks are joined to what is known of their callers.
    pub(crate) joins_cut_stacks: bool,
    /// When lifecycle events were lost, until a recovery.
    gap_since_ns: Option<u64>,
    last_recovery_ns: u64,
    /// Memory used again for each sample.
    pub(crate) walked: Vec<WalkedFrame>,
    pub(crate) trail: Trail,
    pub(crate) frames: Vec<Frame>,
}

impl<S: ProcessSource> Engine<S> {
    /// Makes an engine that knows no process yet. `kernel_frames`: whether the events carry them.
    pub fn new(source: S, kernel_frames: bool) -> Self {
        Self {
            source,
            processes: FxHashMap::default(),
            generations: Generations::default(),
            images: ImageCache::default(),
            output: Output::default(),
            statistics: Statistics::default(),
            kernel_frames,
            joins_cut_stacks: true,
            gap_since_ns: None,
            last_recovery_ns: 0,
            walked: Vec::new(),
            trail: Trail::default(),
            frames: Vec::new(),
        }
    }

    /// Leaves stacks that are deeper than what was captured as they are: cut. Without this they are joined, behind a
    /// [`Frame::Joined`], to the callers that an earlier stack of the thread showed, where it had the same frame at the end of the captured bytes.
    #[must_use]
    pub fn without_joined_stacks(self) -> Self {
        Self { joins_cut_stacks: false, ..self }
    }

    /// Takes an event in; its memory is given back when this returns.
    ///
    /// # Errors
    ///
    /// Those of the sink; the recording is then over.
    pub fn handle<K: RecordSink>(&mut self, event: Event, sink: &mut K) -> Result<(), K::Error> {
        let Event { time_ns, cpu, kind } = event;
        self.output.start_epoch_if_full(&mut self.processes, &mut self.images, sink)?;
        match kind {
            EventKind::Sample(sample) => {
                self.sample(time_ns, cpu, &sample, self.kernel_frames, sink)
            }
            EventKind::Attached(process) => self.attached(time_ns, process, sink),
            EventKind::Mmap(mmap) => {
                self.mapped(&mmap);
                Ok(())
            }
            EventKind::Comm { task, comm, exec } => self.renamed(time_ns, task, comm, exec, sink),
            EventKind::Fork { child, parent } => self.forked(time_ns, child, parent, sink),
            EventKind::Exit { task } => self.thread_ended(time_ns, task, sink),
            EventKind::ProcessExit { pid } => self.process_ended(time_ns, pid, sink),
            EventKind::Lost { events, lifecycle } => {
                if lifecycle {
                    self.gap_since_ns.get_or_insert(time_ns);
                }
                sink.record(&Record::Lost { time_ns, cpu, events })
            }
            EventKind::Throttle { throttled } => {
                sink.record(&Record::Throttle { time_ns, cpu, throttled })
            }
            EventKind::Pause { paused } => sink.record(&Record::Pause { time_ns, paused }),
            _ => Ok(()),
        }
    }

    /// Does what is due at this time of the events' clock.
    ///
    /// # Errors
    ///
    /// Those of the sink.
    pub fn tick<K: RecordSink>(&mut self, now_ns: u64, sink: &mut K) -> Result<(), K::Error> {
        if now_ns.saturating_sub(self.last_recovery_ns) >= RECOVERY_INTERVAL_NS {
            self.recover(now_ns, sink)?;
        }
        Ok(())
    }

    /// Does what is still due. Nothing may be handled after it.
    ///
    /// # Errors
    ///
    /// Those of the sink.
    pub fn finish<K: RecordSink>(&mut self, now_ns: u64, sink: &mut K) -> Result<(), K::Error> {
        self.recover(now_ns, sink)
    }

    /// Returns what has been met so far.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        Statistics { images_unreadable: self.images.unreadable(), ..self.statistics }
    }

    /// Compares every process with the world, after lifecycle events were lost.
    fn recover<K: RecordSink>(&mut self, now_ns: u64, sink: &mut K) -> Result<(), K::Error> {
        let Some(start_ns) = self.gap_since_ns.take() else { return Ok(()) };
        self.last_recovery_ns = now_ns;
        self.statistics.gaps = self.statistics.gaps.saturating_add(1);
        for process in self.processes.values_mut() {
            if let Some(text) = self.source.maps(process.pid) {
                process.reconcile(&text, &mut self.images);
            }
        }
        sink.record(&Record::Gap { start_ns, end_ns: now_ns })
    }

    /// Makes a new generation of a pid; one that was there before ends.
    fn begin<K: RecordSink>(
        &mut self,
        time_ns: u64,
        pid: u32,
        parent: Option<u32>,
        sink: &mut K,
    ) -> Result<(), K::Error> {
        self.process_ended(time_ns, pid, sink)?;
        let generation = self.generations.begin(pid);
        let process = match parent.and_then(|parent| self.processes.get(&parent)) {
            Some(parent) => parent.fork(pid, generation, time_ns),
            None => Process::new(pid, generation, time_ns),
        };
        self.processes.insert(pid, process);
        self.output.process(&mut self.processes, pid, sink)?;
        Ok(())
    }

    /// Makes a process known that was not announced: its start was lost.
    pub(crate) fn ensure<K: RecordSink>(
        &mut self,
        time_ns: u64,
        pid: u32,
        sink: &mut K,
    ) -> Result<(), K::Error> {
        if self.processes.contains_key(&pid) {
            return Ok(());
        }
        self.begin(time_ns, pid, None, sink)?;
        if let (Some(text), Some(process)) = (self.source.maps(pid), self.processes.get_mut(&pid)) {
            process.reconcile(&text, &mut self.images);
        }
        self.describe(time_ns, pid, None, sink)
    }

    fn attached<K: RecordSink>(
        &mut self,
        time_ns: u64,
        attached: AttachedProcess,
        sink: &mut K,
    ) -> Result<(), K::Error> {
        let pid = attached.pid;
        self.begin(time_ns, pid, None, sink)?;
        let known_parent = attached.parent_pid.and_then(|parent| self.processes.get(&parent));
        let parent = known_parent.map(|parent| (parent.pid, parent.generation));
        let Some(process) = self.processes.get_mut(&pid) else { return Ok(()) };
        process.parent = parent;
        process.reconcile(&attached.maps, &mut self.images);
        let mut comm = None;
        for (tid, name) in attached.threads {
            let thread = process.threads.entry(tid).or_default();
            thread.started_ns = time_ns;
            if tid == pid {
                comm = Some(name);
            } else {
                thread.name = Some(name);
            }
        }
        self.describe(time_ns, pid, comm, sink)
    }

    /// Writes a process's comm and arguments.
    fn describe<K: RecordSink>(
        &mut self,
        time_ns: u64,
        pid: u32,
        comm: Option<Box<[u8]>>,
        sink: &mut K,
    ) -> Result<(), K::Error> {
        let process = self.output.process(&mut self.processes, pid, sink)?;
        if let Some(comm) = comm {
            sink.record(&Record::Comm { process, time_ns, comm: &comm })?;
            if let Some(known) = self.processes.get_mut(&pid) {
                known.comm = comm;
            }
        }
        match self.source.command_line(pid) {
            Some(arguments) if !arguments.is_empty() => {
                sink.record(&Record::CommandLine { process, time_ns, arguments: &arguments })
            }
            _ => Ok(()),
        }
    }

    fn mapped(&mut self, mmap: &Mmap) {
        if !mmap.executable {
            return;
        }
        let range = mmap.start_avma..mmap.start_avma.saturating_add(mmap.len_bytes);
        let Some(process) = self.processes.get_mut(&mmap.task.pid) else { return };
        let region = region(range, mmap.file_offset, &mmap.file, &mmap.path, &mut self.images);
        process.map(region);
    }

    fn renamed<K: RecordSink>(
        &mut self,
        time_ns: u64,
        task: Task,
        comm: Box<[u8]>,
        exec: bool,
        sink: &mut K,
    ) -> Result<(), K::Error> {
        self.ensure(time_ns, task.pid, sink)?;
        let process = self.output.process(&mut self.processes, task.pid, sink)?;
        if exec {
            sink.record(&Record::Exec { process, time_ns })?;
            if let Some(known) = self.processes.get_mut(&task.pid) {
                known.exec();
            }
            return self.describe(time_ns, task.pid, Some(comm), sink);
        }
        if task.tid == task.pid {
            sink.record(&Record::Comm { process, time_ns, comm: &comm })?;
            if let Some(known) = self.processes.get_mut(&task.pid) {
                known.comm = comm;
            }
            return Ok(());
        }
        let Some(known) = self.processes.get_mut(&task.pid) else { return Ok(()) };
        let thread = known.threads.entry(task.tid).or_insert_with(|| started(time_ns));
        if let Some(thread) = thread.id {
            sink.record(&Record::ThreadName { thread, time_ns, name: &comm })?;
        }
        thread.name = Some(comm);
        Ok(())
    }

    fn forked<K: RecordSink>(
        &mut self,
        time_ns: u64,
        child: Task,
        parent: Task,
        sink: &mut K,
    ) -> Result<(), K::Error> {
        self.ensure(time_ns, parent.pid, sink)?;
        if child.pid != parent.pid {
            self.begin(time_ns, child.pid, Some(parent.pid), sink)?;
            let parent = self.output.process(&mut self.processes, parent.pid, sink)?;
            let child = self.output.process(&mut self.processes, child.pid, sink)?;
            return sink.record(&Record::Fork { parent, child, time_ns });
        }
        let Some(process) = self.processes.get_mut(&child.pid) else { return Ok(()) };
        // A thread begins with the name of the one that made it.
        let name = process.threads.get(&parent.tid).and_then(|thread| thread.name.clone());
        process.threads.insert(child.tid, Thread { name, ..started(time_ns) });
        Ok(())
    }

    fn thread_ended<K: RecordSink>(
        &mut self,
        time_ns: u64,
        task: Task,
        sink: &mut K,
    ) -> Result<(), K::Error> {
        if !self.processes.contains_key(&task.pid) {
            return Ok(());
        }
        let owner = self.output.process(&mut self.processes, task.pid, sink)?;
        let Some(process) = self.processes.get_mut(&task.pid) else { return Ok(()) };
        // Leader exit is not process exit: siblings may run.
        let Some(thread) = process.threads.get(&task.tid) else { return Ok(()) };
        // A thread too short for a sample is told all the same; a process's first thread is told by the process.
        let is_told = thread.id.is_some() || task.tid != task.pid;
        if is_told {
            let thread = self.output.thread(owner, process, task.tid, time_ns, sink)?;
            sink.record(&Record::ThreadExit { thread, time_ns })?;
        }
        process.threads.remove(&task.tid);
        Ok(())
    }

    fn process_ended<K: RecordSink>(
        &mut self,
        time_ns: u64,
        pid: u32,
        sink: &mut K,
    ) -> Result<(), K::Error> {
        if !self.processes.contains_key(&pid) {
            return Ok(());
        }
        let process = self.output.process(&mut self.processes, pid, sink)?;
        self.processes.remove(&pid);
        sink.record(&Record::ProcessExit { process, time_ns })
    }
}

pub(crate) fn started(started_ns: u64) -> Thread {
    Thread { started_ns, ..Thread::default() }
}

/// What a sample's registers are good for.
#[expect(clippy::large_enum_variant, reason = "one at a time, on the stack")]
pub(crate) enum UserState {
    /// They can be unwound.
    Registers(RegisterSet),
    /// The sample carries none.
    Missing,
    /// They are those of 32-bit code.
    Bits32,
}
