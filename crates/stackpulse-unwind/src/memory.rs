//! Memory of a sampled thread, as far as it was captured.

/// Words that can be read.
pub(crate) trait Memory {
    /// Reads eight bytes.
    fn read(&self, avma: u64) -> Option<u64>;
}

/// The captured part of a thread's stack.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CapturedStack<'a> {
    /// The address of the first byte: the stack pointer at the sample.
    pub(crate) start_avma: u64,
    pub(crate) bytes: &'a [u8],
}

impl Memory for CapturedStack<'_> {
    #[inline]
    fn read(&self, avma: u64) -> Option<u64> {
        let at = usize::try_from(avma.checked_sub(self.start_avma)?).ok()?;
        let bytes = self.bytes.get(at..at.checked_add(8)?)?;
        Some(u64::from_le_bytes(bytes.try_into().ok()?))
    }
}
