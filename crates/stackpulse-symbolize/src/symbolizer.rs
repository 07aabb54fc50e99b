//! From an image and addresses to names.

use crate::elf::{self, ElfNames, Identity};
use crate::files;
use crate::kernel::KernelSymbols;
use crate::lookup::{Call, Lookup, Origin, Reason};
use crate::search;
use stackpulse_spool::{Image, ImageKind};
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Where to look for files.
#[derive(Clone, Debug, Default)]
pub struct SymbolizerOptions {
    /// Directories of separate debug files, before the system's own.
    pub debug_dirs: Vec<PathBuf>,
    /// Recorded paths are looked for below this directory instead of the root.
    pub symfs: Option<PathBuf>,
    /// The boot that kernel addresses are from; empty: not known.
    pub boot_id: Vec<u8>,
}

/// An image whose addresses are to be named.
#[derive(Clone, Debug)]
pub struct ImageQuery {
    /// What addresses in it mean.
    pub kind: ImageKind,
    /// Its path on the machine that was recorded.
    pub path: PathBuf,
    /// Its build id; empty: not known.
    pub build_id: Vec<u8>,
    /// Its size in bytes; zero: not known.
    pub file_size: u64,
    /// When it was last changed, nanoseconds since 1970 UTC; zero: not known.
    pub modified_ns: u64,
}

impl ImageQuery {
    /// A file of this machine, as it is; addresses are SVMAs.
    #[must_use]
    pub fn file(path: impl Into<PathBuf>) -> Self {
        Self {
            kind: ImageKind::Elf,
            path: path.into(),
            build_id: Vec::new(),
            file_size: 0,
            modified_ns: 0,
        }
    }
}

impl From<&Image<'_>> for ImageQuery {
    fn from(image: &Image<'_>) -> Self {
        Self {
            kind: image.kind,
            path: PathBuf::from(OsStr::from_bytes(image.path)),
            build_id: image.build_id.to_vec(),
            file_size: image.file_size,
            modified_ns: image.modified_ns,
        }
    }
}

/// Names addresses. Nothing of it is global: several may work at the same time.
pub struct Symbolizer {
    options: SymbolizerOptions,
    debug_dirs: Vec<PathBuf>,
    kernel: Option<Option<KernelSymbols>>,
}

/// A file with names, and how file offsets translate to its addresses.
struct Names {
    segments: Vec<(u64, u64, u64)>,
    /// With debug information or symbols; the best first.
    sources: Vec<ElfNames>,
}

impl std::fmt::Debug for Symbolizer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Symbolizer").field("options", &self.options).finish_non_exhaustive()
    }
}

impl Symbolizer {
    /// Makes one; nothing is read yet.
    #[must_use]
    pub fn new(options: SymbolizerOptions) -> Self {
        let mut debug_dirs = options.debug_dirs.clone();
        debug_dirs.push(PathBuf::from(search::GLOBAL_DEBUG_DIR));
        Self { options, debug_dirs, kernel: None }
    }

    /// Answers for each of the addresses, which mean what the image's kind says. Ask once for all addresses of an
    /// image: its files are read for the call and not kept.
    pub fn symbolize(&mut self, image: &ImageQuery, addresses: &[u64]) -> Vec<Lookup> {
        match image.kind {
            ImageKind::Kernel => addresses.iter().map(|&address| self.kernel(address)).collect(),
            ImageKind::Elf | ImageKind::File => match self.names(image) {
                Ok(names) => {
                    addresses.iter().map(|&address| names.lookup(image.kind, address)).collect()
                }
                Err(reason) => vec![Lookup::Unresolved { reason }; addresses.len()],
            },
            _ => vec![Lookup::Unresolved { reason: Reason::UnknownCode }; addresses.len()],
        }
    }

    fn kernel(&mut self, address: u64) -> Lookup {
        let boot_id = &self.options.boot_id;
        let symbols = self.kernel.get_or_insert_with(|| KernelSymbols::of_boot(boot_id));
        match symbols.as_ref().map(|symbols| symbols.lookup(address)) {
            None => Lookup::Unresolved { reason: Reason::NoKernelSymbols },
            Some(None) => Lookup::Unresolved { reason: Reason::NoSymbol },
            Some(function) => {
                let call = Call { function, ..Call::default() };
                Lookup::Resolved { calls: vec![call], origin: Origin::Kallsyms }
            }
        }
    }

