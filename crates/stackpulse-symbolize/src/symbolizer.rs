//! From images and addresses to names.

use crate::dwarf::Effort;
use crate::kernel::KernelSymbols;
use crate::locate::Locator;
use crate::lookup::{Call, Lookup, Origin, Reason};
use crate::{image, search};
use stackpulse_spool::{Image, ImageKind};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

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
    /// How many bytes of one file's debug information may be in memory at a time. A file that needs more is not used.
    pub max_memory_bytes: u64,
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
            max_memory_bytes: 4 << 30,
        }
    }
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

/// Answers for one image.
#[derive(Clone, Debug)]
pub struct ImageAnswer {
    /// One for each address, in the order they were asked.
    pub lookups: Vec<Lookup>,
    /// The files that gave names, with what kind of names: those of best quality first.
    pub files: Vec<(PathBuf, Origin)>,
}

/// Names addresses. Nothing of it is global: several may work at the same time.
pub struct Symbolizer {
    options: SymbolizerOptions,
    debug_dirs: Vec<PathBuf>,
    kernel: Option<Option<KernelSymbols>>,
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
        self.answer(image, addresses).lookups
    }

    /// The same, and which files gave the names.
    pub fn answer(&mut self, image: &ImageQuery, addresses: &[u64]) -> ImageAnswer {
        match image.kind {
            ImageKind::Kernel => {
                let lookups = addresses.iter().map(|&address| self.kernel(address)).collect();
                ImageAnswer { lookups, files: Vec::new() }
            }
            ImageKind::Elf | ImageKind::File => {
                match self.in_files(image, addresses, self.effort()) {
                    Ok(Some(answer)) => answer,
                    Ok(None) => ImageAnswer::nameless(addresses.len(), Reason::NoSymbol),
                    Err(reason) => ImageAnswer::nameless(addresses.len(), reason),
                }
            }
            _ => ImageAnswer::nameless(addresses.len(), Reason::UnknownCode),
        }
    }

    /// All threads and all memory.
    pub(crate) fn effort(&self) -> Effort {
        Effort {
            threads: self.options.threads.max(1),
            memory: self.options.max_memory_bytes,
            is_part: false,
        }
    }

    fn kernel(&mut self, address: u64) -> Lookup {
        let boot_id = &self.options.boot_id;
        let symbols =
            self.kernel.get_or_insert_with(|| KernelSymbols::of_boot(boot_id, Path::new("/")));
        match symbols.as_ref().map(|symbols| symbols.lookup(address)) {
            None => Lookup::unresolved(Reason::NoKernelSymbols),
            Some(None) => Lookup::unresolved(Reason::NoSymbol),
            Some(function) => {
                let call = Call { function, ..Call::default() };
                Lookup::Resolved { calls: vec![call], origin: Origin::Kallsyms }
            }
        }
    }

    /// Answers from files; `None` if that takes more than a part of the effort.
    ///
    /// # Errors
    ///
    /// Why there is no file.
    pub(crate) fn in_files(
        &self,
        query: &ImageQuery,
        addresses: &[u64],
        effort: Effort,
    ) -> Result<Option<ImageAnswer>, Reason> {
        if addresses.is_empty() {
            return Ok(Some(ImageAnswer { lookups: Vec::new(), files: Vec::new() }));
        }
        let files = Locator::new(&self.options, &self.debug_dirs).files(query)?;
        let is_offset = query.kind == ImageKind::File;
        let is_ready = !is_offset && addresses.is_sorted_by(|a, b| a < b);
        if is_ready {
            let named = image::name(&files, addresses.to_vec(), effort);
            return Ok(named
                .map(|(lookups, origins)| ImageAnswer { lookups, files: origins.best_first() }));
        }
        // Each distinct address once, in ascending order; the others are told by their place in it.
        let svma_of = |address| if is_offset { files.svma_of(address) } else { Some(address) };
        let wanted: Vec<Option<u64>> = addresses.iter().map(|&address| svma_of(address)).collect();
        let mut svmas: Vec<u64> = wanted.iter().copied().flatten().collect();
        svmas.sort_unstable();
        svmas.dedup();
        let Some((answers, origins)) = image::name(&files, svmas.clone(), effort) else {
            return Ok(None);
        };
        let lookups = wanted.into_iter().map(|svma| {
            let at = svma.and_then(|svma| svmas.binary_search(&svma).ok());
            let mut lookup =
                at.map_or(Lookup::unresolved(Reason::NoSymbol), |at| answers[at].clone());
            if let Lookup::Unresolved { start: Some(start), .. } = &mut lookup
                && is_offset
            {
                *start = files.offset_of(*start).unwrap_or(*start);
            }
            lookup
        });
        Ok(Some(ImageAnswer { lookups: lookups.collect(), files: origins.best_first() }))
    }
}
