//! One ring shared with the kernel: its memory, its positions, its records.
#![allow(unsafe_code)]

use super::lease::{Lease, Ledger};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Offsets of `data_head` and `data_tail` in `struct perf_event_mmap_page`
/// (`include/uapi/linux/perf_event.h`: the fields are at the 1,024th byte, for this purpose).
const DATA_HEAD: usize = 1024;
const DATA_TAIL: usize = 1032;

/// The mapped pages of a ring: one of metadata, then a power of two of data.
#[derive(Debug)]
pub(crate) struct RingMemory {
    base: NonNull<u8>,
    page: usize,
    /// Length of the data area in bytes: a power of two.
    data_len: usize,
}

// SAFETY: the memory is shared with the kernel, and reached from several threads only through `slice`, which reads
// bytes that nobody writes (see there), and through atomics.
unsafe impl Send for RingMemory {}
// SAFETY: as above.
unsafe impl Sync for RingMemory {}

impl RingMemory {
    /// Maps a ring of `data_pages` (a power of two) onto an event.
    fn map(event: &File, page: usize, data_pages: usize) -> io::Result<Self> {
        let data_len = page * data_pages;
        // SAFETY:
        // - a null address lets the kernel choose the place, so no memory in use is replaced;
        // - the descriptor is open for the call: it is borrowed.
        let address = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                page + data_len,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                event.as_raw_fd(),
                0,
            )
        };
        if address == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let base =
            NonNull::new(address.cast()).ok_or_else(|| io::Error::other("mmap returned null"))?;
        Ok(Self { base, page, data_len })
    }

    fn position(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: `offset` is one of the two constants above, within the mapped first page.
        let position = unsafe { self.base.add(offset) }.cast::<AtomicU64>();
        // SAFETY:
        // - eight bytes, aligned to eight, within the first page;
        // - the kernel changes the field with single stores, which is what an atomic allows for;
        // - the memory stays mapped as long as `self`.
        unsafe { position.as_ref() }
    }

    /// Bytes of the data area. They must lie between the ring's tail and its head.
    pub(crate) fn slice(&self, offset: usize, len: usize) -> &[u8] {
        assert!(offset <= self.data_len && len <= self.data_len - offset, "within the data area");
        // SAFETY: the data area begins after the metadata page, and `offset` is within it: checked above.
        let start = unsafe { self.base.add(self.page + offset) };
        // SAFETY:
        // - the range is within the mapped data area: checked above;
        // - the kernel does not write between tail and head (perf_event_open(2): PROT_WRITE mappings are
        //   not overwritten), and the tail is moved past these bytes only after the lease on them is back;
        // - bytes have no invalid values, and the memory stays mapped as long as `self`.
        unsafe { std::slice::from_raw_parts(start.as_ptr(), len) }
    }
}

impl Drop for RingMemory {
    fn drop(&mut self) {
        // SAFETY: exactly the range that `map` mapped, and nothing borrowed from `self` is left.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.page + self.data_len) };
    }
}

/// A ring and how far it has been read.
#[derive(Debug)]
pub(crate) struct Ring {
    memory: Arc<RingMemory>,
    ledger: Ledger<AtomicBool>,
    /// Position of the next record to read; never above the head, and a multiple of eight.
    read: u64,
    /// Position up to which the kernel may write: what was last stored as the tail.
    tail: u64,
}

/// A record found in a ring.
#[derive(Debug)]
pub(crate) enum Found {
    /// In one piece: a lease on it can be had.
    Whole { offset: usize, len: usize, end: u64 },
    /// Around the end of the data area: two pieces to be copied.
    Wrapped { offset: usize, first_len: usize, rest_len: usize, end: u64 },
}

