//! Linux perf events: opened, read without copying, decoded, and put in order.

pub mod callchain;
mod event;
mod payload;
pub mod regs;
mod sample;

pub use event::{Event, EventKind, FileIdentity, Mmap, Task};
pub use payload::Payload;
pub use sample::{CpuMode, Sample, SampleHead, SampleParts};
