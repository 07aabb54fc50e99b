//! Linux perf events: opened, read without copying, decoded, and put in order.

mod batch;
pub mod callchain;
#[cfg(feature = "capture")]
pub mod capture;
mod decode;
mod error;
mod event;
mod layout;
mod payload;
pub mod regs;
mod sample;
mod sorter;
mod stats;

pub use batch::Batch;
pub use decode::{DecodeError, Decoded, RECORD_HEADER_LEN, RecordKind, decode};
pub use error::{Advice, CaptureError, OpenError, OpenStep};
pub use event::{AttachedProcess, Event, EventKind, FileIdentity, Mmap, Task};
pub use layout::{SampleLayout, branch_format, field, read_format};
pub use payload::Payload;
pub use sample::{CpuMode, Sample, SampleHead, SampleParts};
pub use sorter::Sorter;
pub use stats::Statistics;
