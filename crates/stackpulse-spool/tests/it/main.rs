//! The spool through its public door.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test says what failed by where it failed"
)]

mod crafted;
mod damage;
mod every_kind;
mod follow;
mod golden;
mod names;
mod records;
mod round_trip;
mod seek;
mod shared;
