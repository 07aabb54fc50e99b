//! One thread's steps: damage and malice end where they do, and cost names.

use crate::allowance::Allowance;
use std::cell::Cell;

/// So many steps are taken at a time: a millisecond of them at most, so that a stop is heard soon.
const PORTION: u64 = 1 << 16;

/// Steps of one thread. A step is a byte parsed, or an address or a range looked at: about a nanosecond.
#[derive(Debug)]
pub(crate) struct Work {
    left: Cell<u64>,
    allowance: Allowance,
}

impl Work {
    pub(crate) fn new(allowance: Allowance) -> Self {
        Self { left: Cell::new(0), allowance }
    }

    /// Takes steps; `None` if there are not as many left, or somebody said stop.
    #[inline]
    pub(crate) fn take(&self, steps: u64) -> Option<()> {
        match self.left.get().checked_sub(steps) {
            Some(left) => self.left.set(left),
            None => self.refill(steps)?,
        }
        Some(())
    }

    pub(crate) fn allowance(&self) -> &Allowance {
        &self.allowance
    }

    #[cold]
    fn refill(&self, steps: u64) -> Option<()> {
        let missing = steps - self.left.get();
        let portion = missing.max(PORTION);
        match self.allowance.try_take(portion) {
            Some(()) => self.left.set(portion - missing),
            None => {
                self.allowance.take(missing)?;
                self.left.set(0);
            }
        }
        Some(())
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        self.allowance.give_back(self.left.get());
    }
}
