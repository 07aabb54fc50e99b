//! Live captures of small C programs, and properties of the parts that need no kernel.
#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test says what failed by where it failed, and why it was skipped"
)]

mod allocation;
mod attach;
mod bad_targets;
mod decoder;
mod harness;
mod idle;
mod kill;
mod launch;
mod lifecycle;
mod loss;
mod pid_reuse;
mod refusals;
mod sorter;
mod stop_time;
mod system;
mod target;
mod user;
