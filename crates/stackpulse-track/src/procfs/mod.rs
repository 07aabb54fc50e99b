//! The live world: `/proc`, and the files that processes map.

mod open;
mod perf_map;
mod unlinked;

use crate::maps;
use crate::source::{GeneratedCode, ImageRequest, ProcessSource};
use perf_map::PerfMaps;
#[cfg(feature = "perf-data")]
pub(crate) use perf_map::read_whole as read_perf_map;
use stackpulse_unwind::{ImageError, ImageFile};
use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt};
#[cfg(feature = "perf-data")]
pub(crate) use unlinked::is_memfd;

/// Longer command lines are cut.
const MAX_COMMAND_LINE: usize = 64 << 10;

/// Answers from `/proc` of this system.
#[derive(Debug, Default)]
pub struct Procfs {
    perf_maps: PerfMaps,
}

impl Procfs {
    /// Makes one.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

impl ProcessSource for Procfs {
    fn maps(&mut self, pid: u32) -> Option<Box<[u8]>> {
        fs::read(format!("/proc/{pid}/maps")).ok().map(Into::into)
    }

    fn command_line(&mut self, pid: u32) -> Option<Box<[u8]>> {
        let mut arguments = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        arguments.truncate(MAX_COMMAND_LINE);
        Some(arguments.into())
    }

    fn image(&mut self, request: &ImageRequest<'_>) -> Result<ImageFile, ImageError> {
        if request.is_vdso {
            return ImageFile::parse(&*own_vdso().ok_or(ImageError::Unreadable)?, true);
        }
        let file = match open::open(request) {
            Ok(file) => file,
            Err(_) if unlinked::is_generated_by_memory(request) => {
                return Err(ImageError::Generated);
            }
            Err(error) => return Err(error),
        };
        let metadata = file.metadata().map_err(|_| ImageError::Unreadable)?;
        let parsed = ImageFile::parse(&object::ReadCache::new(&file), false);
        if parsed.is_err() && unlinked::is_generated(request, &file) {
            return Err(ImageError::Generated);
        }
        let mut image = parsed?;
        image.file_size = metadata.len();
        image.modified_ns = modified_ns(&metadata);
        Ok(image)
    }

    fn generated_names(&mut self, pid: u32, restarted: bool) -> Vec<GeneratedCode> {
        self.perf_maps.read_on(pid, restarted)
    }
}

/// When the file was last changed, nanoseconds since 1970 UTC.
pub(crate) fn modified_ns(metadata: &fs::Metadata) -> u64 {
    let seconds = u64::try_from(metadata.mtime()).unwrap_or_default();
    let rest = u64::try_from(metadata.mtime_nsec()).unwrap_or_default();
    seconds.saturating_mul(1_000_000_000).saturating_add(rest)
}

/// The vDSO of this process: the kernel shows every process the same.
pub(crate) fn own_vdso() -> Option<Vec<u8>> {
    let text = fs::read("/proc/self/maps").ok()?;
    let line = maps::parse(&text).find(|line| &*line.path == b"[vdso]")?;
    let len = usize::try_from(line.end_avma - line.start_avma).ok()?;
    let mut bytes = vec![0; len.min(1 << 20)];
    File::open("/proc/self/mem").ok()?.read_exact_at(&mut bytes, line.start_avma).ok()?;
    Some(bytes)
}
