//! What a block of records says of itself before its columns.

use crate::encode::Start;
use crate::error::Damage;
use crate::limits;
use crate::tables::Counts;
use crate::varint::{self, Cursor};

/// What a block says of itself before its columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Preface {
    pub(crate) start: Start,
    /// The earliest and the latest time of its records.
    pub(crate) first_ns: u64,
    pub(crate) last_ns: u64,
    pub(crate) records: u64,
    pub(crate) samples: u64,
}

impl Preface {
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        varint::put(out, u64::from(self.start.epoch));
        for count in self.start.counts.as_array() {
            varint::put(out, u64::from(count));
        }
        varint::put(out, u64::from(self.start.time_shift));
        varint::put(out, self.start.base_ns);
        varint::put(out, self.start.interval_ns);
        varint::put_difference(out, self.first_ns, self.start.base_ns);
        varint::put(out, self.last_ns.wrapping_sub(self.first_ns));
        varint::put(out, self.records);
        varint::put(out, self.samples);
    }

    pub(crate) fn decode(cursor: &mut Cursor<'_>) -> Result<Self, Damage> {
        let epoch = cursor.number32()?;
        let mut counts = [0; 5];
        for count in &mut counts {
            *count = cursor.number32()?;
        }
        let counts = Counts::from_array(counts);
        let within = counts.images <= limits::MAX_IMAGES
            && counts.processes <= limits::MAX_PROCESSES
            && counts.threads <= limits::MAX_THREADS
            && counts.frames <= limits::MAX_FRAMES
            && counts.nodes <= limits::MAX_NODES;
        if !within {
            return Err(Damage::OverLimit);
        }
        let time_shift = cursor.number32()?;
        if time_shift > limits::MAX_TIME_SHIFT {
            return Err(Damage::OverLimit);
        }
        let (base_ns, interval_ns) = (cursor.number()?, cursor.number()?);
        let start = Start { epoch, counts, base_ns, interval_ns, time_shift };
        let first_ns = cursor.difference(start.base_ns)?;
        let last_ns = first_ns.wrapping_add(cursor.number()?);
        Ok(Self { start, first_ns, last_ns, records: cursor.number()?, samples: cursor.number()? })
    }
}
