//! Which threads have events of their own, or inherited ones.

use std::collections::HashSet;

/// Threads that are followed: opened at attach, or created by one that was.
///
/// A thread that is opened although it has inherited its creator's events would be sampled twice.
#[derive(Debug, Default)]
pub(crate) struct Followed {
    tids: HashSet<u32>,
    /// Whether records of new threads may have been lost: then no thread is known to be without events.
    blind: bool,
}

impl Followed {
    /// Notes a thread whose events were opened or inherited.
    pub(crate) fn began(&mut self, tid: u32) {
        self.tids.insert(tid);
    }

    /// Notes that a thread has ended.
    pub(crate) fn ended(&mut self, tid: u32) {
        self.tids.remove(&tid);
    }

    /// Notes that records of new threads were lost.
    pub(crate) fn lost_sight(&mut self) {
        self.blind = true;
    }

    /// Whether records of new threads were lost.
    pub(crate) fn is_blind(&self) -> bool {
        self.blind
    }

    pub(crate) fn contains(&self, tid: u32) -> bool {
        self.tids.contains(&tid)
    }
}
