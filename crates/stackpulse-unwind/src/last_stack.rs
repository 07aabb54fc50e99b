//! A thread's last stack: where the next one meets it, the rest is known.
//!
//! From a frame outwards a walk depends on its pc, stack pointer and perhaps frame pointer, on the words of the stack that it
//! reads, and on what is mapped. Each frame here keeps just these; while they are the same, so is the rest of the walk.
//!
//! The kernel copies at most 64 KiB. Of a deeper stack the outer frames were captured when it was less deep, and they are
//! still there if the frame where the capture ends now is one of those: the same address at the same stack pointer.

use crate::cut::Cut;
use crate::memory::{CapturedStack, Memory};

/// What is remembered of a thread's stacks from one sample to the next. `F` is what the user keeps of each frame, such as its
/// number in a file.
///
/// A last stack belongs to one thread in one [`AddressSpace`](crate::AddressSpace); after an exec it is to be forgotten.
#[derive(Debug)]
pub struct LastStack<F> {
    /// Which state of the mappings it holds for.
    pub(crate) version: u64,
    /// Outermost first.
    pub(crate) entries: Vec<Entry<F>>,
    slots: Vec<Slot>,
    /// Why it ends before its root, if it does.
    pub(crate) end: Option<Cut>,
    /// The word that would have been needed to go on, if that is why.
    pub(crate) missing_avma: Option<u64>,
    /// Frames of earlier stacks that the captured bytes do not reach any more.
    earlier: Vec<Earlier<F>>,
    /// Which state of the mappings these hold for.
    earlier_version: u64,
    /// So many of them, the outermost, are the callers of the last stack's frames, if that was joined to them.
    pub(crate) joined: Option<usize>,
}

/// A frame of the last stack.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry<F> {
    pub(crate) lookup_avma: u64,
    pub(crate) sp: u64,
    pub(crate) fp: u64,
    /// Whether the walk from here outwards uses the frame pointer.
    pub(crate) needs_fp: bool,
    /// Whether nothing else than what is kept here was needed to go on.
    pub(crate) is_joinable: bool,
    /// Where the slots of this frame end; they begin where those of the next outer one end.
    slots_end: usize,
    /// How the frames from here outwards were found.
    pub(crate) steps: Steps,
    pub(crate) frame: F,
}

/// A word of the stack that a walk has read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot {
    pub(crate) avma: u64,
    pub(crate) value: u64,
}

/// A frame of an earlier stack.
#[derive(Clone, Copy, Debug)]
struct Earlier<F> {
    lookup_avma: u64,
    sp: u64,
    frame: F,
}

/// Steps that no unwind information led to, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Steps {
    /// By frame pointer, in generated code.
    pub frame_pointer_generated: u32,
    /// By frame pointer, in an image that tells nothing of the address.
    pub frame_pointer_image: u32,
}

impl Steps {
    pub(crate) fn add(&mut self, other: Self) {
        let sum = |own: &mut u32, more: u32| *own = own.saturating_add(more);
        sum(&mut self.frame_pointer_generated, other.frame_pointer_generated);
        sum(&mut self.frame_pointer_image, other.frame_pointer_image);
    }
}

/// What of a frame's state and slots the walk outwards depends on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Needs {
    /// Its frame pointer, for itself.
    pub(crate) fp: bool,
    /// Its frame pointer, if its caller needs it: it was not restored.
    pub(crate) passes_fp: bool,
    /// Its last slot only if its caller needs the frame pointer.
    pub(crate) last_slot_is_fp: bool,
    /// Whether that is all.
    pub(crate) is_all: bool,
}

/// A frame that was walked anew.
#[derive(Clone, Copy, Debug)]
pub(crate) struct New<F> {
    pub(crate) lookup_avma: u64,
    pub(crate) sp: u64,
    pub(crate) fp: u64,
    pub(crate) steps: Steps,
    pub(crate) needs: Needs,
    pub(crate) frame: F,
}

impl<F> Default for LastStack<F> {
    fn default() -> Self {
        Self {
            version: 0,
            entries: Vec::new(),
            slots: Vec::new(),
            end: None,
            missing_avma: None,
            earlier: Vec::new(),
            earlier_version: 0,
            joined: None,
        }
    }
}

