//! What a recording came to, in numbers.

use stackpulse_perf::capture::Settings;
use stackpulse_track::Statistics as Unwound;
use std::ops::Range;

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
    /// CPU time of the recording's own threads, nanoseconds.
    pub own_cpu_ns: u64,
    /// All counters by name, sorted: the spool's counter records.
    pub counters: Vec<(String, u64)>,
}

impl Summary {
    pub(crate) fn of(
        capture: &stackpulse_perf::Statistics,
        unwound: &Unwound,
        settings: &Settings,
        bytes_written: u64,
    ) -> Self {
        let mut counters = vec![
            ("bytes_written".to_owned(), bytes_written),
            ("copied_bytes".to_owned(), capture.copied_bytes),
            ("copied_samples".to_owned(), capture.copied_samples),
            ("events_lost".to_owned(), capture.lost),
            ("kernel_frames".to_owned(), u64::from(settings.kernel_frames)),
            ("records_bad".to_owned(), capture.bad_records),
            ("records_other".to_owned(), capture.other_records),
            ("ring_bytes".to_owned(), settings.ring_bytes as u64),
            ("rings_bad".to_owned(), capture.bad_rings),
            ("skipped.without_time".to_owned(), capture.without_time),
            ("throttles".to_owned(), capture.throttles),
        ];
        counters.extend(unwound.counters());
        Self {
            events_seen: unwound.samples_seen,
            samples_written: unwound.samples_written,
            events_lost: capture.lost,
            truncated: unwound.truncated.iter().fold(0, |sum, &count| sum.saturating_add(count)),
            bytes_written,
            start_ns: 0,
            end_ns: 0,
            own_cpu_ns: 0,
            counters,
        }
    }

    /// Notes from when to when the recording goes, and the CPU time of its threads.
    pub(crate) fn took(&mut self, span_ns: Range<u64>, own_cpu_ns: u64) {
        (self.start_ns, self.end_ns, self.own_cpu_ns) = (span_ns.start, span_ns.end, own_cpu_ns);
        self.counters.push(("own_cpu_ns".to_owned(), own_cpu_ns));
        self.counters.push(("wall_ns".to_owned(), self.wall_ns()));
        self.counters.sort();
    }

    /// Returns how long the recording went, or goes so far, nanoseconds.
    #[must_use]
    pub fn wall_ns(&self) -> u64 {
        self.end_ns.saturating_sub(self.start_ns)
    }

    /// Returns the counter of this name, if it is counted at all.
    #[must_use]
    pub fn counter(&self, name: &str) -> Option<u64> {
        let at = self.counters.binary_search_by(|(counter, _)| counter.as_str().cmp(name)).ok()?;
        self.counters.get(at).map(|&(_, value)| value)
    }
}
