//! What a recording came to, in numbers.

/// The totals of a recording, so far or at its end.
///
/// Every sample event is counted in exactly one place: `events_seen` is `samples_written` and the sum of the `skipped`
/// counters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Summary {
    /// Sample events that reached user space.
    pub events_seen: u64,
    /// Samples in the spool.
    pub samples_written: u64,
    /// Events the kernel dropped.
    pub events_lost: u64,
    /// Bytes of the spool.
    pub bytes_written: u64,
    /// When the recording began and ended, `CLOCK_MONOTONIC`; the end is the last event so far.
    pub start_ns: u64,
    /// See [`start_ns`](Self::start_ns).
    pub end_ns: u64,
    /// All counters by name, sorted: what the spool's summary record holds.
    pub counters: Vec<(String, u64)>,
}

impl Summary {
    /// Returns the counter of this name, if it is counted at all.
    #[must_use]
    pub fn counter(&self, name: &str) -> Option<u64> {
        let at = self.counters.binary_search_by(|(counter, _)| counter.as_str().cmp(name)).ok()?;
        self.counters.get(at).map(|&(_, value)| value)
    }
}
