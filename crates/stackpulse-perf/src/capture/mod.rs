//! Live capture: events opened, rings drained, their records put in order.

mod attach;
mod attr;
pub mod clock;
mod cpu;
mod exits;
mod followed;
pub mod launch;
pub(crate) mod lease;
mod limits;
mod options;
mod pool;
mod reader;
mod ring;
pub mod schedule;
mod sys;
mod tasks;
mod topology;

pub use attach::{AttachOutcome, RefreshOutcome};
pub use attr::SampledEvent;
pub use options::{AttachMode, CaptureOptions, EventChoice, MAX_STACK_SIZE_BYTES};

use crate::batch::Batch;
use crate::error::{CaptureError, OpenError, OpenStep};
use crate::event::{Event, EventKind};
use crate::sorter::Sorter;
use crate::stats::Statistics;
use attr::Attributes;
use cpu::Which;
use exits::{Exits, PIDFD_TOKEN};
use followed::Followed;
use limits::refused;
use pool::Pool;
use reader::{Reader, Source};
use std::fs::File;
use std::io::{self, Read, Write};
use std::sync::Arc;
use std::time::Duration;
use sys::{Poller, Ready};
use topology::Topology;

/// Bytes of buffers for samples that cannot stay in ring memory.
const POOL_BYTES: usize = 256 << 20;

/// The epoll token of the waker; a ring's is twice its CPU's index, and one more for the lifecycle ring.
const WAKER_TOKEN: u64 = u64::MAX;

/// How soon rings are read again while events wait for their second round.
const SECOND_ROUND: Duration = Duration::from_millis(5);

/// Follows processes: their events, in order.
///
/// Call [`wait`](Self::wait), then [`drain`](Self::drain), again and again; [`finish`](Self::finish) at the end.
#[derive(Debug)]
pub struct Capture {
    topology: Topology,
    sorter: Sorter<u64, Event>,
    pool: Pool,
    statistics: Statistics,
    exits: Exits,
    followed: Followed,
    poller: Poller,
    ready: Vec<Ready>,
    waker: Waker,
    settings: Settings,
    inherit_children: bool,
    sampling: bool,
    /// Where events of the capture's own go in the sorter: behind the rings.
    own_queue: usize,
}

/// What a capture came to be, after the kernel's limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Settings {
    /// The event that is sampled.
    pub event: SampledEvent,
    /// Samples per second and CPU.
    pub frequency_hz: u32,
    /// Bytes of user stack with each sample.
    pub stack_size_bytes: u32,
    /// Whether kernel frames come with the samples.
    pub kernel_frames: bool,
    /// Whether children are followed.
    pub inherit_children: bool,
    /// Bytes of each CPU's sample ring.
    pub ring_bytes: usize,
    /// Whether that is less than asked for, because the kernel granted no more.
    pub rings_reduced: bool,
    /// CPUs that are sampled.
    pub cpus: usize,
}

/// Ends a [`Capture::wait`] from another thread.
#[derive(Clone, Debug)]
pub struct Waker(Arc<File>);

impl Waker {
    /// Makes the wait end; one that has not begun ends at once.
    pub fn wake(&self) {
        // The only error is a counter that is full, and then the wait ends anyway.
        let _ = (&*self.0).write(&1u64.to_ne_bytes());
    }
}

impl Capture {
    /// Opens events for a process, its threads, and if wanted its descendants. When this returns, they are sampled; with
    /// [`AttachMode::OnExec`] sampling begins with the exec.
    ///
    /// # Errors
    ///
    /// When the process cannot be captured; then nothing stays open, and no thread stands still.
    pub fn attach(pid: u32, mode: AttachMode, options: &CaptureOptions) -> Result<Self, OpenError> {
        let options = &options.checked()?;
        tasks::check_target(pid, mode == AttachMode::Running)?;
        let prepare = |error| refused(OpenStep::Prepare, error, pid);
        let topology = Topology::probe(pid, options)?;
        let own_queue = topology.cpus.len() * 2;
        let waker = Waker(Arc::new(sys::eventfd().map_err(prepare)?));
        let poller = Poller::new().map_err(prepare)?;
        poller.add(&*waker.0, WAKER_TOKEN).map_err(prepare)?;
        let granted = topology.attributes.granted;
        let mut capture = Self {
            settings: Settings {
                event: granted.event,
                frequency_hz: options.frequency_hz,
                stack_size_bytes: options.stack_size_bytes,
                kernel_frames: granted.kernel,
                inherit_children: options.inherit_children,
                ring_bytes: 0,
                rings_reduced: false,
                cpus: topology.cpus.len(),
            },
            sorter: Sorter::new(own_queue + 1),
            pool: Pool::new(POOL_BYTES),
            statistics: Statistics::default(),
            exits: Exits::default(),
            followed: Followed::default(),
            ready: Vec::new(),
            inherit_children: options.inherit_children,
            sampling: options.start_enabled,
            topology,
            poller,
            waker,
            own_queue,
        };
        if !capture.open(pid, mode)? {
            return Err(OpenError::NoSuchProcess { pid });
        }
        capture.settings.ring_bytes =
            capture.topology.cpus.first().map_or(0, cpu::CpuEvents::ring_bytes);
        capture.settings.rings_reduced = capture.topology.rings_reduced;
        Ok(capture)
    }