    /// Reads the files that name an image's addresses.
    fn names(&self, image: &ImageQuery) -> Result<Names, Reason> {
        let (path, found) = self.image_file(image);
        let (identity, file) = match found {
            Ok((identity, file)) => (identity, Some(file)),
            // The file is gone, but its debug file may be there: it has the same build id.
            Err(reason) if image.build_id.is_empty() => return Err(reason),
            Err(reason) => {
                let sources =
                    self.debug_file_by_build_id(&image.build_id).into_iter().collect::<Vec<_>>();
                let names = Names { segments: Vec::new(), sources };
                return if names.sources.is_empty() { Err(reason) } else { Ok(names) };
            }
        };
        let mut sources = Vec::new();
        sources.extend(self.debug_file_by_build_id(&identity.build_id));
        if sources.is_empty() {
            sources.extend(self.debug_file_by_link(&path, &identity));
        }
        let own = file.and_then(ElfNames::read);
        match own {
            Some(own) if own.has_debug_information() => sources.insert(0, own),
            Some(own) => sources.push(own),
            None if sources.is_empty() => return Err(Reason::Damaged),
            None => {}
        }
        sources.retain(|source| !source.is_empty());
        Ok(Names { segments: identity.segments, sources })
    }

    /// Finds the recorded file itself.
    fn image_file(&self, image: &ImageQuery) -> (PathBuf, Result<(Identity, File), Reason>) {
        let path = match &self.options.symfs {
            Some(symfs) => symfs.join(image.path.strip_prefix("/").unwrap_or(&image.path)),
            None => image.path.clone(),
        };
        let Some((file, metadata)) = files::open(&path) else { return (path, Err(Reason::NoFile)) };
        let Some(identity) = file.try_clone().ok().and_then(elf::identify) else {
            return (path, Err(Reason::Damaged));
        };
        let is_same = if image.build_id.is_empty() {
            let size_fits = image.file_size == 0 || image.file_size == metadata.len();
            // Below another root a copy may have another time.
            let time_fits = image.modified_ns == 0
                || self.options.symfs.is_some()
                || image.modified_ns == files::modified_ns(&metadata);
            size_fits && time_fits
        } else {
            identity.build_id == image.build_id
        };
        let found = if is_same { Ok((identity, file)) } else { Err(Reason::FileDiffers) };
        (path, found)
    }

    fn debug_file_by_build_id(&self, build_id: &[u8]) -> Option<ElfNames> {
        search::by_build_id(build_id, &self.debug_dirs).iter().find_map(|place| {
            let (file, _) = files::open(place)?;
            let identity = elf::identify(file.try_clone().ok()?)?;
            (identity.build_id == build_id).then(|| ElfNames::read(file)).flatten()
        })
    }

    fn debug_file_by_link(&self, path: &Path, identity: &Identity) -> Option<ElfNames> {
        let (link, checksum) = identity.debug_link.as_ref()?;
        search::by_link(path, link, &self.debug_dirs).iter().find_map(|place| {
            let (file, _) = files::open(place)?;
            // The checksum is that of the whole file (gdb's manual, "Separate Debug Files").
            let matches = crc32_of(&file).is_some_and(|actual| actual == *checksum);
            if matches { ElfNames::read(file) } else { None }
        })
    }
}

impl Names {
    fn lookup(&self, kind: ImageKind, address: u64) -> Lookup {
        let svma = if kind == ImageKind::File { self.svma_of(address) } else { Some(address) };
        let Some(svma) = svma else { return Lookup::Unresolved { reason: Reason::NoSymbol } };
        let mut best = Lookup::Unresolved { reason: Reason::NoSymbol };
        for source in &self.sources {
            match source.lookup(svma) {
                found @ Lookup::Resolved { origin: Origin::DebugInformation, .. } => return found,
                found @ Lookup::Resolved { .. } if matches!(best, Lookup::Unresolved { .. }) => {
                    best = found;
                }
                _ => {}
            }
        }
        best
    }

    fn svma_of(&self, file_offset: u64) -> Option<u64> {
        let segment = self.segments.iter().find(|(offset, len, _)| {
            file_offset.checked_sub(*offset).is_some_and(|into| into < *len)
        })?;
        segment.2.checked_add(file_offset - segment.0)
    }
}

/// The CRC-32 of a file's bytes, as `.gnu_debuglink` states it.
fn crc32_of(file: &File) -> Option<u32> {
    let mut hasher = crc32fast::Hasher::new();
    let mut file = file.try_clone().ok()?;
    let mut chunk = vec![0; 64 << 10];
    loop {
        match file.read(&mut chunk).ok()? {
            0 => return Some(hasher.finalize()),
            read => hasher.update(&chunk[..read]),
        }
    }
}
