//! The spool through its public door.

mod damage;
mod names;
mod records;
mod round_trip;
