//! From a stream of bytes to whole records, read in blocks that samples go on lying in.

use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::sync::Arc;

/// So much is read at a time: larger than the largest record (64 KiB), small enough to stay in a processor's cache.
pub(super) const BLOCK_BYTES: usize = 256 << 10;

/// So many blocks are kept to be used again.
const KEPT_BLOCKS: usize = 64;

/// Bytes of a record's header: type, misc, size.
pub(super) const HEADER_BYTES: usize = 8;

/// A whole record.
#[derive(Clone, Debug)]
pub(super) struct Framed {
    pub(super) kind: u32,
    /// Its bytes, header included, lie here in the block.
    pub(super) range: Range<usize>,
    pub(super) block: Arc<Vec<u8>>,
}

impl Framed {
    pub(super) fn bytes(&self) -> &[u8] {
        self.block.get(self.range.clone()).unwrap_or_default()
    }

    /// What the header says besides type and size.
    pub(super) fn misc(&self) -> u16 {
        let misc = self.bytes().get(4..6).and_then(|bytes| bytes.first_chunk().copied());
        misc.map(u16::from_le_bytes).unwrap_or_default()
    }

    /// What comes after the header.
    pub(super) fn body(&self) -> &[u8] {
        self.bytes().get(HEADER_BYTES..).unwrap_or_default()
    }
}

/// What the next bytes are.
#[derive(Debug)]
pub(super) enum Next {
    Record(Framed),
    /// The bytes have ended, so many of them in the middle of a record.
    End {
        left_over: usize,
    },
    /// A record says that it is shorter than its own header.
    Damaged,
}

/// Cuts a stream into records.
#[derive(Debug)]
pub(super) struct Framing {
    block: Arc<Vec<u8>>,
    /// What of the block has been read and not cut yet.
    unread: Range<usize>,
    /// Blocks that were used; free as soon as no sample lies in them.
    used: VecDeque<Arc<Vec<u8>>>,
}

impl Framing {
    pub(super) fn new() -> Self {
        Self { block: Arc::default(), unread: 0..0, used: VecDeque::new() }
    }

    /// Returns the next record. `fill` reads on into a buffer; 0 is the end, for now.
    pub(super) fn next(
        &mut self,
        fill: &mut impl FnMut(&mut [u8]) -> io::Result<usize>,
    ) -> io::Result<Next> {
        loop {
            if let Some(next) = self.cut() {
                return Ok(next);
            }
            if !self.refill(fill)? {
                return Ok(Next::End { left_over: self.unread.len() });
            }
        }
    }

    /// Cuts a record off what has been read; `None` if more must be read first.
    fn cut(&mut self) -> Option<Next> {
        let unread = self.block.get(self.unread.clone())?;
        let header: [u8; HEADER_BYTES] = *unread.first_chunk()?;
        let [a, b, c, d, _, _, low, high] = header;
        let len = usize::from(u16::from_le_bytes([low, high]));
        if len < HEADER_BYTES {
            return Some(Next::Damaged);
        }
        if len > unread.len() {
            return None;
        }
        let range = self.unread.start..self.unread.start + len;
        self.unread.start += len;
        let kind = u32::from_le_bytes([a, b, c, d]);
        Some(Next::Record(Framed { kind, range, block: Arc::clone(&self.block) }))
    }

    /// Passes over bytes that are no records; returns how many of them are still to be passed over in the stream.
    pub(super) fn skip(&mut self, bytes: u64) -> u64 {
        let here = usize::try_from(bytes).unwrap_or(usize::MAX).min(self.unread.len());
        self.unread.start += here;
        bytes - here as u64
    }

    /// Reads on into another block, which begins with what is left of this one. Whether there was anything.
    fn refill(
        &mut self,
        fill: &mut impl FnMut(&mut [u8]) -> io::Result<usize>,
    ) -> io::Result<bool> {
        let mut next = self.free_block();
        let kept = self.unread.len();
        let Some(bytes) = Arc::get_mut(&mut next) else { return Ok(false) };
        bytes[..kept].copy_from_slice(&self.block[self.unread.clone()]);
        let read = fill(&mut bytes[kept..])?;
        if read == 0 {
            self.used.push_front(next);
            return Ok(false);
        }
        let full = std::mem::replace(&mut self.block, next);
        self.unread = 0..kept + read;
        if self.used.len() < KEPT_BLOCKS && full.len() == BLOCK_BYTES {
            self.used.push_back(full);
        }
        Ok(true)
    }

    /// A block that no sample lies in.
    fn free_block(&mut self) -> Arc<Vec<u8>> {
        match self.used.iter_mut().position(|block| Arc::get_mut(block).is_some()) {
            Some(at) => self.used.remove(at).unwrap_or_default(),
            None => Arc::new(vec![0; BLOCK_BYTES]),
        }
    }
}
