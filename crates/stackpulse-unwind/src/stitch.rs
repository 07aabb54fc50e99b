//! Stacks that are cut at the end of the captured bytes: their callers, as an earlier stack of the same thread showed them.
//!
//! The kernel copies at most 64 KiB. Of a deeper stack the outer frames were captured when it was less deep, and they are
//! still there if the frame where the capture ends now is one of those: the same address at the same stack pointer.

use crate::cfi::Memory;
use crate::memo::Memo;
use crate::walk::CapturedStack;
use stackpulse_spool::Frame;

/// A frame of an earlier stack.
#[derive(Clone, Copy, Debug)]
struct Caller {
    lookup_avma: u64,
    sp: u64,
    frame: Frame,
}

/// The frames of a thread that the captured bytes do not reach any more.
#[derive(Debug, Default)]
pub(crate) struct Outer {
    /// Which state of the mappings they hold for.
    version: u64,
    /// Outermost first; `sp` falls.
    callers: Vec<Caller>,
}

impl Outer {
    pub(crate) fn clear(&mut self) {
        self.callers.clear();
    }

    /// Takes over the frames of the thread's last stack, if that was whole and the next one's bytes do not reach its root.
    pub(crate) fn keep(&mut self, last: &Memo, next: &CapturedStack<'_>) {
        let is_reached = last.slots.first().is_some_and(|slot| next.read(slot.avma).is_some());
        if last.entries.is_empty() || is_reached {
            return;
        }
        match last.outside.split_last() {
            // Frames that were joined are here already.
            Some((Frame::Joined, callers)) => self.callers.truncate(callers.len()),
            Some(_) => return,
            None => self.callers.clear(),
        }
        self.version = last.version;
        self.callers.extend(last.entries.iter().map(|entry| Caller {
            lookup_avma: entry.lookup_avma,
            sp: entry.sp,
            frame: entry.frame,
        }));
    }

    /// Returns the callers of a frame, outermost first; `None` where they are not known. Call it with the outermost frame that was
    /// captured: if that is another one than before, all that was known is in doubt and forgotten.
    pub(crate) fn callers_of(
        &mut self,
        version: u64,
        (lookup_avma, sp): (u64, u64),
    ) -> Option<impl ExactSizeIterator<Item = Frame>> {
        let outer = self.callers.partition_point(|caller| caller.sp > sp);
        let known = self.callers.get(outer).filter(|_| self.version == version);
        if !known.is_some_and(|known| known.sp == sp && known.lookup_avma == lookup_avma) {
            self.callers.clear();
            return None;
        }
        let callers = self.callers.get(..outer).unwrap_or_default();
        Some(callers.iter().map(|caller| caller.frame))
    }
}
