//! Opening files that may be anything.

use crate::input::Input;
use std::fs::{File, Metadata, OpenOptions};
use std::io::Read;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;

/// A FIFO or a device must not make us wait: `O_NONBLOCK` of open(2), the same on x86-64 and AArch64.
const O_NONBLOCK: i32 = 0o4000;

/// Opens a regular file.
pub(crate) fn open(path: &Path) -> Option<(File, Metadata)> {
    let file = OpenOptions::new().read(true).custom_flags(O_NONBLOCK).open(path).ok()?;
    let metadata = file.metadata().ok()?;
    metadata.is_file().then_some((file, metadata))
}

/// Opens a regular file to read pieces of it.
pub(crate) fn input(path: &Path) -> Option<Arc<Input>> {
    let (file, _) = open(path)?;
    Input::file(file).ok().map(Arc::new)
}

/// When a file was last changed, nanoseconds since 1970 UTC.
pub(crate) fn modified_ns(metadata: &Metadata) -> u64 {
    let seconds = u64::try_from(metadata.mtime()).unwrap_or_default();
    let rest = u64::try_from(metadata.mtime_nsec()).unwrap_or_default();
    seconds.saturating_mul(1_000_000_000).saturating_add(rest)
}

/// The CRC-32 of a file's bytes, as `.gnu_debuglink` states it.
pub(crate) fn crc32(path: &Path) -> Option<u32> {
    let (mut file, _) = open(path)?;
    let mut hasher = crc32fast::Hasher::new();
    let mut chunk = vec![0; 256 << 10];
    loop {
        match file.read(&mut chunk).ok()? {
            0 => return Some(hasher.finalize()),
            read => hasher.update(&chunk[..read]),
        }
    }
}
