//! Attaching: events for every thread there is, none missed and none twice.

use super::attr::Start;
use super::followed::Followed;
use super::limits::refused;
use super::options::AttachMode;
use super::topology::Topology;
use super::watchdog::Stopped;
use super::{Capture, clock, schedule, sys, tasks};
use crate::error::{OpenError, OpenStep};
use crate::event::{AttachedProcess, Event, EventKind, Task};
use std::collections::BTreeSet;

/// How often threads and processes may be listed, each time with new ones: inherited events catch the rest.
const MAX_PASSES: usize = 64;

/// What became of a process to attach to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttachOutcome {
    /// It is followed from now on.
    Attached,
    /// It was followed already.
    AlreadyAttached,
    /// It has ended.
    Exited,
}

/// What became of a process whose threads were looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefreshOutcome {
    /// All its threads are followed now.
    Refreshed {
        /// How many were not before.
        added: usize,
    },
    /// It has ended.
    Exited,
}

impl Capture {
    /// Follows one more process, with what is wanted of its descendants.
    ///
    /// # Errors
    ///
    /// As [`attach`](Self::attach); what this call opened is closed again.
    pub fn attach_process(
        &mut self,
        pid: u32,
        mode: AttachMode,
    ) -> Result<AttachOutcome, OpenError> {
        if let Some(followed) = self.topology.scope.fixed_name() {
            return Err(OpenError::FixedScope { pid, followed });
        }
        // It may have been forked by a process that is followed.
        self.read_rings();
        let noted = self.exits.open_noted(&self.poller);
        noted.map_err(|error| refused(OpenStep::Prepare, error, pid))?;
        if self.exits.is_followed(pid) {
            let ended = self.exits.has_ended(pid);
            if !ended.map_err(|error| refused(OpenStep::Inspect { pid }, error, pid))? {
                return Ok(AttachOutcome::AlreadyAttached);
            }
            // If the pid is in use again, it is another process's: the old one's end comes first.
            self.exits.forget(pid, &self.poller);
            self.push_own(EventKind::ProcessExit { pid });
        }
        match tasks::check_target(pid, mode == AttachMode::Running) {
            Err(OpenError::NoSuchProcess { .. } | OpenError::Zombie { .. }) => {
                return Ok(AttachOutcome::Exited);
            }
            other => other?,
        }
        Ok(if self.open(pid, mode)? { AttachOutcome::Attached } else { AttachOutcome::Exited })
    }

    /// Looks for threads of a followed process that are not followed, and follows them.
    ///
    /// New threads inherit what their creators have, so there are none unless one was created while its creator was
    /// being attached to. After lifecycle records were lost nothing is looked for: what has events is no longer known.
    ///
    /// # Errors
    ///
    /// [`OpenError::NotFollowed`], or when a thread cannot be captured; those of this call are closed again.
    pub fn refresh_threads(&mut self, pid: u32) -> Result<RefreshOutcome, OpenError> {
        if !self.exits.is_followed(pid) {
            return Err(OpenError::NotFollowed { pid });
        }
        let inspect = |error| refused(OpenStep::Inspect { pid }, error, pid);
        if self.exits.has_ended(pid).map_err(inspect)? {
            return Ok(RefreshOutcome::Exited);
        }
        self.read_rings();
        if self.followed.is_blind() || self.topology.scope.fixed_name().is_some() {
            return Ok(RefreshOutcome::Refreshed { added: 0 });
        }
        let before = self.topology.len();
        let mut attaching = Attaching::new(AttachMode::Running, Start::ByRequest);
        match self.open_threads(&mut attaching, pid).and_then(|_| self.begin(before, Some(pid))) {
            Ok(()) => Ok(RefreshOutcome::Refreshed { added: self.topology.len() - before }),
            Err(error) => {
                attaching.opened.iter().for_each(|&tid| self.followed.ended(tid));
                self.topology.roll_back(before);
                Err(error)
            }
        }
    }

