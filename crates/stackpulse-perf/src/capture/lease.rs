//! Records that stay in ring memory while they are used: the lease protocol.
//!
//! The capture thread hands out leases in the order of the ring, each with a slot of its own. A lease may be
//! dropped on any thread and in any order: dropping it marks its slot free, with `Release`, so that all reads of
//! the record come before. The capture thread looks at the oldest slots, with `Acquire`, and moves the ring's
//! tail over every record whose lease, and all leases before, are back. Only then may the kernel write there.
//!
//! ```text
//! consumer        read the record ...... clear flag (Release)
//!                                             |
//! capture thread                         see it cleared (Acquire) ...... store the tail (Release) ...... kernel writes
//! ```

use super::ring::RingMemory;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A record in ring memory that the kernel will not overwrite while this exists.
#[derive(Debug)]
pub(crate) struct Lease {
    memory: Arc<RingMemory>,
    /// Dropped with the lease, which no longer reads then.
    _hold: Hold<AtomicBool>,
    /// Offset of the record in the ring's data area; it does not wrap.
    offset: usize,
    len: usize,
}

impl Lease {
    pub(crate) fn new(
        memory: Arc<RingMemory>,
        hold: Hold<AtomicBool>,
        offset: usize,
        len: usize,
    ) -> Self {
        Self { memory, _hold: hold, offset, len }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        self.memory.slice(self.offset, self.len)
    }
}

/// One bit that two threads share. A trait, so that a model checker's atomic can take its place.
pub(crate) trait Flag: Default {
    /// Whether it is set; what the other thread did before it cleared the flag is seen after this.
    fn is_set(&self) -> bool;
    /// Sets it. Only the capture thread does.
    fn set(&self);
    /// Clears it, after everything this thread did before.
    fn clear(&self);
}

impl Flag for AtomicBool {
    fn is_set(&self) -> bool {
        self.load(Ordering::Acquire)
    }

    fn set(&self) {
        // The thread that clears the flag gets its hold after this store, by whatever way the hold is sent.
        self.store(true, Ordering::Relaxed);
    }

    fn clear(&self) {
        self.store(false, Ordering::Release);
    }
}

/// Keeps one slot taken; dropped, the slot is free.
#[derive(Debug)]
pub(crate) struct Hold<F: Flag> {
    slots: Arc<[F]>,
    slot: usize,
}

impl<F: Flag> Drop for Hold<F> {
    fn drop(&mut self) {
        if let Some(flag) = self.slots.get(self.slot) {
            flag.clear();
        }
    }
}

/// The capture thread's side: what is held, oldest first.
#[derive(Debug)]
pub(crate) struct Ledger<F: Flag> {
    slots: Arc<[F]>,
    /// Slot of each hold, or none for bytes that nobody holds, and where the record ends (a ring position).
    out: VecDeque<(Option<usize>, u64)>,
    next_slot: usize,
}

impl<F: Flag> Ledger<F> {
    /// Makes a ledger for at most `capacity` holds at a time.
    pub(crate) fn new(capacity: usize) -> Self {
        let slots = std::iter::repeat_with(F::default).take(capacity).collect();
        Self { slots, out: VecDeque::new(), next_slot: 0 }
    }

    /// Holds the bytes up to ring position `end`; `None` if too many holds are out.
    pub(crate) fn hold(&mut self, end: u64) -> Option<Hold<F>> {
        let slot = self.next_slot;
        let flag = self.slots.get(slot)?;
        // Slots are used in turn, so one that is free here was freed by the hold that had it last.
        if flag.is_set() {
            return None;
        }
        flag.set();
        self.next_slot = (slot + 1) % self.slots.len();
        self.out.push_back((Some(slot), end));
        Some(Hold { slots: Arc::clone(&self.slots), slot })
    }

    /// Notes bytes up to ring position `end` that nobody holds.
    pub(crate) fn pass(&mut self, end: u64) {
        match self.out.back_mut() {
            Some((None, last)) => *last = end,
            _ => self.out.push_back((None, end)),
        }
    }

    /// Returns the position up to which nothing is held, if it moved.
    pub(crate) fn reclaim(&mut self) -> Option<u64> {
        let mut free_until = None;
        while let Some(&(slot, end)) = self.out.front() {
            if slot.and_then(|slot| self.slots.get(slot)).is_some_and(Flag::is_set) {
                break;
            }
            self.out.pop_front();
            free_until = Some(end);
        }
        free_until
    }
}

#[cfg(test)]
mod tests;
