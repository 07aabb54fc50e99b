//! When processes end: a recording tells of threads only.

use stackpulse_perf::{Event, EventKind};
use std::collections::{HashMap, HashSet};

/// What becomes of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It is handed on.
    Kept,
    /// It is handed on, and with it this process has ended.
    LastOf(u32),
    /// It says nothing new.
    Dropped,
}

/// The threads that are known to live, by process.
#[derive(Debug, Default)]
pub(super) struct Lifecycles {
    threads: HashMap<u32, HashSet<u32>>,
    /// After a loss a thread may live that was never told of.
    has_lost: bool,
}

impl Lifecycles {
    /// Follows an event; call it in the order of time.
    pub(super) fn follow(&mut self, event: &Event) -> Fate {
        match &event.kind {
            EventKind::Attached(process) => {
                if self.threads.contains_key(&process.pid) {
                    return Fate::Dropped;
                }
                self.threads.entry(process.pid).or_default().insert(process.pid);
            }
            EventKind::Comm { task, .. } => {
                self.threads.entry(task.pid).or_default().insert(task.tid);
            }
            EventKind::Fork { child, parent } => {
                if child.pid != parent.pid {
                    // A pid that is used again is another process.
                    self.threads.remove(&child.pid);
                }
                self.threads.entry(child.pid).or_default().insert(child.tid);
            }
            EventKind::Lost { .. } => self.has_lost = true,
            EventKind::Exit { task } => {
                let Some(threads) = self.threads.get_mut(&task.pid) else { return Fate::Kept };
                threads.remove(&task.tid);
                if threads.is_empty() {
                    self.threads.remove(&task.pid);
                    if !self.has_lost {
                        return Fate::LastOf(task.pid);
                    }
                }
            }
            _ => {}
        }
        Fate::Kept
    }
}
