//! Sums over a profile: what the tables and trees of a report show.

mod callers;
pub(crate) mod compare;
mod fold;
pub(crate) mod health;
mod totals;
mod tree;

pub(crate) use callers::caller_tree;
pub(crate) use fold::folded_module;
pub(crate) use totals::{Count, totals};
pub(crate) use tree::callee_tree;
