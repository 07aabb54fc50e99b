//! The Recorder: samples a process tree into a spool.
//!
//! *What you bring*: a pid, or a program to launch. *What you get*: a spool, written while the program runs, that
//! survives whatever happens to the recorder. *Not for*: reading spools (`stackpulse-spool`) or naming what is in them
//! (`stackpulse-symbolize`).
//!
//! ```no_run
//! use stackpulse_record::{AttachMode, Recorder, RecorderOptions};
//! use std::time::Duration;
//!
//! # fn main() -> Result<(), stackpulse_record::Error> {
//! let options = RecorderOptions::default();
//! let mut recorder = Recorder::attach(1234, "out.spool", AttachMode::StopWhileAttaching, &options)?;
//! while recorder.active_process_count()? > 0 {
//!     let progress = recorder.poll(Duration::from_millis(100))?;
//!     eprintln!("{} more samples", progress.samples);
//! }
//! let (summary, _file) = recorder.finish()?;
//! eprintln!("{} samples in all", summary.samples_written);
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

mod beginning;
mod bell;
mod capture_thread;
mod capturing;
mod error;
mod host;
mod options;
mod recorder;
mod summary;
mod unwind_thread;

/// Starting a program suspended, so that its recording begins with its exec.
pub mod process {
    pub use stackpulse_perf::capture::launch::{
        Launch, LaunchError, LaunchedProcess, SuspendedProcess as SuspendedLaunchedProcess,
    };
}

pub use bell::Interrupter;
pub use error::{Error, ErrorKind};
pub use options::{MAX_STACK_SIZE, RecorderOptions, SampleRate};
pub use recorder::{Progress, Recorder};
pub use stackpulse_perf::capture::{
    AttachMode, AttachOutcome, EventChoice, RefreshOutcome, SampledEvent, Settings,
};
pub use summary::Summary;
