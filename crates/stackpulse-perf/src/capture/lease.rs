//! Records that stay in ring memory while they are used: the lease protocol.
//!
//! The capture thread hands out leases in the order of the ring, each with a slot of its own. A lease may be
//! dropped on any thread and in any order: dropping it marks its slot free, with `Release`, so that all reads of
//! the record come before. The capture thread looks at the oldest slots, with `Acquire`, and moves the ring's
//! tail over every record whose lease, and all leases before, are back. Only then may the kernel write there.

use super::ring::RingMemory;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A record in ring memory that the kernel will not overwrite while this exists.
#[derive(Debug)]
pub(crate) struct Lease {
    memory: Arc<RingMemory>,
    slots: Arc<Slots>,
    slot: usize,
    /// Offset of the record in the ring's data area; it does not wrap.
    offset: usize,
    len: usize,
}

/// One flag for each lease that may be out at a time: whether it is.
#[derive(Debug)]
pub(crate) struct Slots {
    held: Box<[AtomicBool]>,
}

/// The capture thread's side: the leases that are out, oldest first.
#[derive(Debug)]
pub(crate) struct Ledger {
    slots: Arc<Slots>,
    /// Slot of each lease, or none for bytes that need no lease, and where the record ends (a ring position).
    out: VecDeque<(Option<usize>, u64)>,
    next_slot: usize,
}

impl Lease {
    pub(crate) fn bytes(&self) -> &[u8] {
        self.memory.slice(self.offset, self.len)
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if let Some(held) = self.slots.held.get(self.slot) {
            held.store(false, Ordering::Release);
        }
    }
}

impl Ledger {
    /// Makes a ledger for at most `capacity` leases at a time.
    pub(crate) fn new(capacity: usize) -> Self {
        let held = std::iter::repeat_with(|| AtomicBool::new(false)).take(capacity).collect();
        Self { slots: Arc::new(Slots { held }), out: VecDeque::new(), next_slot: 0 }
    }

    /// Leases the record at `offset` that ends at ring position `end`; `None` if too many leases are out.
    pub(crate) fn lease(
        &mut self,
        memory: &Arc<RingMemory>,
        offset: usize,
        len: usize,
        end: u64,
    ) -> Option<Lease> {
        let slot = self.next_slot;
        let held = self.slots.held.get(slot)?;
        // Slots are used in turn, so one that is free here was freed by the lease that had it last.
        if held.load(Ordering::Acquire) {
            return None;
        }
        // Only this thread sets flags; the one that clears this flag gets the lease after this store.
        held.store(true, Ordering::Relaxed);
        self.next_slot = (slot + 1) % self.slots.held.len();
        self.out.push_back((Some(slot), end));
        Some(Lease {
            memory: Arc::clone(memory),
            slots: Arc::clone(&self.slots),
            slot,
            offset,
            len,
        })
    }

    /// Notes bytes up to ring position `end` that nobody holds.
    pub(crate) fn pass(&mut self, end: u64) {
        match self.out.back_mut() {
            Some((None, last)) => *last = end,
            _ => self.out.push_back((None, end)),
        }
    }

    /// Returns the position up to which all leases are back, if it moved.
    pub(crate) fn reclaim(&mut self) -> Option<u64> {
        let mut free_until = None;
        while let Some(&(slot, end)) = self.out.front() {
            let held = slot.and_then(|slot| self.slots.held.get(slot));
            if held.is_some_and(|held| held.load(Ordering::Acquire)) {
                break;
            }
            self.out.pop_front();
            free_until = Some(end);
        }
        free_until
    }
}
