//! Memory under the name of a file: what a mapping shows whose file is no ELF file, or cannot be opened.
//!
//! Runtimes map the code they make a second time, writable, through a file that no directory names: of memfd_create(2), or deleted
//! as soon as it was opened. A library that was replaced while it is used is deleted too. The first bytes tell them apart.

use crate::maps::{self, MapsLine};
use crate::source::ImageRequest;
use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt};

/// What images begin with: ELF files, and those of Windows, which Wine and .NET map.
const MAGICS: [&[u8]; 2] = [b"\x7fELF", b"MZ"];

/// Whether a file that is no usable ELF file holds code made at run time.
pub(super) fn is_generated(request: &ImageRequest<'_>, file: &File) -> bool {
    let is_unlinked = file.metadata().is_ok_and(|metadata| metadata.nlink() == 0);
    (is_unlinked || is_of_huge_pages(request)) && !begins_as_image(file, 0).unwrap_or(true)
}

/// Whether a file that cannot be opened holds code made at run time, as far as the process's memory shows it. What was made by
/// memfd_create(2) and cannot be looked into is most often just that.
pub(super) fn is_generated_by_memory(request: &ImageRequest<'_>) -> bool {
    by_memory(request).unwrap_or_else(|| is_memfd(request.path))
}

/// Whether a path is that of a file of memfd_create(2).
pub(crate) fn is_memfd(path: &[u8]) -> bool {
    path.starts_with(b"/memfd:")
}

fn by_memory(request: &ImageRequest<'_>) -> Option<bool> {
    let text = fs::read(format!("/proc/{}/maps", request.pid)).ok()?;
    let here = |line: &MapsLine| (line.start_avma..line.end_avma).contains(&request.start_avma);
    let shown = maps::parse(&text).find(here)?;
    if !shown.path.ends_with(b" (deleted)") {
        return Some(false);
    }
    let is_beginning = |line: &MapsLine| {
        line.file_offset == 0 && line.path == shown.path && line.file == shown.file
    };
    // A loader of images maps the file's beginning as well.
    let Some(beginning) = maps::parse(&text).find(is_beginning) else { return Some(true) };
    let memory = File::open(format!("/proc/{}/mem", request.pid)).ok()?;
    Some(!begins_as_image(&memory, beginning.start_avma)?)
}

fn begins_as_image(file: &File, offset: u64) -> Option<bool> {
    let mut bytes = [0; 4];
    let read = file.read_at(&mut bytes, offset).ok()?;
    Some(MAGICS.iter().any(|magic| bytes[..read].starts_with(magic)))
}

/// Whether a mapping shows a file of hugetlbfs: memory, by whatever name.
fn is_of_huge_pages(request: &ImageRequest<'_>) -> bool {
    let (major, minor) = request.file.device;
    let device = format!("{major}:{minor}");
    let Ok(text) = fs::read_to_string(format!("/proc/{}/mountinfo", request.pid)) else {
        return false;
    };
    text.lines().any(|line| {
        // proc_pid_mountinfo(5): the third field is the device, the file system's type comes after a lone hyphen.
        let kind = line.split_once(" - ").and_then(|(_, kind)| kind.split(' ').next());
        line.split(' ').nth(2) == Some(&device) && kind == Some("hugetlbfs")
    })
}
