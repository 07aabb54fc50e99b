//! One small, crash-safe file for recorded stacks: the *spool*.

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
