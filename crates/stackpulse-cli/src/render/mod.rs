//! What facts look like as text.

mod text;
mod tables;
mod units;

pub(crate) use tables::{Row, Table, print_rows, print_tree_row};
pub(crate) use text::{elide, printable};
pub(crate) use units::{bytes, duration, percent, plural};
