//! Opening files that may be anything.

use std::fs::{File, Metadata, OpenOptions};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

/// A FIFO or a device must not make us wait: `O_NONBLOCK` of open(2), the same on x86-64 and AArch64.
const O_NONBLOCK: i32 = 0o4000;

/// Opens a regular file.
pub(crate) fn open(path: &Path) -> Option<(File, Metadata)> {
    let file = OpenOptions::new().read(true).custom_flags(O_NONBLOCK).open(path).ok()?;
    let metadata = file.metadata().ok()?;
    metadata.is_file().then_some((file, metadata))
}

/// When a file was last changed, nanoseconds since 1970 UTC.
pub(crate) fn modified_ns(metadata: &Metadata) -> u64 {
    let seconds = u64::try_from(metadata.mtime()).unwrap_or_default();
    let rest = u64::try_from(metadata.mtime_nsec()).unwrap_or_default();
    seconds.saturating_mul(1_000_000_000).saturating_add(rest)
}
