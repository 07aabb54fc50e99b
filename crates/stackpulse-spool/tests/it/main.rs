//! The spool through its public door.

#![allow(clippy::unwrap_used, reason = "a test says what failed by where it failed")]

mod damage;
mod follow;
mod names;
mod records;
mod round_trip;
mod seek;
mod shared;
