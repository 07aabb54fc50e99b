//! Where the blocks of a file are, by time.

use crate::error::Damage;
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

/// The blocks of records, in the order of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Index {
    entries: Vec<IndexEntry>,
}

impl Index {
    pub(crate) fn push(&mut self, entry: IndexEntry) {
        self.entries.push(entry);
    }

    pub(crate) fn into_entries(self) -> Vec<IndexEntry> {
        self.entries
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let mut last = (0u64, 0u64);
        varint::put(&mut out, self.entries.len() as u64);
        for entry in &self.entries {
            varint::put(&mut out, entry.offset.wrapping_sub(last.0));
            varint::put(&mut out, u64::from(entry.epoch));
            varint::put_difference(&mut out, entry.first_ns, last.1);
            varint::put(&mut out, entry.last_ns.wrapping_sub(entry.first_ns));
            varint::put(&mut out, entry.samples);
            last = (entry.offset, entry.first_ns);
        }
        out
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
