//! The spool through its public door.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test says what failed by where it failed"
)]

#[allow(unreachable_pub, reason = "the fuzz targets make it public")]
mod agree;
mod allocation;
mod crafted;
mod damage;
mod every_kind;
mod follow;
mod golden;
mod names;
mod records;
mod regressions;
mod round_trip;
mod seek;
mod sequence;
mod shared;
