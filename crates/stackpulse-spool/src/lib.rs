//! One small, crash-safe file for recorded stacks: the *spool*.

mod record;
mod sink;

pub use record::{
    Frame, FrameId, Host, Image, ImageId, ImageKind, Mapping, Process, ProcessId, Record, Sample,
    Settings, StackId, StackRun, Summary, Thread, ThreadId, Truncation,
};
pub use sink::RecordSink;
