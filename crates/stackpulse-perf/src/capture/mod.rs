//! Live capture: events opened, rings drained, their records put in order.

mod attach;
mod attr;
mod budget;
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
mod retire;
mod ring;
mod rounds;
pub mod schedule;
mod start;
mod sys;
mod tasks;
mod topology;
mod watchdog;

pub use attach::{AttachOutcome, RefreshOutcome};
pub use attr::SampledEvent;
pub use options::{AttachMode, CaptureOptions, EventChoice, MAX_STACK_SIZE_BYTES};

use crate::error::CaptureError;
use crate::event::{Event, EventKind};
use crate::sorter::Sorter;
use crate::stats::Statistics;
use cpu::Which;
use exits::{Exits, PIDFD_TOKEN};
use followed::Followed;
use pool::Pool;
use retire::Retirement;
use std::fs::File;
use std::io::{self, Read, Write};
use std::sync::Arc;
use std::time::Duration;
use sys::{Poller, Ready};
use topology::Topology;

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
    retirement: Retirement,
    followed: Followed,
    poller: Poller,
    ready: Vec<Ready>,
    waker: Waker,
    settings: Settings,
    inherit_children: bool,
    sampling: bool,
    /// Where events of the capture's own go in the sorter: behind the rings.
    own_queue: usize,
    /// When it was last looked which CPUs are online.
    cpus_seen_ns: u64,
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
    /// Bytes of all rings, with what they need besides: what counts against the next.
    pub locked_bytes: u64,
    /// Bytes that this process may lock for rings, by `kernel.perf_event_mlock_kb` and RLIMIT_MEMLOCK; `None` if as many as
    /// it likes.
    pub lockable_bytes: Option<u64>,
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
