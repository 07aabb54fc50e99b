//! The Recorder through its public door, on live programs.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test says what failed by where it failed"
)]

mod calls;
mod faults;
#[path = "../../../stackpulse-perf/tests/it/harness.rs"]
#[allow(dead_code, reason = "shared with the tests of another crate, which use all of it")]
mod harness;
mod lives;
mod machine;
mod options;
mod scene;
mod soak;
