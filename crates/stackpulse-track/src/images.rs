//! Images of files: which mappings show the same one, what the spool is told of it, and its unwinding.

use crate::source::{ImageRequest, ProcessSource};
use rustc_hash::FxHashMap;
use stackpulse_perf::FileIdentity;
use stackpulse_spool::{Image, ImageKind};
use stackpulse_unwind::{ImageError, ImageIndex, ImageSymbol, Shown, Unread, Unwinder};

/// What makes two mappings show the same image.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Identity {
    path: Box<[u8]>,
    device: (u32, u32),
    inode: u64,
}

/// An image: known from its first mapping, read at the first frame in it.
#[derive(Debug)]
struct Known {
    path: Box<[u8]>,
    file: FileIdentity,
    is_vdso: bool,
    /// What its file says, once it was read.
    facts: Option<Facts>,
    /// Whether that showed that it is no image, but code made at run time.
    is_generated: bool,
}

/// What an image turned out to be when it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// A file, whether it could be read or not.
    File,
    /// Code made at run time, which is no image.
    Generated,
}

/// What the spool is told of a file.
#[derive(Debug)]
struct Facts {
    build_id: Vec<u8>,
    file_size: u64,
    modified_ns: u64,
    symbols: Vec<ImageSymbol>,
}

/// All images met so far.
#[derive(Debug, Default)]
pub(crate) struct Images {
    pub(crate) unwinder: Unwinder,
    /// By the numbers that the unwinder gave.
    known: Vec<Known>,
    index: FxHashMap<Identity, ImageIndex>,
    vdso: Option<ImageIndex>,
    unreadable: u64,
}

impl Images {
    /// Returns what a mapping with this path shows.
    pub(crate) fn shown(&mut self, path: &[u8], file: &FileIdentity, file_offset: u64) -> Shown {
        if path == b"[vdso]" {
            Shown::Image { image: self.vdso(), file_offset: 0 }
        } else if is_file(path) {
            let image = self.of_mapping(path, file);
            let is_generated =
                self.known.get(image.number() as usize).is_some_and(|known| known.is_generated);
            if is_generated { Shown::Anonymous } else { Shown::Image { image, file_offset } }
        } else {
            Shown::Anonymous
        }
    }

    fn of_mapping(&mut self, path: &[u8], file: &FileIdentity) -> ImageIndex {
        let path = path.strip_suffix(b" (deleted)").unwrap_or(path);
        // Maps texts do not tell the inode's generation, so a file is known by what both sources tell.
        let identity = Identity { path: path.into(), device: file.device, inode: file.inode };
        if let Some(&known) = self.index.get(&identity) {
            return known;
        }
        let index = self.add(path, file, false);
        self.index.insert(identity, index);
        index
    }

    /// The same code in every process.
    fn vdso(&mut self) -> ImageIndex {
        match self.vdso {
            Some(index) => index,
            None => {
                let index = self.add(b"[vdso]", &FileIdentity::default(), true);
                self.vdso = Some(index);
                index
            }
        }
    }

    fn add(&mut self, path: &[u8], file: &FileIdentity, is_vdso: bool) -> ImageIndex {
        let (path, file) = (path.into(), file.clone());
        self.known.push(Known { path, file, is_vdso, facts: None, is_generated: false });
        self.unwinder.add_image()
    }

    /// Reads an image that a process maps. One that is code made at run time remains unread, so that each process that maps it asks.
    pub(crate) fn read(
        &mut self,
        Unread { image, region }: Unread,
        pid: u32,
        source: &mut impl ProcessSource,
    ) -> Found {
        let Some(known) = self.known.get_mut(image.number() as usize) else { return Found::File };
        if known.is_generated {
            return Found::Generated;
        }
        let request = ImageRequest {
            pid,
            start_avma: region.start_avma,
            end_avma: region.end_avma,
            path: &known.path,
            file: &known.file,
            is_vdso: known.is_vdso,
        };
        let mut file = source.image(&request);
        match &mut file {
            Ok(file) => {
                known.facts = Some(Facts {
                    build_id: std::mem::take(&mut file.build_id),
                    file_size: file.file_size,
                    modified_ns: file.modified_ns,
                    symbols: std::mem::take(&mut file.symbols),
                });
            }
            Err(ImageError::Generated) => {
                known.is_generated = true;
                return Found::Generated;
            }
            Err(_) => self.unreadable = self.unreadable.saturating_add(1),
        }
        self.unwinder.provide(image, file.ok());
        Found::File
    }

    /// How many images could not be read.
    pub(crate) fn unreadable(&self) -> u64 {
        self.unreadable
    }

    /// Returns an image as the spool is told of it.
    pub(crate) fn record(&self, image: ImageIndex) -> Image<'_> {
        let Some(known) = self.known.get(image.number() as usize) else { return NOTHING };
        let kind = match &known.facts {
            Some(_) if known.is_vdso => ImageKind::Vdso,
            Some(_) => ImageKind::Elf,
            None => ImageKind::File,
        };
        let recorded = known.file.build_id.as_deref().unwrap_or_default();
        let facts = known.facts.as_ref();
        Image {
            kind,
            path: &known.path,
            build_id: facts.map_or(recorded, |facts| &facts.build_id),
            device: known.file.device,
            inode: known.file.inode,
            file_size: facts.map_or(0, |facts| facts.file_size),
            modified_ns: facts.map_or(0, |facts| facts.modified_ns),
        }
    }

    /// Returns the symbols of an image whose file will not be there later: the vDSO.
    pub(crate) fn symbols(&self, image: ImageIndex) -> &[ImageSymbol] {
        let known = self.known.get(image.number() as usize).filter(|known| known.is_vdso);
        known.and_then(|known| known.facts.as_ref()).map_or(&[], |facts| &facts.symbols)
    }
}

/// An image that is no file.
pub(crate) const NOTHING: Image<'static> = Image {
    kind: ImageKind::Unknown,
    path: b"",
    build_id: b"",
    device: (0, 0),
    inode: 0,
    file_size: 0,
    modified_ns: 0,
};

/// Files have absolute paths; `//anon` and the like are the kernel's names for memory of no file.
fn is_file(path: &[u8]) -> bool {
    let of_no_file: [&[u8]; 4] = [b"//anon", b"/dev/zero", b"/anon_hugepage", b"/SYSV"];
    path.first() == Some(&b'/') && !of_no_file.iter().any(|name| path.starts_with(name))
}
