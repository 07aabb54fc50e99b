//! A thread's last stack: where the next one meets it, the rest is known.
//!
//! From a frame outwards a walk depends on its pc, stack pointer and perhaps frame pointer, on the words of the stack that it
//! reads, and on what is mapped. Each frame here keeps just these; while they are the same, so is the rest of the walk.

use crate::cfi::Memory;
use crate::fast_walk::Needs;
use crate::walk::CapturedStack;
use stackpulse_spool::{Frame, Truncation};

/// A frame of the last stack.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) lookup_avma: u64,
    pub(crate) sp: u64,
    pub(crate) fp: u64,
    /// Whether the walk from here outwards uses the frame pointer.
    pub(crate) needs_fp: bool,
    /// Whether nothing else than what is kept here was needed to go on.
    pub(crate) is_joinable: bool,
    /// Where the slots of this frame end; they begin where those of the next outer one end.
    pub(crate) slots_end: usize,
    /// Steps by frame pointer from here outwards: in generated code, in images.
    pub(crate) fp_steps: [u64; 2],
    pub(crate) frame: Frame,
}

/// A word of the stack that a walk has read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot {
    pub(crate) avma: u64,
    pub(crate) value: u64,
}

/// The last stack of a thread.
#[derive(Debug, Default)]
pub(crate) struct Memo {
    /// Which state of the mappings it holds for.
    pub(crate) version: u64,
    /// Outermost first.
    pub(crate) entries: Vec<Entry>,
    pub(crate) slots: Vec<Slot>,
    /// Why it ends before its root, if it does.
    pub(crate) end: Option<Truncation>,
    /// What the spool has outside the entries, outermost first: nothing, or a marker; callers known from before, then
    /// [`Frame::Joined`].
    pub(crate) outside: Vec<Frame>,
    /// The word that would have been needed to go on, if that is why.
    pub(crate) missing_avma: Option<u64>,
}

impl Memo {
    pub(crate) fn clear(&mut self) {
        self.entries.clear();
        self.slots.clear();
    }

    /// Forgets the frames for which something has changed, as far as that can be said before the walk.
    pub(crate) fn retain(&mut self, version: u64, stack: &CapturedStack<'_>) {
        let is_longer = self.missing_avma.is_some_and(|avma| stack.read(avma).is_some());
        if self.version != version || is_longer {
            self.clear();
            return;
        }
        let changed = self.slots.iter().position(|slot| stack.read(slot.avma) != Some(slot.value));
        if let Some(slot) = changed {
            let inner = self.entries.partition_point(|entry| entry.slots_end <= slot);
            self.truncate(inner);
        }
    }

    /// Adds the next inner frame, with what it depends on.
    pub(crate) fn push(&mut self, mut entry: Entry, slots: &[Slot], needs: Needs) {
        let caller = self.entries.last();
        let caller_needs_fp = caller.is_some_and(|caller| caller.needs_fp);
        entry.needs_fp = needs.fp || needs.passes_fp && caller_needs_fp;
        entry.is_joinable = needs.is_all && caller.is_none_or(|caller| caller.is_joinable);
        if let Some(caller) = caller {
            for (own, outer) in entry.fp_steps.iter_mut().zip(caller.fp_steps) {
                *own = own.saturating_add(outer);
            }
        }
        let needed = if needs.last_slot_is_fp && !caller_needs_fp {
            slots.split_last().map_or(slots, |(_, others)| others)
        } else {
            slots
        };
        self.slots.extend_from_slice(needed);
        entry.slots_end = self.slots.len();
        self.entries.push(entry);
    }

    /// Keeps so many frames, outermost first.
    pub(crate) fn truncate(&mut self, len: usize) {
        self.entries.truncate(len);
        self.slots.truncate(self.entries.last().map_or(0, |entry| entry.slots_end));
    }

    /// The frame here, if the last stack had the very same: `at` counts the frames that may still be met, and goes down with
    /// each call.
    #[inline]
    pub(crate) fn meets(
        &self,
        at: &mut usize,
        lookup_avma: u64,
        (sp, fp): (u64, Option<u64>),
    ) -> Option<usize> {
        while let Some(index) = at.checked_sub(1) {
            let entry = self.entries.get(index)?;
            if entry.sp > sp {
                return None;
            }
            if entry.sp == sp && entry.lookup_avma == lookup_avma && entry.is_joinable {
                let same = !entry.needs_fp || Some(entry.fp) == fp;
                return same.then_some(index);
            }
            *at = index;
        }
        None
    }
}
