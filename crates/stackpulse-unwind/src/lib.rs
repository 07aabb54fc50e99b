//! Perf events in, spool records out: processes, modules, unwinding.
#![forbid(unsafe_code)]

mod address_space;
mod cfi;
mod engine;
mod fast_walk;
mod image;
mod image_cache;
mod maps;
mod memo;
mod output;
#[cfg(feature = "perf-data")]
pub mod perf_data;
mod process;
#[cfg(feature = "procfs")]
pub mod procfs;
mod registers;
#[cfg(feature = "procfs")]
mod regular_file;
mod sample;
mod source;
mod stats;
mod walk;

pub use cfi::{CfiSections, Section};
pub use engine::Engine;
pub use image::{ImageError, ImageFile, ImageSymbol, Segment};
pub use maps::{MapsLine, parse as parse_maps};
pub use source::{GeneratedCode, ImageRequest, ProcessSource};
pub use stats::Statistics;
