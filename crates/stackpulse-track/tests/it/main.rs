//! The engine through its public door: a script of events in, text out.
#![allow(clippy::unwrap_used, reason = "a test says what failed by where it failed")]
#![allow(clippy::print_stdout, reason = "a test says what it measured")]

#[cfg(feature = "perf-data")]
mod aarch64;
mod generated;
mod lifecycle;
mod moved_text;
#[cfg(feature = "perf-data")]
mod perf_file;
mod script;
mod stacks;
mod stitch;
