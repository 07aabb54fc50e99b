//! The world, as far as the engine asks for it.

use stackpulse_perf::FileIdentity;
use stackpulse_unwind::{ImageError, ImageFile};

/// What is known of a mapped file when it is to be opened.
#[derive(Clone, Copy, Debug)]
pub struct ImageRequest<'a> {
    /// A process that maps it.
    pub pid: u32,
    /// The range of that process's addresses.
    pub start_avma: u64,
    /// First address after it.
    pub end_avma: u64,
    /// The path as the process sees it.
    pub path: &'a [u8],
    /// Which file it must be.
    pub file: &'a FileIdentity,
    /// Whether it is the vDSO.
    pub is_vdso: bool,
}

/// A name of code made at run time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GeneratedCode {
    /// First address.
    pub start_avma: u64,
    /// Length in bytes.
    pub size: u64,
    /// The name.
    pub name: Box<[u8]>,
}

/// Answers the engine's questions about processes and files: `/proc` on a live system, a script in a test.
///
/// `None` always means that it cannot be known (any more); the engine goes on with what it knows.
pub trait ProcessSource {
    /// Returns the text of the process's maps.
    fn maps(&mut self, pid: u32) -> Option<Box<[u8]>>;

    /// Returns the process's arguments, each ended by a NUL byte.
    fn command_line(&mut self, pid: u32) -> Option<Box<[u8]>>;

    /// Opens and reads a mapped image.
    ///
    /// # Errors
    ///
    /// When there is no such file, or it is another one, or no ELF file. [`ImageError::Generated`] says that it is code made at run
    /// time: it is then taken for memory of no file, and not asked for again.
    fn image(&mut self, request: &ImageRequest<'_>) -> Result<ImageFile, ImageError>;

    /// Returns the names of generated code that were added since the last call for this process. `restarted`: from the
    /// beginning again.
    fn generated_names(&mut self, pid: u32, restarted: bool) -> Vec<GeneratedCode>;
}
