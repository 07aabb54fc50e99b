//! Where the blocks of a file are, by time.

use crate::varint;

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
}
