//! Fixtures shared by the benchmark suites.
//!
//! Recordings are made up from a seed, so that every run of a suite does the same work. What a real program
//! gives is measured with the `spool_sizes` example.

pub mod recording;
pub mod unwinding;
