//! Perf events in, spool records out: processes, modules, unwinding.
//!
//! *What you bring*: [`Event`](stackpulse_perf::Event)s in the order of their times, with the user registers and stack bytes of each
//! sample; a [`ProcessSource`] that answers questions about processes and files; a [`RecordSink`](stackpulse_spool::RecordSink).
//!
//! *What you get*: an [`Engine`] that follows forks, execs, mappings and exits, unwinds each sample by the call frame information of
//! the mapped files (x86-64 and AArch64), and tells a stack that did not reach its root, with the reason. The source for a live system is
//! `procfs::Procfs` (feature `procfs`, default); for a `perf.data` file, and the file's events, see `perf_data` (feature `perf-data`).
//!
//! *Not for*: capturing events, names of functions, debuggers (only what leads to callers is computed), 32-bit code.
//!
//! The engine has no thread, no clock and no file in it: the same events and the same answers give the same records.
//!
//! ```
//! use stackpulse_perf::{AttachedProcess, Event, EventKind};
//! use stackpulse_spool::{Record, RecordSink, text};
//! use stackpulse_unwind::procfs::Procfs;
//! use stackpulse_unwind::Engine;
//!
//! /// Keeps records as lines of text.
//! struct Lines(Vec<String>);
//!
//! impl RecordSink for Lines {
//!     type Error = std::convert::Infallible;
//!
//!     fn record(&mut self, record: &Record<'_>) -> Result<(), Self::Error> {
//!         self.0.push(text::line(record).to_string());
//!         Ok(())
//!     }
//! }
//!
//! let mut lines = Lines(Vec::new());
//! let mut engine = Engine::new(Procfs::new(), false);
//! let pid = std::process::id();
//! let process = AttachedProcess { pid, ..AttachedProcess::default() };
//! let event = Event { time_ns: 1, cpu: None, kind: EventKind::Attached(process) };
//! engine.handle(event, &mut lines)?;
//! engine.finish(2, &mut lines)?;
//! assert!(lines.0[0].starts_with("process "));
//! # Ok::<(), std::convert::Infallible>(())
//! ```
#![forbid(unsafe_code)]

mod address_space;
mod cfi;
mod engine;
mod fast_walk;
mod generations;
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
mod stitch;
mod unpack;
mod walk;

pub use cfi::{CfiSections, Section};
pub use engine::Engine;
pub use image::{ImageError, ImageFile, ImageSymbol, Segment};
pub use maps::{MapsLine, parse as parse_maps};
pub use source::{GeneratedCode, ImageRequest, ProcessSource};
pub use stats::Statistics;
