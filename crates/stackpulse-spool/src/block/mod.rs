//! Blocks: whole or absent, checked, of columns that may be compressed.

pub(crate) mod column;
pub(crate) mod frame;
