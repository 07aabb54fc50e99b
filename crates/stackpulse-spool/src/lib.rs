//! One small, crash-safe file for recorded stacks: the *spool*.
//!
//! A spool holds what a sampling profiler saw: samples with their stacks, and everything needed to read them later
//! on another machine: processes and threads with their lives, mappings, images with build ids, what was lost and when,
//! and, if they were added, the names of all addresses. The bytes are described in `docs/spool-format.md`.
//!
//! # What you bring
//!
//! [`Record`]s in the order of their time, each referring only to what earlier ones defined, and something to
//! [`Write`](std::io::Write) to. Ids are not written but counted; an [`Interner`] keeps count of frames and stacks for you.
//!
//! # What you get
//!
//! - A [`Writer`] that publishes whole blocks: what was published is readable whatever becomes of the writer. A sample of
//!   a known stack takes two to three bytes, and no allocation.
//! - [`Replay`], which reads from front to back with memory for definitions and not for samples; [`Snapshot`], which reads
//!   from any moment on; [`Tail`], which follows a file that another process writes.
//! - Readers that take no byte on trust: damage is told by offset and by what it cost, the rest is delivered, and memory
//!   is bounded by [`limits`].
//! - Names in the file ([`SymbolTable`], [`append_symbols`]), and every record as a line of [`text`] that can be compared.
//!
//! # What it is not for
//!
//! It is no store of arbitrary events or metrics, it is not changed in place, and it neither records nor unwinds nor looks
//! up names: other crates do, and meet in its vocabulary. Only one writer writes a file.
//!
//! # Example
//!
//! ```
//! use stackpulse_spool::{
//!     Frame, Image, ImageId, ImageKind, Interner, Process, ProcessId, Record, RecordSink, Replay, Sample,
//!     StackId, State, Thread, ThreadId, Writer, WriterOptions,
//! };
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // A file, or anything else that takes bytes.
//! let mut writer = Writer::new(Vec::new(), WriterOptions::default())?;
//! writer.record(&Record::Process(Process { pid: 42, generation: 0, parent: None, time_ns: 1000 }))?;
//! writer.record(&Record::Thread(Thread { process: ProcessId(0), tid: 42, time_ns: 1000 }))?;
//! writer.record(&Record::Image(Image {
//!     kind: ImageKind::Elf,
//!     path: b"/usr/bin/prog",
//!     build_id: &[0x1f, 0x2e],
//!     device: (0, 0),
//!     inode: 0,
//!     file_size: 0,
//!     modified_ns: 0,
//! }))?;
//! // main called work, twice seen in work.
//! let mut interner = Interner::new();
//! let [main, work] = [0x1010, 0x1200].map(|address| Frame::Code { image: ImageId(0), address });
//! for time_ns in [2000, 3000] {
//!     let callers = interner.stack(StackId::EMPTY, [main], &mut writer)?;
//!     let leaf = interner.frame(work, &mut writer)?;
//!     let (thread, cpu, weight) = (ThreadId(0), 0, 1000);
//!     writer.record(&Record::Sample(Sample { time_ns, thread, cpu, weight, leaf, callers }))?;
//! }
//! let (file, _len) = writer.finish()?;
//!
//! let mut replay = Replay::open(&file[..])?;
//! let mut seen = Vec::new();
//! while let Some((record, tables)) = replay.next_with_tables()? {
//!     if let Record::Sample(sample) = record {
//!         let callers = tables.frames_of(sample.callers);
//!         let stack: Vec<_> = std::iter::once(sample.leaf).chain(callers).collect();
//!         seen.push(stack.iter().filter_map(|&frame| tables.frame(frame)).collect::<Vec<_>>());
//!     }
//! }
//! assert_eq!(seen, [[work, main], [work, main]]);
//! assert_eq!(replay.state(), State::Finished);
//! assert!(replay.damage().is_empty());
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]

mod append;
mod block;
mod columns;
mod decode;
mod encode;
mod end;
mod error;
mod header;
mod index;
mod intern;
pub mod limits;
mod order;
mod preface;
mod reading;
mod record;
mod replay;
mod scan;
mod sink;
mod snapshot;
mod source;
mod symbols;
mod tables;
mod tag;
mod tail;
pub mod text;
mod varint;
mod writer;

pub use append::{AppendError, append_symbols};
pub use end::Outcome;
pub use error::{Damage, DamagedBlock, LostWith, ReadError, WriteError};
pub use header::{MAGIC, VERSION};
pub use intern::Interner;
pub use record::{
    Frame, FrameId, Host, Image, ImageId, ImageKind, Mapping, Process, ProcessId, Record, Sample,
    Settings, StackId, StackRun, Thread, ThreadId, Truncation,
};
pub use replay::{Replay, State};
pub use sink::RecordSink;
pub use snapshot::Snapshot;
pub use symbols::{Answer, ImageKey, NamedCall, SymbolTable, SymbolTableBuilder};
pub use tables::{Counts, OwnedImage, Tables};
pub use tail::Tail;
pub use writer::{Unfinished, Writer, WriterOptions};
