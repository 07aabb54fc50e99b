//! Where to look for names, and what that may cost.

#[cfg(doc)]
use crate::Reason;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Where to look for files, and with what effort.
#[derive(Clone, Debug)]
pub struct SymbolizerOptions {
    /// Directories of separate debug files, before the system's own.
    pub debug_dirs: Vec<PathBuf>,
    /// Recorded paths are looked for below this directory instead of the root.
    pub symfs: Option<PathBuf>,
    /// Recorded paths are looked for below these directories too, such as `/proc/PID/root` of a target in a container.
    pub roots: Vec<PathBuf>,
    /// Where debuginfod clients keep what they fetched: `$DEBUGINFOD_CACHE_PATH` or `~/.cache/debuginfod_client`.
    pub debuginfod_cache: Option<PathBuf>,
    /// The boot that kernel addresses are from; empty: not known.
    pub boot_id: Vec<u8>,
    /// How many threads read files.
    pub threads: usize,
    /// How many bytes may be in memory at a time of all that is read and unpacked, of all images and all threads together:
    /// three quarters are for files, one for the answers. What a file has that needs more is not used
    /// ([`Reason::OverBudget`]). Debug information that is not packed needs little: it is read where it lies.
    pub max_memory_bytes: u64,
    /// How many steps all images of one call may take: about a nanosecond each. One image may take some for each byte that its
    /// files have on disk, and so many that a small file is not short of them.
    pub max_steps: u64,
    /// Set this, from another thread or a signal's handler, and naming ends within milliseconds: what is not named by then has
    /// [`Reason::Stopped`]. As long as it is set nothing is read.
    pub stop: Arc<AtomicBool>,
}

impl Default for SymbolizerOptions {
    fn default() -> Self {
        Self {
            debug_dirs: Vec::new(),
            symfs: None,
            roots: Vec::new(),
            debuginfod_cache: None,
            boot_id: Vec::new(),
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            max_memory_bytes: 512 << 20,
            max_steps: 1 << 34,
            stop: Arc::default(),
        }
    }
}
