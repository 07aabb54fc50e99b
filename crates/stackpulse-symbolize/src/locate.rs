//! Which files name an image: the recorded one, its debug file, and the file those share parts with.

use crate::allowance::Allowance;
use crate::elf::Elf;
use crate::files::{self, Root};
use crate::input::Input;
use crate::lookup::{Origin, Reason};
use crate::options::SymbolizerOptions;
use crate::search;
use crate::symbolizer::ImageQuery;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// A file that is what it should be.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) path: PathBuf,
    pub(crate) elf: Elf,
    /// The supplementary file that it refers to.
    pub(crate) alternative: Option<Elf>,
}

/// The files of one image.
#[derive(Debug)]
pub(crate) struct Files {
    pub(crate) image: Option<Found>,
    pub(crate) debug: Option<Found>,
    /// Recorded paths are below it.
    pub(crate) root: Option<Root>,
    /// Why the recorded file itself is of no use, if it is not.
    missing: Option<Reason>,
}

/// Which files gave names, and of which kind.
#[derive(Clone, Debug, Default)]
pub(crate) struct Origins(Vec<(PathBuf, Origin)>);

impl Origins {
    pub(crate) fn used(&mut self, path: &Path, origin: Origin) {
        let known = self.0.iter().any(|(known, of)| *of == origin && known == path);
        if !known {
            self.0.push((path.to_owned(), origin));
        }
    }

    pub(crate) fn best_first(mut self) -> Vec<(PathBuf, Origin)> {
        self.0.sort_by_key(|(_, origin)| *origin);
        self.0
    }
}

/// Looks for files.
#[derive(Debug)]
pub(crate) struct Locator<'a> {
    pub(crate) options: &'a SymbolizerOptions,
    pub(crate) debug_dirs: &'a [PathBuf],
    pub(crate) allowance: &'a Allowance,
}

impl Locator<'_> {
    /// Finds an image's files.
    ///
    /// # Errors
    ///
    /// Why there is none.
    pub(crate) fn files(&self, query: &ImageQuery) -> Result<Files, Reason> {
        let mut image = Err(Reason::NoFile);
        let mut root = None;
        for candidate in self.roots() {
            let found = self.image_file(query, candidate.as_ref());
            // The first reason is that of the path itself; "it is another file" says more than "there is none".
            if found.is_ok() || matches!(image, Err(Reason::NoFile)) {
                root = candidate;
                image = found;
            }
            if image.is_ok() {
                break;
            }
        }
        let search = Search {
            debug_dirs: self.debug_dirs(root.as_ref()),
            root: root.as_ref(),
            allowance: self.allowance,
        };
        let debug = self.debug_file(query, image.as_ref().ok(), &search);
        let missing = image.as_ref().err().copied();
        let mut image = image.ok();
        match (missing, &debug) {
            (Some(reason), None) => return Err(reason),
            _ => {
                if let Some(image) = &mut image {
                    image.alternative = search.alternative(&image.elf, &image.path);
                }
            }
        }
        Ok(Files { image, debug, root, missing })
    }

    /// Finds the recorded file itself, below a root.
    fn image_file(&self, query: &ImageQuery, root: Option<&Root>) -> Result<Found, Reason> {
        let path = root.map_or_else(|| query.path.clone(), |root| root.below(&query.path));
        let (file, metadata) = files::open(&path, root).ok_or(Reason::NoFile)?;
        let input = Input::file(file, &metadata, self.allowance);
        let elf = Elf::read(input.into()).ok_or(Reason::Damaged)?;
        let is_same = if query.build_id.is_empty() {
            let size_fits = query.file_size == 0 || query.file_size == metadata.len();
            // Below another root a copy may have another time.
            let time_fits = query.modified_ns == 0
                || root.is_some()
                || query.modified_ns == files::modified_ns(&metadata);
            size_fits && time_fits
        } else {
            elf.build_id() == query.build_id
        };
        if is_same { Ok(Found { path, elf, alternative: None }) } else { Err(Reason::FileDiffers) }
    }

    /// Directories below which recorded paths are looked for; `None` is the path as it is.
    fn roots(&self) -> Vec<Option<Root>> {
        let root =
            |directory: &PathBuf, leads_out| Some(Root { directory: directory.clone(), leads_out });
        match &self.options.symfs {
            Some(symfs) => vec![root(symfs, true)],
            None => {
                let others = self.options.roots.iter().map(|directory| root(directory, false));
                std::iter::once(None).chain(others).collect()
            }
        }
    }

    /// Directories of debug files: this machine's, and those of the root.
    fn debug_dirs(&self, root: Option<&Root>) -> Vec<PathBuf> {
        let of_root = root.map(|root| root.below(Path::new(search::GLOBAL_DEBUG_DIR)));
        self.debug_dirs.iter().cloned().chain(of_root).collect()
    }

    fn debug_file(
        &self,
        query: &ImageQuery,
        image: Option<&Found>,
        search: &Search<'_>,
    ) -> Option<Found> {
        let of_image = image.map(|image| image.elf.build_id()).unwrap_or_default();
        let build_id = if of_image.is_empty() { &query.build_id } else { &of_image };
        let mut places = search::by_build_id(build_id, &search.debug_dirs);
        places.extend(
            self.options
                .debuginfod_cache
                .iter()
                .flat_map(|cache| search::in_debuginfod_cache(build_id, cache)),
        );
        let by_id = places.into_iter().find_map(|place| {
            let elf = search.elf(&place)?;
            (elf.build_id() == *build_id).then(|| search.found(place, elf))
        });
        by_id.or_else(|| search.by_link(image?, &query.path))
    }
}

