//! One file per command.

pub(crate) mod cargo;
pub(crate) mod completions;
pub(crate) mod demo;
pub(crate) mod diff;
pub(crate) mod doctor;
pub(crate) mod export;
pub(crate) mod import;
pub(crate) mod info;
pub(crate) mod man;
pub(crate) mod record;
pub(crate) mod report;
pub(crate) mod symbolize;
pub(crate) mod top;
pub(crate) mod verify;
pub(crate) mod view;