impl Ring {
    /// Maps a ring onto an event, for at most `leases` records held at a time.
    pub(crate) fn map(
        event: &File,
        page: usize,
        data_pages: usize,
        leases: usize,
    ) -> io::Result<Self> {
        let memory = Arc::new(RingMemory::map(event, page, data_pages)?);
        // Where a reader before has stopped: zero in a new ring.
        let tail = memory.position(DATA_TAIL).load(Ordering::Relaxed) & !7;
        Ok(Self { memory, ledger: Ledger::new(leases), read: tail, tail })
    }

    /// Whether leases keep more than half of the ring from the kernel.
    pub(crate) fn is_crowded(&self) -> bool {
        self.read.wrapping_sub(self.tail) > self.memory.data_len as u64 / 2
    }

    /// Where the kernel has written to.
    pub(crate) fn head(&self) -> u64 {
        // Acquire: the records below the head are read after it.
        self.memory.position(DATA_HEAD).load(Ordering::Acquire)
    }

    /// Whether the kernel has written more than was read.
    pub(crate) fn has_unread(&self) -> bool {
        self.head() != self.read
    }

    /// Finds the next record below `head`.
    ///
    /// # Errors
    ///
    /// When what is there cannot be a record; the ring is then passed over up to `head`.
    pub(crate) fn find(&mut self, head: u64) -> Result<Option<Found>, BadRing> {
        let data_len = self.memory.data_len;
        let available = head.wrapping_sub(self.read);
        if available == 0 {
            return Ok(None);
        }
        let is_sound = head.wrapping_sub(self.tail) <= data_len as u64
            && available <= data_len as u64
            && head.is_multiple_of(8);
        if !is_sound {
            self.give_up(head);
            return Err(BadRing);
        }
        let offset = offset_in(self.read, data_len);
        // Records and positions are multiples of eight bytes, so a header never wraps.
        let header = self.memory.slice(offset, 8);
        let len = usize::from(u16::from_ne_bytes([header[6], header[7]]));
        if len < 8 || len % 8 != 0 || len as u64 > available {
            self.give_up(head);
            return Err(BadRing);
        }
        let end = self.read.wrapping_add(len as u64);
        self.read = end;
        let to_end = data_len - offset;
        Ok(Some(if len <= to_end {
            Found::Whole { offset, len, end }
        } else {
            Found::Wrapped { offset, first_len: to_end, rest_len: len - to_end, end }
        }))
    }

    /// The bytes of a record in one piece.
    pub(crate) fn whole(&self, offset: usize, len: usize) -> &[u8] {
        self.memory.slice(offset, len)
    }

    /// The bytes of a wrapped record.
    pub(crate) fn pieces(&self, offset: usize, first_len: usize, rest_len: usize) -> [&[u8]; 2] {
        [self.memory.slice(offset, first_len), self.memory.slice(0, rest_len)]
    }

    /// Keeps a record's bytes from the kernel; `None` if too many are kept.
    pub(crate) fn lease(&mut self, offset: usize, len: usize, end: u64) -> Option<Lease> {
        let hold = self.ledger.hold(end)?;
        Some(Lease::new(Arc::clone(&self.memory), hold, offset, len))
    }

    /// Says that the bytes up to `end` are no longer needed, once the leases before them are back.
    pub(crate) fn pass(&mut self, end: u64) {
        self.ledger.pass(end);
    }

    /// Gives the kernel back what is free.
    pub(crate) fn reclaim(&mut self) {
        if let Some(tail) = self.ledger.reclaim() {
            self.tail = tail;
            // Release: everything read below the tail was read before.
            self.memory.position(DATA_TAIL).store(tail, Ordering::Release);
        }
    }

    /// Passes over everything: to where the kernel says it is, and on from there.
    fn give_up(&mut self, head: u64) {
        self.read = head & !7;
        self.ledger.pass(self.read);
    }
}

/// The ring's positions or sizes make no sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BadRing;

fn offset_in(position: u64, data_len: usize) -> usize {
    // The data area's length is a power of two, and positions count on for ever.
    usize::try_from(position & (data_len as u64 - 1)).unwrap_or_default()
}

#[cfg(test)]
pub(super) mod tests;
