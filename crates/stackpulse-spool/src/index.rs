//! Where the blocks of a file are, by time.

use crate::error::Damage;
use crate::limits::MAX_INDEX;
use crate::varint::{self, Cursor};

/// One block of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IndexEntry {
    /// Where the block begins in the file.
    pub(crate) offset: u64,
    /// The epoch its first record belongs to.
    pub(crate) epoch: u32,
    /// The earliest time its records name.
    pub(crate) first_ns: u64,
    /// The latest.
    pub(crate) last_ns: u64,
    /// Samples in it.
    pub(crate) samples: u64,
}

/// An index being written, kept as it will be stored: a week of blocks takes some ten megabytes.
#[derive(Debug, Default)]
pub(crate) struct IndexBuilder {
    count: u64,
    entries: Vec<u8>,
    last_offset: u64,
    last_first_ns: u64,
    is_too_long: bool,
}

impl IndexBuilder {
    /// Adds the next block.
    pub(crate) fn push(&mut self, entry: &IndexEntry) {
        if self.is_too_long {
            return;
        }
        let out = &mut self.entries;
        varint::put(out, entry.offset.wrapping_sub(self.last_offset));
        varint::put(out, u64::from(entry.epoch));
        varint::put_difference(out, entry.first_ns, self.last_first_ns);
        varint::put(out, entry.last_ns.wrapping_sub(entry.first_ns));
        varint::put(out, entry.samples);
        (self.last_offset, self.last_first_ns) = (entry.offset, entry.first_ns);
        self.count += 1;
        if self.entries.len() > MAX_INDEX {
            self.is_too_long = true;
            self.entries = Vec::new();
        }
    }

    /// Returns the payload of the index block; `None` if it would be too long.
    pub(crate) fn encode(&self) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        varint::put(&mut out, self.count);
        out.extend_from_slice(&self.entries);
        (!self.is_too_long).then_some(out)
    }
}

/// The blocks of records, in the order of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Index {
    entries: Vec<IndexEntry>,
}

impl Index {
    pub(crate) fn into_entries(self) -> Vec<IndexEntry> {
        self.entries
    }

    pub(crate) fn decode(payload: &[u8]) -> Result<Self, Damage> {
        let mut cursor = Cursor::new(payload);
        let count = cursor.number()?;
        let mut entries = Vec::new();
        let mut last = (0u64, 0u64);
        for _ in 0..count {
            let distance = cursor.number()?;
            let offset = last.0.checked_add(distance).filter(|_| distance > 0);
            let offset = offset.ok_or(Damage::BadSequence)?;
            let epoch = cursor.number32()?;
            let first_ns = cursor.difference(last.1)?;
            let last_ns = first_ns.wrapping_add(cursor.number()?);
            let samples = cursor.number()?;
            entries.push(IndexEntry { offset, epoch, first_ns, last_ns, samples });
            last = (offset, first_ns);
        }
        if cursor.is_at_end() { Ok(Self { entries }) } else { Err(Damage::TrailingBytes) }
    }
}
