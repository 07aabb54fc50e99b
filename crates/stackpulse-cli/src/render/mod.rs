//! What facts look like as text.

pub(crate) mod summary;
mod tables;
mod text;
mod units;

pub(crate) use tables::{Row, Table, print_rows, print_tree_row};
pub(crate) use text::{elide, printable};
pub(crate) use units::{bytes, duration, percent, plural};
