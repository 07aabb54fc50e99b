//! The offline world: files on this machine, or those of another below a directory.

use super::Facts;
use crate::procfs::{is_memfd, modified_ns, own_vdso, read_perf_map};
use crate::regular_file;
use crate::source::{GeneratedCode, ImageRequest, ProcessSource};
use stackpulse_perf::regs::Arch;
use stackpulse_unwind::{ImageError, ImageFile};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Answers from files, for a recording whose processes are gone. A file whose build id is not the recorded one is not used.
#[derive(Debug)]
pub struct FileSource {
    symfs: Option<PathBuf>,
    /// Where perf keeps copies of what it recorded, by build id.
    copies: Option<PathBuf>,
    /// Whether the recording comes from a kernel like this one.
    is_this_kernel: bool,
    /// Files of other machines are none of the recording's.
    arch: Option<Arch>,
}

impl FileSource {
    /// Looks for files where they were when they were recorded, or below `symfs`; and among perf's copies, below
    /// `PERF_BUILDID_DIR` or `~/.debug`.
    #[must_use]
    pub fn new(facts: &Facts, symfs: Option<PathBuf>) -> Self {
        let copies = std::env::var_os("PERF_BUILDID_DIR")
            .map(PathBuf::from)
            .or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".debug")));
        let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        let is_this_kernel = facts.architecture == std::env::consts::ARCH
            && facts.kernel_release == release.trim_end();
        Self { symfs, copies, is_this_kernel, arch: facts.arch() }
    }

    /// Where an image may lie, the surest place first.
    fn places(&self, request: &ImageRequest<'_>) -> Vec<PathBuf> {
        let path = Path::new(OsStr::from_bytes(request.path));
        let mut places = Vec::new();
        if let Some(symfs) = &self.symfs {
            if request.is_vdso {
                places.extend(["[vdso]", "vdso.so", "vdso/vdso.so"].map(|name| symfs.join(name)));
            } else {
                places.push(symfs.join(path.strip_prefix("/").unwrap_or(path)));
            }
        }
        if let (Some(copies), Some(id)) = (&self.copies, request.file.build_id.as_deref()) {
            places.extend(copy_of(copies, id, request.is_vdso));
        }
        if self.symfs.is_none() && !request.is_vdso {
            places.push(path.to_path_buf());
        }
        places
    }
}

/// Where perf keeps its copy: `.build-id/ab/cdef...`, a directory with the file in it.
fn copy_of(copies: &Path, id: &[u8], is_vdso: bool) -> Option<PathBuf> {
    let hex: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
    let (first, rest) = hex.split_at_checked(2)?;
    let name = if is_vdso { "vdso" } else { "elf" };
    Some(copies.join(".build-id").join(first).join(rest).join(name))
}

impl ProcessSource for FileSource {
    fn maps(&mut self, _: u32) -> Option<Box<[u8]>> {
        None
    }

    fn command_line(&mut self, _: u32) -> Option<Box<[u8]>> {
        None
    }

    fn image(&mut self, request: &ImageRequest<'_>) -> Result<ImageFile, ImageError> {
        let mut failure = ImageError::Unreadable;
        for place in self.places(request) {
            match read(&place, request) {
                Ok(image) if self.arch.is_some() && image.arch != self.arch => {
                    failure = ImageError::Replaced;
                }
                Ok(image) => return Ok(image),
                Err(ImageError::Unreadable) => {}
                Err(error) => failure = error,
            }
        }
        let own = || ImageFile::parse(&*own_vdso()?, true).ok();
        if request.is_vdso
            && let Some(image) = own()
            && match request.file.build_id.as_deref() {
                Some(recorded) => recorded == image.build_id,
                None => self.is_this_kernel,
            }
        {
            return Ok(image);
        }
        // perf tells the build id of what is an image.
        if is_memfd(request.path) && request.file.build_id.is_none() {
            return Err(ImageError::Generated);
        }
        Err(failure)
    }

    fn generated_names(&mut self, pid: u32, restarted: bool) -> Vec<GeneratedCode> {
        // The process has ended, and its map is whole.
        if !restarted {
            return Vec::new();
        }
        let root = self.symfs.as_deref().unwrap_or(Path::new("/"));
        read_perf_map(&root.join(format!("tmp/perf-{pid}.map")))
    }
}

fn read(place: &Path, request: &ImageRequest<'_>) -> Result<ImageFile, ImageError> {
    let (file, metadata) = regular_file::open(place)?;
    let mut image = ImageFile::parse(&object::ReadCache::new(file), request.is_vdso)?;
    let recorded = request.file.build_id.as_deref().unwrap_or_default();
    if !recorded.is_empty() && image.build_id != recorded {
        return Err(ImageError::Replaced);
    }
    if !request.is_vdso {
        image.file_size = metadata.len();
        image.modified_ns = modified_ns(&metadata);
    }
    Ok(image)
}
