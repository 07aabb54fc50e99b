//! What a recording came to, in numbers.

use stackpulse_unwind::Statistics as Unwound;

/// The totals of a recording, so far or at its end. Counters saturate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Summary {
    /// Sample events that reached the unwinder: those written and those skipped, each for one reason.
    pub events_seen: u64,
    /// Samples in the spool.
    pub samples_written: u64,
    /// Events the kernel dropped.
    pub events_lost: u64,
    /// Stacks that end before their root.
    pub truncated: u64,
    /// Bytes of the spool.
    pub bytes_written: u64,
    /// When the recording began, `CLOCK_MONOTONIC`.
    pub start_ns: u64,
    /// When it ended, or now.
    pub end_ns: u64,
    /// All counters by name, sorted: the spool's counter records.
    pub counters: Vec<(String, u64)>,
}

impl Summary {
    pub(crate) fn of(
        capture: &stackpulse_perf::Statistics,
        unwound: &Unwound,
        bytes_written: u64,
        start_ns: u64,
        end_ns: u64,
    ) -> Self {
        let mut counters = vec![
            ("bytes_written".to_owned(), bytes_written),
            ("copied_bytes".to_owned(), capture.copied_bytes),
            ("copied_samples".to_owned(), capture.copied_samples),
            ("events_lost".to_owned(), capture.lost),
            ("records_bad".to_owned(), capture.bad_records),
            ("records_other".to_owned(), capture.other_records),
            ("rings_bad".to_owned(), capture.bad_rings),
            ("skipped.without_time".to_owned(), capture.without_time),
            ("throttles".to_owned(), capture.throttles),
        ];
        counters.extend(unwound.counters());
        counters.sort();
        Self {
            events_seen: unwound.samples_seen,
            samples_written: unwound.samples_written,
            events_lost: capture.lost,
            truncated: unwound.truncated.iter().fold(0, |sum, &count| sum.saturating_add(count)),
            bytes_written,
            start_ns,
            end_ns,
            counters,
        }
    }

    /// Returns the counter of this name, if it is counted at all.
    #[must_use]
    pub fn counter(&self, name: &str) -> Option<u64> {
        let at = self.counters.binary_search_by(|(counter, _)| counter.as_str().cmp(name)).ok()?;
        self.counters.get(at).map(|&(_, value)| value)
    }
}