/// Where the files that belong to one image are looked for.
struct Search<'a> {
    debug_dirs: Vec<PathBuf>,
    root: Option<&'a Root>,
    allowance: &'a Allowance,
}

impl Search<'_> {
    fn elf(&self, place: &Path) -> Option<Elf> {
        Elf::read(files::input(place, self.root, self.allowance)?)
    }

    fn by_link(&self, image: &Found, recorded: &Path) -> Option<Found> {
        let (link, checksum) = image.elf.debug_link()?;
        let places = search::by_link(&image.path, recorded, &link, &self.debug_dirs);
        places.into_iter().find_map(|place| {
            let elf = self.elf(&place)?;
            // The checksum is that of the whole file (gdb's manual, "Separate Debug Files").
            (elf.input.crc32()? == checksum).then(|| self.found(place, elf))
        })
    }

    fn found(&self, path: PathBuf, elf: Elf) -> Found {
        let alternative = self.alternative(&elf, &path);
        Found { path, elf, alternative }
    }

    /// The file that dwz(1) moved common parts to: named by path or found by build id, which must match.
    fn alternative(&self, elf: &Elf, of: &Path) -> Option<Elf> {
        let (link, build_id) = elf.alternative_link()?;
        let link = Path::new(OsStr::from_bytes(&link));
        let named = match self.root {
            Some(root) if link.is_absolute() => Some(root.below(link)),
            _ => of.parent().map(|directory| directory.join(link)),
        };
        let by_id = search::by_build_id(&build_id, &self.debug_dirs);
        named.into_iter().chain(by_id).find_map(|place| {
            let elf = self.elf(&place)?;
            (elf.build_id() == build_id).then_some(elf)
        })
    }
}

impl Files {
    /// The address in the files' own space that a file offset stands for.
    pub(crate) fn svma_of(&self, file_offset: u64) -> Option<u64> {
        self.image.as_ref()?.elf.segments.iter().find_map(|segment| {
            let into = file_offset.checked_sub(segment.offset)?;
            segment.svma.checked_add(into).filter(|_| into < segment.file_len)
        })
    }

    /// The file offset that an address stands for.
    pub(crate) fn offset_of(&self, svma: u64) -> Option<u64> {
        self.image.as_ref()?.elf.segments.iter().find_map(|segment| {
            let into = svma.checked_sub(segment.svma)?;
            segment.offset.checked_add(into).filter(|_| into < segment.file_len)
        })
    }

    /// How many bytes of debug information there are at most, unpacked.
    pub(crate) fn debug_bytes(&self) -> u64 {
        let files = self.image.iter().chain(&self.debug);
        let elves = files.flat_map(|file| std::iter::once(&file.elf).chain(&file.alternative));
        elves.map(Elf::debug_bytes).fold(0, u64::saturating_add)
    }

    /// Why an address has no name although the files are there.
    pub(crate) fn reason_of_no_name(&self) -> Reason {
        if let Some(missing) = self.missing {
            return missing;
        }
        let every = || self.image.iter().chain(&self.debug);
        if every().any(|file| file.elf.is_truncated()) {
            return Reason::Truncated;
        }
        let is_stripped = !every().any(|file| {
            crate::dwarf::Dwarf::is_in(&file.elf)
                || crate::symbols::has(&file.elf, crate::symbols::Table::Full)
        });
        if is_stripped { Reason::Stripped } else { Reason::NoSymbol }
    }
}