    /// Returns what the capture came to be.
    #[must_use]
    pub fn settings(&self) -> Settings {
        self.settings
    }

    /// Returns what ends a [`wait`](Self::wait) from another thread.
    #[must_use]
    pub fn waker(&self) -> Waker {
        self.waker.clone()
    }

    /// Waits until rings have filled to a quarter, a process has ended, the waker was used, or the time is over. While
    /// events wait for their second round, the time is short.
    ///
    /// # Errors
    ///
    /// When the kernel refuses to wait.
    pub fn wait(&mut self, timeout: Duration) -> Result<(), CaptureError> {
        let failed = |source| CaptureError { attempt: "wait for events", source };
        let timeout = if self.sorter.is_empty() { timeout } else { timeout.min(SECOND_ROUND) };
        // Rounded up: a wait of less than a millisecond is not none.
        let timeout_ms = timeout.as_nanos().div_ceil(1_000_000).try_into().unwrap_or(i32::MAX);
        let mut ready = std::mem::take(&mut self.ready);
        let waited = self.poller.wait(timeout_ms, &mut ready);
        let handled =
            waited.and_then(|()| ready.iter().try_for_each(|&ready| self.handle_ready(ready)));
        self.ready = ready;
        handled.map_err(failed)
    }

    fn handle_ready(&mut self, ready: Ready) -> io::Result<()> {
        if ready.token == WAKER_TOKEN {
            let mut count = [0; 8];
            // Nonblocking: another wait may have taken the count.
            let _ = (&*self.waker.0).read(&mut count);
        } else if ready.token & PIDFD_TOKEN != 0 {
            let pid = u32::try_from(ready.token & !PIDFD_TOKEN).unwrap_or_default();
            self.exits.saw_exit(pid, &self.poller);
        } else if ready.hung_up {
            let at = usize::try_from(ready.token / 2).unwrap_or_default();
            let which =
                if ready.token.is_multiple_of(2) { Which::Samples } else { Which::Lifecycle };
            if let Some(cpu) = self.topology.cpus.get_mut(at) {
                cpu.watch_next(which, &self.poller, ready.token)?;
            }
        }
        Ok(())
    }

    /// Reads every ring once, and adds to the batch what is in order for good.
    ///
    /// # Errors
    ///
    /// When the ends of processes can no longer be followed.
    pub fn drain(&mut self, batch: &mut Batch) -> Result<(), CaptureError> {
        self.read_round()?;
        self.sorter.end_round();
        self.release(batch);
        if self.topology.cpus.iter().any(cpu::CpuEvents::is_crowded) {
            self.detach_waiting();
        }
        Ok(())
    }

    /// Copies samples out of ring memory: those in the batch and those that wait; what the pool has no room for stays.
    pub fn detach(&mut self, batch: &mut Batch) {
        for event in batch.iter_mut() {
            detach(event, &mut self.pool, &mut self.statistics);
        }
        self.detach_waiting();
    }

    fn detach_waiting(&mut self) {
        for event in self.sorter.waiting_mut() {
            detach(event, &mut self.pool, &mut self.statistics);
        }
        self.topology.cpus.iter_mut().for_each(cpu::CpuEvents::reclaim);
    }

    /// Lets sampling go on.
    ///
    /// # Errors
    ///
    /// When the kernel refuses.
    pub fn enable(&mut self) -> Result<(), CaptureError> {
        self.switch(true)
    }

    /// Pauses sampling; mappings, forks and execs are followed on.
    ///
    /// # Errors
    ///
    /// When the kernel refuses.
    pub fn disable(&mut self) -> Result<(), CaptureError> {
        self.switch(false)
    }