    /// Opens a process and its descendants, and lets them be sampled. `Ok(false)` if the process has ended.
    pub(super) fn open(&mut self, pid: u32, mode: AttachMode) -> Result<bool, OpenError> {
        if mode != AttachMode::StopWhileAttaching {
            return self.open_on_this_thread(pid, mode);
        }
        // What ptrace holds is let go at the latest when the thread that holds it ends: so it is one that soon does,
        // even if a held thread is where it cannot be detached from, or this code panics.
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().name("sp-attach".to_owned());
            let spawned = thread.spawn_scoped(scope, || {
                // Best effort: while it waits for a CPU, the target waits for it.
                let _ = schedule::run_promptly();
                self.open_on_this_thread(pid, mode)
            });
            let spawned = spawned.map_err(|error| refused(OpenStep::Prepare, error, pid))?;
            spawned.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    fn open_on_this_thread(&mut self, pid: u32, mode: AttachMode) -> Result<bool, OpenError> {
        let start = match mode {
            AttachMode::OnExec if self.sampling => Start::OnExec,
            _ => Start::ByRequest,
        };
        let before = self.topology.len();
        // Threads that are held go on when this is dropped: when everything is enabled, or on an error.
        let mut attaching = Attaching::new(mode, start);
        let mut opened = Vec::new();
        let outcome = self.open_tree(&mut attaching, pid, &mut opened).and_then(|()| {
            for (_, process) in &opened {
                self.follow(process.pid)?;
            }
            if start == Start::ByRequest {
                self.begin(before, Some(pid))
            } else {
                self.watch_rings(Some(pid))
            }
        });
        if let Err(error) = outcome {
            for (_, process) in &opened {
                self.exits.forget(process.pid, &self.poller);
            }
            attaching.opened.iter().for_each(|&tid| self.followed.ended(tid));
            self.topology.roll_back(before);
            return Err(error);
        }
        let is_open = !opened.is_empty();
        for (time_ns, process) in opened {
            let kind = EventKind::Attached(process);
            self.sorter.push(self.own_queue, time_ns, Event { time_ns, cpu: None, kind });
        }
        Ok(is_open)
    }

    /// Opens a process and what is wanted of its descendants, until a listing shows no new one. What was opened comes
    /// with the time before its opening.
    fn open_tree(
        &mut self,
        attaching: &mut Attaching,
        root: u32,
        opened: &mut Vec<(u64, AttachedProcess)>,
    ) -> Result<(), OpenError> {
        let mut seen = BTreeSet::from([root]);
        let mut new = vec![(root, tasks::parent(root))];
        for _ in 0..MAX_PASSES {
            for (pid, parent) in new {
                // Its events are open and its maps are copied: it need not wait for those that come after it.
                attaching.let_go();
                let time_ns = clock::monotonic_ns();
                if self.open_threads(attaching, pid)? {
                    opened.push((time_ns, attaching.describe(pid, parent)));
                }
            }
            if !self.inherit_children || opened.is_empty() {
                break;
            }
            if attaching.mode == AttachMode::StopWhileAttaching {
                new = tasks::children_below(root).unwrap_or_default();
                self.retain_new(&mut new, &mut seen);
            } else {
                new = Vec::new();
            }
            if new.is_empty() {
                // A child that ends while it is listed may hide others. All that runs on the machine is looked at, and
                // nothing is kept waiting for that.
                attaching.let_go();
                new = tasks::descendants(root);
                self.retain_new(&mut new, &mut seen);
            }
            if new.is_empty() {
                break;
            }
        }
        Ok(())
    }

    /// Leaves processes that were not seen before, and have no events: a child that has inherited its parent's was told of by
    /// its fork.
    fn retain_new(&mut self, found: &mut Vec<(u32, Option<u32>)>, seen: &mut BTreeSet<u32>) {
        self.read_rings();
        found.retain(|&(pid, _)| !self.followed.contains(pid) && seen.insert(pid));
    }

    /// Opens the threads of a process until a listing shows no new one. Whether any was opened.
    fn open_threads(&mut self, attaching: &mut Attaching, pid: u32) -> Result<bool, OpenError> {
        let mut any = false;
        for _ in 0..MAX_PASSES {
            match attaching.pass(pid, &mut self.topology, &mut self.followed)? {
                None | Some(0) => break,
                Some(_) => any = true,
            }
            // Threads created since then by threads that were open are told of by their forks.
            self.read_rings();
        }
        Ok(any)
    }

    /// Follows a process to its end; one that has ended already is told to have.
    pub(super) fn follow(&mut self, pid: u32) -> Result<(), OpenError> {
        let followed = match self.exits.follow(pid, &self.poller) {
            Err(error) if error.raw_os_error() == Some(libc::EMFILE) && sys::raise_open_files() => {
                self.exits.follow(pid, &self.poller)
            }
            other => other,
        };
        if !followed.map_err(|error| refused(OpenStep::Prepare, error, pid))? {
            self.exits.note(pid);
        }
        Ok(())
    }

    /// Lets the events from the one at `first` on count, if sampling is on.
    pub(super) fn begin(&mut self, first: usize, pid: Option<u32>) -> Result<(), OpenError> {
        if self.sampling {
            let enabled = self.topology.cpus.iter().try_for_each(|cpu| cpu.switch(first, true));
            enabled.map_err(|error| refused(OpenStep::Enable, error, pid))?;
        }
        self.watch_rings(pid)
    }

    fn watch_rings(&mut self, pid: Option<u32>) -> Result<(), OpenError> {
        let watched = self.topology.watch(&self.poller);
        watched.map_err(|error| refused(OpenStep::Prepare, error, pid))
    }
}

/// Opens threads, held still where that is wanted and allowed. Dropped, it lets them go.
pub(crate) struct Attaching {
    mode: AttachMode,
    start: Start,
    held: Vec<sys::HeldThread>,
    /// What ptrace may not hold.
    stopped: Option<Stopped>,
    /// The threads whose events were opened.
    pub(crate) opened: Vec<u32>,
}

impl Attaching {
    pub(crate) fn new(mode: AttachMode, start: Start) -> Self {
        Self { mode, start, held: Vec::new(), stopped: None, opened: Vec::new() }
    }

