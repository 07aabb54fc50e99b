//! How a capture begins: with a process, with everything, or with a control group.

use super::attr::Start;
use super::exits::Exits;
use super::followed::Followed;
use super::limits::refused;
use super::options::{AttachMode, CaptureOptions};
use super::pool::Pool;
use super::retire::Retirement;
use super::sys::{self, Poller};
use super::topology::{Scope, Topology};
use super::{Capture, Settings, WAKER_TOKEN, Waker, attach, clock, tasks};
use crate::error::{OpenError, OpenStep};
use crate::event::{Event, EventKind};
use crate::sorter::Sorter;
use crate::stats::Statistics;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

/// Bytes of buffers for samples that cannot stay in ring memory.
const POOL_BYTES: usize = 256 << 20;

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
        let mut capture = Self::of(Scope::Processes(pid), options)?;
        if !capture.open(pid, mode)? {
            return Err(OpenError::NoSuchProcess { pid });
        }
        Ok(capture.settled())
    }

    /// Follows everything that runs, by events of CPUs: it needs `kernel.perf_event_paranoid` of 0 or less, CAP_PERFMON or
    /// root. Processes that run already are told of as attached; whether children are followed is not asked.
    ///
    /// # Errors
    ///
    /// When that is not permitted, or rings cannot be had; then nothing stays open.
    pub fn system_wide(options: &CaptureOptions) -> Result<Self, OpenError> {
        let mut capture = Self::of(Scope::Everything, &options.checked()?)?;
        capture.open_cpus(tasks::all)?;
        Ok(capture.settled())
    }

    /// Follows what a control group (version 2) and those below it run: `directory` is the group's, such as
    /// `/sys/fs/cgroup/system.slice`. Needs what [`system_wide`](Self::system_wide) needs.
    ///
    /// Processes in the group are told of as attached. One that is moved into it later is sampled, and not told of.
    ///
    /// # Errors
    ///
    /// When the directory is no control group's, or as [`system_wide`](Self::system_wide).
    pub fn cgroup(directory: &Path, options: &CaptureOptions) -> Result<Self, OpenError> {
        let options = &options.checked()?;
        let open =
            File::open(directory).map_err(|error| refused(OpenStep::OpenCgroup, error, None));
        let mut capture = Self::of(Scope::Cgroup(open?), options)?;
        capture.open_cpus(|| tasks::in_cgroup(directory))?;
        Ok(capture.settled())
    }

    /// Finds out what the kernel grants; nothing is open yet.
    fn of(scope: Scope, options: &CaptureOptions) -> Result<Self, OpenError> {
        let prepare = |error| refused(OpenStep::Prepare, error, None);
        let topology = Topology::probe(scope, options)?;
        let own_queue = topology.cpus.len() * 2;
        let waker = Waker(Arc::new(sys::eventfd().map_err(prepare)?));
        let poller = Poller::new().map_err(prepare)?;
        poller.add(&*waker.0, WAKER_TOKEN).map_err(prepare)?;
        let granted = topology.attributes.granted;
        let inherit_children = options.inherit_children || topology.scope.fixed_name().is_some();
        Ok(Self {
            settings: Settings {
                event: granted.event,
                frequency_hz: options.frequency_hz,
                stack_size_bytes: options.stack_size_bytes,
                kernel_frames: granted.kernel,
                inherit_children,
                ring_bytes: 0,
                locked_bytes: 0,
                lockable_bytes: topology.budget.lockable_bytes,
                rings_reduced: false,
                cpus: topology.sampled_cpus(),
            },
            sorter: Sorter::new(own_queue + 1),
            pool: Pool::new(POOL_BYTES),
            statistics: Statistics::default(),
            exits: Exits::default(),
            retirement: Retirement::default(),
            followed: Followed::default(),
            ready: Vec::new(),
            inherit_children,
            sampling: options.start_enabled,
            topology,
            poller,
            waker,
            own_queue,
            cpus_seen_ns: clock::monotonic_ns(),
        })
    }

    /// Takes note of what was mapped in the end.
    fn settled(mut self) -> Self {
        let budget = &self.topology.budget;
        self.settings.ring_bytes = budget.sample_ring_bytes();
        self.settings.locked_bytes = budget.bytes();
        self.settings.rings_reduced = budget.is_reduced;
        self
    }

    /// Opens CPUs, and tells of the processes that run there already.
    fn open_cpus(&mut self, list: impl Fn() -> Vec<(u32, Option<u32>)>) -> Result<(), OpenError> {
        let time_ns = clock::monotonic_ns();
        self.topology.open_cpus()?;
        let mut processes = list();
        // Those created since then were told of by their forks.
        self.read_rings();
        processes.retain(|&(pid, _)| !self.followed.contains(pid));
        let attaching = attach::Attaching::new(AttachMode::Running, Start::ByRequest);
        for (pid, parent) in processes {
            self.follow(pid)?;
            let kind = EventKind::Attached(attaching.describe(pid, parent));
            self.sorter.push(self.own_queue, time_ns, Event { time_ns, cpu: None, kind });
        }
        self.begin(0, None)
    }
}
