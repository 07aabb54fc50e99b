//! Opening the very file that a process maps.

use crate::regular_file;
use crate::source::ImageRequest;
use stackpulse_unwind::ImageError;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Tries the places where the file may be had, from the surest on.
///
/// `map_files` is the mapped file itself, whatever became of its path, but for root alone; the path below the process's root
/// is right in other mount namespaces; the plain path remains when the process has ended. A file that no directory names may still
/// be open in the process.
pub(super) fn open(request: &ImageRequest<'_>) -> Result<File, ImageError> {
    let (pid, start, end) = (request.pid, request.start_avma, request.end_avma);
    let path = request.path.strip_suffix(b" (deleted)").unwrap_or(request.path);
    let path = Path::new(OsStr::from_bytes(path));
    let mut below_root = PathBuf::from(format!("/proc/{pid}/root"));
    below_root.push(path.strip_prefix("/").unwrap_or(path));
    let exe = PathBuf::from(format!("/proc/{pid}/exe"));
    let places = [
        PathBuf::from(format!("/proc/{pid}/map_files/{start:x}-{end:x}")),
        below_root,
        exe.clone(),
        path.to_path_buf(),
    ];
    let mut failure = ImageError::Unreadable;
    for place in places {
        // The program may stand for a mapping only if it is known to be the mapped file.
        if place == exe && request.file.inode == 0 {
            continue;
        }
        match open_checked(&place, request) {
            Ok(file) => return Ok(file),
            // The most telling reason is kept: a file that is another one, rather than none.
            Err(ImageError::Unreadable) => {}
            Err(error) => failure = error,
        }
    }
    among_descriptors(request).ok_or(failure)
}

/// More descriptors are not looked through.
const MAX_DESCRIPTORS: usize = 4096;

fn among_descriptors(request: &ImageRequest<'_>) -> Option<File> {
    if request.file.inode == 0 {
        return None;
    }
    let descriptors = fs::read_dir(format!("/proc/{}/fd", request.pid)).ok()?;
    let mut files = descriptors.take(MAX_DESCRIPTORS).filter_map(|entry| {
        let place = entry.ok()?.path();
        let name = fs::read_link(&place).ok()?;
        let name = name.as_os_str().as_bytes();
        let name = name.strip_suffix(b" (deleted)").unwrap_or(name);
        // What else has that name, as a pipe or a device, is not even opened.
        let may_be = name == request.path && fs::metadata(&place).is_ok_and(|it| it.is_file());
        if may_be { open_checked(&place, request).ok() } else { None }
    });
    files.next()
}

fn open_checked(place: &Path, request: &ImageRequest<'_>) -> Result<File, ImageError> {
    let (file, metadata) = regular_file::open(place)?;
    // Overlay file systems tell other device numbers through stat than through maps; the inode is the file's own.
    let is_same = request.file.inode == 0 || metadata.ino() == request.file.inode;
    if is_same { Ok(file) } else { Err(ImageError::Replaced) }
}
