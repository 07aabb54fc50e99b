//! What facts look like as text.

mod pager;
pub(crate) mod progress;
pub(crate) mod summary;
mod tables;
mod text;
mod units;

pub(crate) use pager::Screen;
pub(crate) use tables::{Row, Table};
pub(crate) use text::{elide, printable, wrap};
pub(crate) use units::{bytes, duration, percent, plural};