    fn switch(&mut self, on: bool) -> Result<(), CaptureError> {
        let attempt = if on { "resume sampling" } else { "pause sampling" };
        let switched = self.topology.cpus.iter().try_for_each(|cpu| cpu.switch(0, on));
        switched.map_err(|source| CaptureError { attempt, source })?;
        if self.sampling != on {
            self.sampling = on;
            let kind = EventKind::Pause { paused: !on };
            self.push_own(kind);
        }
        Ok(())
    }

    /// Stops sampling and releases everything there is, in order.
    ///
    /// # Errors
    ///
    /// The first failure; all steps are tried.
    pub fn finish(&mut self, batch: &mut Batch) -> Result<(), CaptureError> {
        let disabled = self.topology.cpus.iter().try_for_each(|cpu| cpu.switch(0, false));
        self.sampling = false;
        // Held leases keep the kernel's writers out only of full rings, so one round sees all that is left.
        let read = self.read_round();
        let counted = self.count_untold_loss();
        self.sorter.end();
        self.release(batch);
        disabled.map_err(|source| CaptureError { attempt: "stop sampling", source })?;
        read?;
        counted.map_err(|source| CaptureError { attempt: "read how many events were lost", source })
    }

    /// Tells of losses that no record told: those after which nothing more was written.
    fn count_untold_loss(&mut self) -> io::Result<()> {
        if !self.topology.attributes.granted.counts_lost {
            return Ok(());
        }
        for cpu in &self.topology.cpus {
            let events = cpu.untold_lost()?;
            if events > 0 {
                self.statistics.lost = self.statistics.lost.saturating_add(events);
                let time_ns = clock::monotonic_ns();
                let kind = EventKind::Lost { events, lifecycle: false };
                let event = Event { time_ns, cpu: Some(cpu.cpu), kind };
                self.sorter.push(self.own_queue, time_ns, event);
            }
        }
        Ok(())
    }

    fn read_round(&mut self) -> Result<(), CaptureError> {
        let ended = self.exits.take_ended();
        self.read_rings();
        // Their ends were seen before the rings were read, so all that is theirs has been read. Where a pid is in use
        // again, the new process's fork has told the old one's end, and a later end would be taken for the new one's.
        for pid in ended {
            if !self.exits.is_noted(pid) {
                self.push_own(EventKind::ProcessExit { pid });
            }
        }
        self.exits
            .open_noted(&self.poller)
            .map_err(|source| CaptureError { attempt: "follow the ends of processes", source })
    }

    fn read_rings(&mut self) {
        let arch = self.topology.arch;
        let layouts = [self.topology.attributes.layout(arch), Attributes::lifecycle_layout(arch)];
        let mut reader = Reader {
            sorter: &mut self.sorter,
            pool: &mut self.pool,
            statistics: &mut self.statistics,
            exits: &mut self.exits,
            followed: &mut self.followed,
            layouts,
            follows_children: self.inherit_children,
            queue: 0,
            source: Source { cpu: 0, which: Which::Samples, leases: false },
        };
        for cpu in &mut self.topology.cpus {
            cpu.read(&mut reader);
            reader.queue += 2;
        }
    }

    fn push_own(&mut self, kind: EventKind) {
        let time_ns = clock::monotonic_ns();
        self.sorter.push(self.own_queue, time_ns, Event { time_ns, cpu: None, kind });
    }

    fn release(&mut self, batch: &mut Batch) {
        while let Some((_, event)) = self.sorter.pop() {
            batch.push(event);
        }
    }

    /// Returns what has been met so far.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        self.statistics
    }

    /// Whether a process is followed and has not ended.
    #[must_use]
    pub fn process_is_active(&self, pid: u32) -> bool {
        self.exits.is_followed(pid)
    }

    /// Returns the processes that are followed and have not ended.
    pub fn active_processes(&self) -> impl Iterator<Item = u32> + '_ {
        self.exits.living()
    }

    /// Whether events wait in a ring or for their second round.
    #[must_use]
    pub fn has_pending_events(&self) -> bool {
        !self.sorter.is_empty() || self.topology.cpus.iter().any(cpu::CpuEvents::has_unread)
    }
}

/// Moves a sample's bytes out of ring memory, if the pool has room.
fn detach(event: &mut Event, pool: &mut Pool, statistics: &mut Statistics) {
    if let EventKind::Sample(sample) = &mut event.kind
        && sample.payload().is_leased()
        && let Some(copy) = pool.copy([sample.payload().bytes(), &[]])
    {
        statistics.saw_copy(copy.bytes().len());
        sample.replace_payload(copy);
    }
}
