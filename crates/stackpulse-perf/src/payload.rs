//! Who owns a sample's bytes.

#[cfg(feature = "capture")]
use crate::capture::lease::Lease;
use std::ops::Range;
use std::sync::Arc;
#[cfg(feature = "capture")]
use std::sync::mpsc::SyncSender;

/// A sample's bytes: in ring memory, in a pooled buffer, in a shared block, or owned. Given back to where they came from when dropped.
#[derive(Debug)]
pub struct Payload(Place);

#[derive(Debug)]
enum Place {
    Owned(Box<[u8]>),
    Shared(Arc<Vec<u8>>, Range<usize>),
    #[cfg(feature = "capture")]
    Pooled(PooledBuffer),
    #[cfg(feature = "capture")]
    Ring(Lease),
}

/// A buffer of a [`Pool`]; dropped, it goes back.
#[cfg(feature = "capture")]
#[derive(Debug)]
struct PooledBuffer {
    bytes: Vec<u8>,
    home: SyncSender<Vec<u8>>,
}

#[cfg(feature = "capture")]
impl Drop for PooledBuffer {
    fn drop(&mut self) {
        // A pool that is gone, or full, needs no buffer back.
        let _ = self.home.try_send(std::mem::take(&mut self.bytes));
    }
}

impl Payload {
    /// Returns the bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        match &self.0 {
            Place::Owned(bytes) => bytes,
            Place::Shared(block, range) => block.get(range.clone()).unwrap_or_default(),
            #[cfg(feature = "capture")]
            Place::Pooled(buffer) => &buffer.bytes,
            #[cfg(feature = "capture")]
            Place::Ring(lease) => lease.bytes(),
        }
    }

    /// Takes part of a block that other samples lie in as well, as when a file is read in blocks. A range that does not lie
    /// within the block reads as empty.
    #[must_use]
    pub fn shared(block: Arc<Vec<u8>>, range: Range<usize>) -> Self {
        Self(Place::Shared(block, range))
    }

    #[cfg(feature = "capture")]
    pub(crate) fn pooled(bytes: Vec<u8>, home: SyncSender<Vec<u8>>) -> Self {
        Self(Place::Pooled(PooledBuffer { bytes, home }))
    }

    #[cfg(feature = "capture")]
    pub(crate) fn leased(lease: Lease) -> Self {
        Self(Place::Ring(lease))
    }

    /// Whether the bytes lie in ring memory.
    #[cfg(feature = "capture")]
    pub(crate) fn is_leased(&self) -> bool {
        matches!(self.0, Place::Ring(_))
    }
}

impl From<Box<[u8]>> for Payload {
    fn from(bytes: Box<[u8]>) -> Self {
        Self(Place::Owned(bytes))
    }
}
