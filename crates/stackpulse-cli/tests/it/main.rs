//! The command on real programs: compiled here, recorded, and compared with what they are known to do.

mod bad_input;
mod faults;
mod harness;
mod live;
