//! The command on real programs: compiled here, recorded, and compared with what they are known to do.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test says what failed, and why it was skipped"
)]

mod bad_input;
mod building;
mod comparing;
mod diagnosis;
mod export;
mod facts;
mod faults;
mod filters;
mod generated;
mod harness;
mod idle;
mod import;
mod live;
mod machine;
mod moved_text;
mod odd_stacks;
mod pages;
mod reading;
mod recording;
mod serving;
mod symbolizing;
mod terminal;
mod watching;
