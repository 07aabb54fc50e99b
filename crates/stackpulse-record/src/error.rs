//! What went wrong with a recording.

use std::error::Error as StdError;
use std::{fmt, io};

/// What sort of failure an [`Error`] is: what a program would decide by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Reading or writing failed; never said of the target's end.
    Io,
    /// The call or an option makes no sense: the caller must change it.
    InvalidInput,
    /// The kernel refused: the message says what would allow it.
    Permission,
    /// The process to record does not exist, or ended before it could be recorded.
    TargetGone,
    /// The program to record could not be started.
    ProcessLaunch,
    /// The sample rate is above the kernel's limit.
    FrequencyLimit,
    /// The spool breaks its own rules.
    CorruptSpool,
    /// This kernel or machine cannot do it.
    Unsupported,
    /// Names could not be looked up.
    Symbolize,
}

/// Why a call failed: the first failure, what it was attempted on, and failures that followed it.
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    message: String,
    raw_os_error: Option<i32>,
    source: Option<Box<dyn StdError + Send + Sync>>,
    later: Vec<String>,
}

impl Error {
    /// Makes an error of one sentence.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), raw_os_error: None, source: None, later: Vec::new() }
    }

    /// Makes an error from the one that caused it; its message goes after `attempt`.
    pub(crate) fn caused(
        kind: ErrorKind,
        attempt: impl fmt::Display,
        cause: impl StdError + Send + Sync + 'static,
    ) -> Self {
        let raw_os_error = os_error_in(&cause);
        let message = format!("{attempt}: {cause}");
        Self { kind, message, raw_os_error, source: Some(Box::new(cause)), later: Vec::new() }
    }

    /// Makes an error from one whose message says it all.
    pub(crate) fn plain(kind: ErrorKind, cause: impl StdError + Send + Sync + 'static) -> Self {
        let raw_os_error = os_error_in(&cause);
        let message = cause.to_string();
        Self { kind, message, raw_os_error, source: Some(Box::new(cause)), later: Vec::new() }
    }

    /// Adds a failure that happened while cleaning up after this one.
    pub(crate) fn followed_by(mut self, later: &Error) -> Self {
        self.later.push(later.to_string());
        self
    }

    /// Returns what sort of failure it is.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Returns the system's error number, if the cause was a system call.
    #[must_use]
    pub fn raw_os_error(&self) -> Option<i32> {
        self.raw_os_error
    }

    /// Returns the failures that followed the first, in order.
    #[must_use]
    pub fn later(&self) -> &[String] {
        &self.later
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        for later in &self.later {
            write!(f, "; then {later}")?;
        }
        Ok(())
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source.as_deref().map(|source| source as &(dyn StdError + 'static))
    }
}

/// Finds the system's error number in a chain of causes.
fn os_error_in(error: &(dyn StdError + 'static)) -> Option<i32> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(number) = error.downcast_ref::<io::Error>().and_then(io::Error::raw_os_error) {
            return Some(number);
        }
        next = error.source();
    }
    None
}
