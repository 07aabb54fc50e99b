//! Opening files that others may have put something else in the place of.

use stackpulse_unwind::ImageError;
use std::fs::{File, Metadata, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Opening a FIFO or a device must not wait: `O_NONBLOCK` of open(2), the same on x86-64 and AArch64.
const O_NONBLOCK: i32 = 0o4000;

/// Opens a file, if it is a regular one.
pub(crate) fn open(path: &Path) -> Result<(File, Metadata), ImageError> {
    let opened = OpenOptions::new().read(true).custom_flags(O_NONBLOCK).open(path);
    let file = opened.map_err(|_| ImageError::Unreadable)?;
    let metadata = file.metadata().map_err(|_| ImageError::Unreadable)?;
    if metadata.is_file() { Ok((file, metadata)) } else { Err(ImageError::NotAFile) }
}
