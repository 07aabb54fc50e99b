//! Linux perf events: opened, read without copying, decoded, and put in order.
//!
//! **You bring** a process, a control group, or a whole machine, and a thread that calls [`Capture::wait`] and
//! [`Capture::drain`](capture::Capture::drain) now and then. **You get** batches of [`Event`]s in the order of their times: samples with
//! registers and stack, and what happens to processes (mappings, comms, forks, execs, exits), with every loss in its place. A
//! sample's bytes stay in the kernel's ring until you drop it, on whatever thread.
//!
//! **It is not for** unwinding or naming what was sampled, for counting without samples, or for tracepoints and other raw data.
//! Nor does it write files.
//!
//! ```
//! use stackpulse_perf::capture::{AttachMode, Capture, CaptureOptions};
//! use stackpulse_perf::{Batch, EventKind};
//! use std::time::{Duration, Instant};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // This process itself, which must not be paused meanwhile.
//! let attached =
//!     Capture::attach(std::process::id(), AttachMode::Running, &CaptureOptions::default());
//! let mut capture = match attached {
//!     Ok(capture) => capture,
//!     // The error tells what was refused, and what would help.
//!     Err(error) => return Ok(println!("{error}")),
//! };
//! let mut batch = Batch::new();
//! let mut samples = 0;
//! let end = Instant::now() + Duration::from_millis(100);
//! while Instant::now() < end {
//!     capture.wait(Duration::from_millis(10))?;
//!     capture.drain(&mut batch)?;
//!     for event in batch.drain() {
//!         match event.kind {
//!             EventKind::Sample(sample) => samples += usize::from(sample.user_regs().is_some()),
//!             EventKind::Attached(process) => assert_eq!(process.pid, std::process::id()),
//!             EventKind::Lost { events, .. } => println!("{events} lost at {} ns", event.time_ns),
//!             _ => {}
//!         }
//!     }
//! }
//! println!("{samples} samples, {:?}", capture.statistics());
//! # Ok(())
//! # }
//! ```
//!
//! The examples `print_events PID` and `count_lost PID` do the same for another process.
//!
//! # What is where
//!
//! | for | see |
//! |---|---|
//! | opening: processes, control groups, everything | [`capture::Capture`], [`capture::CaptureOptions`] |
//! | starting a program suspended, to sample it from its first instruction | [`capture::launch`] |
//! | what a refusal means | [`OpenError`] |
//! | records of your own, such as a file of perf's | [`SampleLayout`], [`decode`] |
//! | putting events of several queues in order | [`Sorter`] |
//!
//! Times are nanoseconds of `CLOCK_MONOTONIC`; addresses are those in the process (AVMA). Without the default feature `capture`
//! there remain types, decoder and sorter, for any system and without libc.
//!
//! [`Capture::wait`]: capture::Capture::wait

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