impl<F: Copy> LastStack<F> {
    /// Forgets all stacks: the next one is walked to its root.
    pub fn clear(&mut self) {
        self.forget_last();
        self.forget_earlier();
    }

    pub(crate) fn forget_last(&mut self) {
        self.entries.clear();
        self.slots.clear();
    }

    fn forget_earlier(&mut self) {
        self.earlier.clear();
        self.joined = None;
    }

    /// Forgets the frames for which something has changed, as far as that can be said before the walk.
    pub(crate) fn begin(&mut self, version: u64, stack: &CapturedStack<'_>) {
        self.keep_earlier(stack);
        let is_longer = self.missing_avma.is_some_and(|avma| stack.read(avma).is_some());
        if self.version != version || is_longer {
            self.forget_last();
        } else {
            let is_changed = |slot: &Slot| stack.read(slot.avma) != Some(slot.value);
            if let Some(slot) = self.slots.iter().position(is_changed) {
                self.truncate(self.entries.partition_point(|entry| entry.slots_end <= slot));
            }
        }
        self.version = version;
    }

    /// Takes over the frames of the last stack, if that was whole and the next one's bytes do not reach its root.
    fn keep_earlier(&mut self, next: &CapturedStack<'_>) {
        let is_reached = self.slots.first().is_some_and(|slot| next.read(slot.avma).is_some());
        if self.entries.is_empty() || is_reached {
            return;
        }
        match (self.end, self.joined) {
            // Frames that were joined are here already.
            (_, Some(joined)) => self.earlier.truncate(joined),
            (Some(_), None) => return,
            (None, None) => self.earlier.clear(),
        }
        self.earlier_version = self.version;
        self.earlier.extend(self.entries.iter().map(|entry| Earlier {
            lookup_avma: entry.lookup_avma,
            sp: entry.sp,
            frame: entry.frame,
        }));
    }

    /// Joins a stack that was cut at the end of the captured bytes to the callers that its outermost frame had before, if these
    /// are no more than `at_most`. If the frame is another one than before, all that was known is in doubt and forgotten.
    pub(crate) fn join_earlier(&mut self, (lookup_avma, sp): (u64, u64), at_most: usize) {
        self.joined = None;
        let outer = self.earlier.partition_point(|caller| caller.sp > sp);
        let known = self.earlier.get(outer).filter(|_| self.earlier_version == self.version);
        if !known.is_some_and(|known| known.sp == sp && known.lookup_avma == lookup_avma) {
            self.forget_earlier();
        } else if outer <= at_most {
            self.joined = Some(outer);
        }
    }

    /// Returns the callers of earlier stacks that the walk before was joined to, outermost first; `None` if it was joined to none. There may
    /// be no caller: then the stack's outermost frame was the root.
    pub fn joined(&self) -> Option<impl ExactSizeIterator<Item = F> + '_> {
        let joined = self.earlier.get(..self.joined?)?;
        Some(joined.iter().map(|earlier| earlier.frame))
    }

    /// Returns so many frames of the last stack, outermost first.
    pub fn outermost(&self, count: usize) -> impl ExactSizeIterator<Item = F> + '_ {
        let entries = self.entries.get(..count).unwrap_or(&self.entries);
        entries.iter().map(|entry| entry.frame)
    }

    /// Adds the next inner frame, with what it depends on.
    pub(crate) fn push(&mut self, new: New<F>, slots: &[Slot]) {
        let New { lookup_avma, sp, fp, mut steps, needs, frame } = new;
        let caller = self.entries.last();
        let caller_needs_fp = caller.is_some_and(|caller| caller.needs_fp);
        let needs_fp = needs.fp || needs.passes_fp && caller_needs_fp;
        let is_joinable = needs.is_all && caller.is_none_or(|caller| caller.is_joinable);
        if let Some(caller) = caller {
            steps.add(caller.steps);
        }
        let needed = if needs.last_slot_is_fp && !caller_needs_fp {
            slots.split_last().map_or(slots, |(_, others)| others)
        } else {
            slots
        };
        self.slots.extend_from_slice(needed);
        let slots_end = self.slots.len();
        self.entries.push(Entry {
            lookup_avma,
            sp,
            fp,
            needs_fp,
            is_joinable,
            slots_end,
            steps,
            frame,
        });
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
