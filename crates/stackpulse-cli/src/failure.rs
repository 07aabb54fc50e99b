//! Why a command could not do its job: one sentence for people, one number for programs.

use std::fmt;

/// A sentence and the exit status that goes with it.
#[derive(Debug)]
pub(crate) struct Failure {
    message: String,
    status: u8,
}

/// The command itself failed (as env(1) and timeout(1) number it).
pub(crate) const RECORDER_FAILED: u8 = 125;
/// The program to record was found but could not be started.
pub(crate) const NOT_EXECUTABLE: u8 = 126;
/// The program to record was not found.
pub(crate) const NOT_FOUND: u8 = 127;

impl Failure {
    /// A failure with the usual status 1.
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self::with_status(1, message)
    }

    /// A failure with its own status.
    pub(crate) fn with_status(status: u8, message: impl Into<String>) -> Self {
        Self { message: message.into(), status }
    }

    /// Returns the exit status to end with.
    pub(crate) fn status(&self) -> u8 {
        self.status
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// Output that cannot be written, such as to a closed pipe, is told like any failure.
impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::new(format!("write the output: {error}"))
    }
}
