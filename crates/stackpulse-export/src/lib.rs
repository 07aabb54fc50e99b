//! Resolved samples, ready for any form.
//!
//! *What you bring*: the records of a spool, and names for its addresses. *What you get*: a [`Profile`] of distinct
//! stacks with function names, and writers of other programs' forms over it. *Not for*: looking names up (that is
//! `stackpulse-symbolize`) or drawing on a terminal (that is the command).

#![forbid(unsafe_code)]

mod collapsed;
mod filter;
mod load;
mod profile;
mod stacks;

pub use collapsed::write_collapsed;
pub use filter::{NameFilter, SampleFilter};
pub use load::Loader;
pub use profile::{Call, Function, FunctionId, Mode, NamedCall, Naming, Profile, module_name};
pub use stacks::{
    Actor, Node, Place, ProfileProcess, ProfileThread, RecordedName, StackKey, Stacks,
};
