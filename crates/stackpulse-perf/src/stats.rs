//! Counters of a capture: one for each way a record can go.

/// What a capture has met so far. Counters saturate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Statistics {
    /// Samples decoded.
    pub samples: u64,
    /// Events that the kernel dropped.
    pub lost: u64,
    /// How often the kernel slowed sampling.
    pub throttles: u64,
    /// Samples copied out of ring memory.
    pub copied_samples: u64,
    /// Bytes copied with them.
    pub copied_bytes: u64,
    /// Records of types that are of no interest.
    pub other_records: u64,
    /// Records that are shorter than their fields.
    pub bad_records: u64,
    /// Records without a time.
    pub without_time: u64,
    /// How often a ring's positions made no sense, and what it held was passed over.
    pub bad_rings: u64,
}

#[cfg(feature = "capture")]
impl Statistics {
    pub(crate) fn saw_copy(&mut self, bytes: usize) {
        self.copied_samples = self.copied_samples.saturating_add(1);
        self.copied_bytes = self.copied_bytes.saturating_add(bytes as u64);
    }
}
