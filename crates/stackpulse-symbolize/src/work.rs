//! A bound on the steps that a file's contents may ask for: damage and malice end there, and cost names.

use std::cell::Cell;

/// Steps that any file may take, however small: seconds at most.
const BASE: u64 = 1 << 26;

/// Steps that are left to one thread. A step is a byte parsed, or an address or a range looked at.
#[derive(Debug)]
pub(crate) struct Work(Cell<u64>);

impl Work {
    /// The work that so many bytes are worth: each of them read a few times.
    pub(crate) fn for_bytes(bytes: u64) -> Self {
        Self(Cell::new(bytes.saturating_mul(8).saturating_add(BASE)))
    }

    /// Takes steps; `None` if there are not as many left.
    #[inline]
    pub(crate) fn take(&self, steps: u64) -> Option<()> {
        self.0.set(self.0.get().checked_sub(steps)?);
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_ends() {
        let work = Work::for_bytes(1);
        assert_eq!(work.take(BASE), Some(()));
        assert_eq!(work.take(9), None);
        assert_eq!((work.take(8), work.take(1)), (Some(()), None));
    }
}
