//! Call frame information, compiled once and used for every process that maps the image.

mod expression;
mod front;
mod rule;
mod simple;
mod table;

pub(crate) use expression::{Failure, evaluate};
pub(crate) use front::{Front, Jump};
pub(crate) use rule::{Cfa, Restore, Rule};
pub(crate) use simple::Simple;
pub(crate) use table::CfiTable;
pub use table::{CfiSections, Section};
