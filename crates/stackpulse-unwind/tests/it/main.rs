//! Images as files of real tools.
#![allow(clippy::unwrap_used, reason = "a test says what failed by where it failed")]
#![allow(clippy::print_stderr, reason = "a test says what it skips")]

mod packed;
mod tools;