    /// Lets all that is held go on.
    fn let_go(&mut self) {
        self.held.clear();
        self.stopped = None;
    }

    /// Opens the threads of a process that are not followed. How many were opened, or `None` if the process has ended.
    pub(crate) fn pass(
        &mut self,
        pid: u32,
        topology: &mut Topology,
        followed: &mut Followed,
    ) -> Result<Option<usize>, OpenError> {
        let threads = match tasks::threads(pid) {
            // It stays raised, so this happens once.
            Err(error) if error.raw_os_error() == Some(libc::EMFILE) && sys::raise_open_files() => {
                tasks::threads(pid)
            }
            other => other,
        };
        let threads = match threads {
            Ok(threads) => threads,
            Err(error) if tasks::is_gone(&error) => return Ok(None),
            Err(error) => return Err(refused(OpenStep::Inspect { pid }, error, pid)),
        };
        let new: Vec<u32> = threads.into_iter().filter(|&tid| !followed.contains(tid)).collect();
        // A process that is recorded by one it has started has its recorder among its descendants: that must run.
        if self.mode == AttachMode::StopWhileAttaching && pid != std::process::id() {
            let seized = sys::HeldThread::seize_all(&new);
            self.held.extend(seized.held);
            if seized.is_denied {
                self.stopped = self.stopped.take().or_else(Stopped::none);
            }
            if seized.is_denied
                && let Some(stopped) = &mut self.stopped
            {
                stopped.stop(pid);
            }
        }
        let mut opened = 0;
        for tid in new {
            if topology.open_thread(Task { pid, tid }, self.start)? {
                followed.began(tid);
                self.opened.push(tid);
                opened += 1;
            }
        }
        Ok(Some(opened))
    }

    /// Describes a process whose threads are open.
    pub(crate) fn describe(&self, pid: u32, parent_pid: Option<u32>) -> AttachedProcess {
        let maps = match self.mode {
            AttachMode::OnExec => Box::default(),
            // What cannot be read (a process that may not be dumped) is told by the records that follow.
            _ => tasks::maps(pid).unwrap_or_default(),
        };
        let threads = tasks::threads(pid).unwrap_or_default();
        let threads = threads.into_iter().map(|tid| (tid, tasks::comm(pid, tid))).collect();
        AttachedProcess { pid, parent_pid, threads, maps }
    }
}
