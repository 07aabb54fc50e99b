//! Signals that end a recording.

use crate::failure::Failure;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::SignalsInfo;
use signal_hook::iterator::exfiltrator::WithOrigin;
use signal_hook::low_level::siginfo::{Cause, Origin};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The signals that finish the file; a second SIGINT leaves at once.
pub(crate) struct EndSignals(SignalsInfo<WithOrigin>);

/// A signal that asked for the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EndSignal {
    /// Its number.
    pub(crate) number: i32,
    /// Whether the terminal sent it, so that the launched program got it too.
    pub(crate) from_terminal: bool,
}

impl EndSignals {
    /// Takes SIGINT, SIGTERM and SIGHUP over.
    pub(crate) fn take_over() -> Result<Self, Failure> {
        let failed = |error| {
            Failure::with_status(
                crate::failure::RECORDER_FAILED,
                format!("take over the signals that end a recording: {error}"),
            )
        };
        // Set by the first SIGINT; a SIGINT that finds it set ends the process. The order of the two matters.
        let interrupted = Arc::new(AtomicBool::new(false));
        signal_hook::flag::register_conditional_shutdown(SIGINT, 130, Arc::clone(&interrupted))
            .map_err(failed)?;
        signal_hook::flag::register(SIGINT, interrupted).map_err(failed)?;
        Ok(Self(SignalsInfo::new([SIGINT, SIGTERM, SIGHUP]).map_err(failed)?))
    }

    /// Returns a signal that has come since the last call, if any; never waits.
    pub(crate) fn pending(&mut self) -> Option<EndSignal> {
        self.0.pending().next().map(|origin: Origin| EndSignal {
            number: origin.signal,
            from_terminal: origin.cause == Cause::Kernel,
        })
    }
}
