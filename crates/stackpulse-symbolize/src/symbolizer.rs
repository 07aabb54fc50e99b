//! From images and addresses to names.

use crate::allowance::{Allowance, Limits};
use crate::answer::ImageAnswer;
use crate::image::Effort;
use crate::kernel::KernelSymbols;
use crate::locate::Locator;
use crate::lookup::{Call, Lookup, Origin, Reason};
use crate::options::SymbolizerOptions;
use crate::search;
use stackpulse_spool::{Image, ImageKind};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

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

/// Bytes that the answers of any call may take, however little memory there is.
const BASE_ANSWERS: u64 = 1 << 20;

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
                self.answer_within(image, addresses, &self.limits())
            }
            _ => ImageAnswer::nameless(addresses.len(), Reason::UnknownCode),
        }
    }

    /// Answers from files, with all threads and all memory.
    pub(crate) fn answer_within(
        &self,
        image: &ImageQuery,
        addresses: &[u64],
        limits: &Arc<Limits>,
    ) -> ImageAnswer {
        let effort = Effort {
            threads: self.threads(),
            is_part: false,
            allowance: Allowance::new(self.file_memory(), limits),
        };
        match self.in_files(image, addresses, &effort) {
            Ok(Some(answer)) => answer,
            Ok(None) => ImageAnswer::nameless(addresses.len(), Reason::NoSymbol),
            Err(reason) => ImageAnswer::nameless(addresses.len(), reason),
        }
    }

    /// What one call may cost.
    pub(crate) fn limits(&self) -> Arc<Limits> {
        let SymbolizerOptions { max_memory_bytes, max_steps, stop, .. } = &self.options;
        Limits::new(*max_steps, max_memory_bytes / 4 + BASE_ANSWERS, Arc::clone(stop))
    }

    /// How much of the memory is for files.
    pub(crate) fn file_memory(&self) -> u64 {
        self.options.max_memory_bytes / 4 * 3
    }

    pub(crate) fn threads(&self) -> usize {
        self.options.threads.max(1)
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
    /// Why there is no answer to any.
    pub(crate) fn in_files(
        &self,
        query: &ImageQuery,
        addresses: &[u64],
        effort: &Effort,
    ) -> Result<Option<ImageAnswer>, Reason> {
        if addresses.is_empty() {
            return Ok(Some(ImageAnswer { lookups: Vec::new(), files: Vec::new() }));
        }
        let allowance = &effort.allowance;
        let locator = Locator { options: &self.options, debug_dirs: &self.debug_dirs, allowance };
        let stopped = || (allowance.shortage() == Some(Reason::Stopped)).then_some(Reason::Stopped);
        let files = locator.files(query).map_err(|reason| stopped().unwrap_or(reason))?;
        let answer = ImageAnswer::of(&files, query.kind, addresses, effort);
        // Half an answer would pass for the whole one.
        if let Some(stopped) = stopped() {
            return Err(stopped);
        }
        match answer {
            Some(answer) if allowance.keep(answer.text_bytes()).is_none() => {
                Err(Reason::OverBudget)
            }
            answer => Ok(answer),
        }
    }
}
