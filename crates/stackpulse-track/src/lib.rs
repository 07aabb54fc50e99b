//! Perf events in, spool records out: processes, mappings, stacks.
//!
//! *What you bring*: [`Event`](stackpulse_perf::Event)s in the order of their times, with the user registers and stack bytes of each
//! sample; a [`ProcessSource`] that answers questions about processes and files; a [`RecordSink`](stackpulse_spool::RecordSink).
//!
//! *What you get*: an [`Engine`] that follows forks, execs, mappings and exits, unwinds each sample with `stackpulse-unwind`, and tells a
//! stack that did not reach its root, with the reason. The source for a live system is `procfs::Procfs` (feature `procfs`, default);
//! for a `perf.data` file, and the file's events, see `perf_data` (feature `perf-data`).
//!
//! *Not for*: capturing events, names of functions.
//!
//! The engine has no thread, no clock and no file in it: the same events and the same answers give the same records.
//!
//! ```
//! use stackpulse_perf::{AttachedProcess, Event, EventKind};
//! use stackpulse_spool::{Record, RecordSink, text};
//! use stackpulse_track::procfs::Procfs;
//! use stackpulse_track::{Engine, EngineOptions};
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
//! let mut engine = Engine::new(Procfs::new(), Lines(Vec::new()), EngineOptions::default());
//! let pid = std::process::id();
//! let process = AttachedProcess { pid, ..AttachedProcess::default() };
//! engine.handle(Event { time_ns: 1, cpu: None, kind: EventKind::Attached(process) })?;
//! engine.finish(2)?;
//! assert!(engine.into_sink().0[0].starts_with("process "));
//! # Ok::<(), std::convert::Infallible>(())
//! ```
#![forbid(unsafe_code)]

mod by_id;
mod engine;
mod generations;
mod images;
mod maps;
mod moved_text;
mod output;
#[cfg(feature = "perf-data")]
pub mod perf_data;
mod process;
#[cfg(feature = "procfs")]
pub mod procfs;
#[cfg(feature = "procfs")]
mod regular_file;
mod sample;
mod source;
mod stats;

pub use engine::{Engine, EngineOptions};
pub use maps::{MapsLine, parse as parse_maps};
pub use source::{GeneratedCode, ImageRequest, ProcessSource};
pub use stackpulse_unwind::{CfiSections, ImageError, ImageFile, ImageSymbol, Section, Segment};
pub use stats::Statistics;
