//! Images, each read once for all processes that map it.

use crate::address_space::ImageIndex;
use crate::cfi::{CfiTable, Front, Jump, Rule, Simple};
use crate::image::{ImageFile, ImageSymbol};
use crate::source::{ImageRequest, ProcessSource};
use rustc_hash::FxHashMap;
use stackpulse_perf::FileIdentity;
use stackpulse_perf::regs::Arch;
use stackpulse_spool::{Image, ImageId, ImageKind, Record, RecordSink};

/// Entry code is a few instructions of assembly, often without call frame information, as the dynamic linker's is.
const ENTRY_CODE_BYTES: u64 = 128;

/// What makes two mappings show the same image.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Identity {
    path: Box<[u8]>,
    device: (u32, u32),
    inode: u64,
}

/// An image: known from its first mapping, read at the first frame in it.
#[derive(Debug)]
struct CachedImage {
    path: Box<[u8]>,
    file: FileIdentity,
    is_vdso: bool,
    state: State,
    /// Its id in the current epoch of the spool.
    id: Option<ImageId>,
}

#[derive(Debug)]
enum State {
    Unread,
    Readable(Box<Readable>),
    Failed,
}

#[derive(Debug)]
struct Readable {
    facts: ImageFile,
    cfi: CfiTable,
}

/// All images met so far.
#[derive(Debug, Default)]
pub(crate) struct ImageCache {
    images: Vec<CachedImage>,
    index: FxHashMap<Identity, ImageIndex>,
    vdso: Option<ImageIndex>,
    unreadable: u64,
    front: Front,
}

impl ImageCache {
    /// Returns the image that a mapping shows.
    pub(crate) fn of_mapping(&mut self, path: &[u8], file: &FileIdentity) -> ImageIndex {
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

    /// Returns the image of the vDSO: the same code in every process.
    pub(crate) fn vdso(&mut self) -> ImageIndex {
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
        let index = ImageIndex(u32::try_from(self.images.len()).unwrap_or(u32::MAX));
        let (path, file) = (path.into(), file.clone());
        self.images.push(CachedImage { path, file, is_vdso, state: State::Unread, id: None });
        index
    }

    /// Reads an image if it has not been read: call it before asking for rules or addresses.
    pub(crate) fn read(
        &mut self,
        index: ImageIndex,
        pid: u32,
        range: std::ops::Range<u64>,
        source: &mut impl ProcessSource,
    ) {
        let Some(image) = self.images.get_mut(index.0 as usize) else { return };
        if !matches!(image.state, State::Unread) {
            return;
        }
        let request = ImageRequest {
            pid,
            start_avma: range.start,
            end_avma: range.end,
            path: &image.path,
            file: &image.file,
            is_vdso: image.is_vdso,
        };
        image.state = match source.image(&request) {
            Ok(mut facts) => {
                let cfi = CfiTable::new(
                    std::mem::take(&mut facts.cfi),
                    facts.arch.unwrap_or(Arch::X86_64),
                );
                State::Readable(Box::new(Readable { facts, cfi }))
            }
            Err(_) => {
                self.unreadable = self.unreadable.saturating_add(1);
                State::Failed
            }
        };
    }

    /// Whether an image waits for its first frame.
    pub(crate) fn is_unread(&self, index: ImageIndex) -> bool {
        self.images.get(index.0 as usize).is_some_and(|image| matches!(image.state, State::Unread))
    }

    /// Whether an image tells nothing of how to unwind it, so that frame pointers are all there is.
    pub(crate) fn has_no_unwind_information(&self, index: ImageIndex) -> bool {
        match self.images.get(index.0 as usize).map(|image| &image.state) {
            Some(State::Readable(readable)) => readable.cfi.is_empty(),
            _ => true,
        }
    }

    /// Whether a return address of zero ends the stack at this byte of the image's file: a process begins with a link
    /// register of zero, a goroutine with a zero on its stack.
    pub(crate) fn may_end_by_null(&self, index: ImageIndex, file_offset: u64) -> bool {
        let is_go = match self.images.get(index.0 as usize).map(|image| &image.state) {
            Some(State::Readable(readable)) => readable.facts.is_go,
            _ => false,
        };
        is_go || self.is_entry_code(index, file_offset)
    }

    /// Whether a byte of the image's file is in the code that the kernel starts a process with: nothing called it.
    pub(crate) fn is_entry_code(&self, index: ImageIndex, file_offset: u64) -> bool {
        let Some(State::Readable(readable)) =
            self.images.get(index.0 as usize).map(|image| &image.state)
        else {
            return false;
        };
        let into = readable
            .facts
            .svma_of(file_offset)
            .and_then(|svma| svma.checked_sub(readable.facts.entry_svma));
        readable.facts.entry_svma != 0 && into.is_some_and(|into| into < ENTRY_CODE_BYTES)
    }

    /// How many images could not be read.
    pub(crate) fn unreadable(&self) -> u64 {
        self.unreadable
    }

    /// Returns the unwind rule at a byte of the image's file.
    #[inline]
    pub(crate) fn rule(&mut self, index: ImageIndex, file_offset: u64) -> Option<&Rule> {
        match &mut self.images.get_mut(index.0 as usize)?.state {
            State::Readable(readable) => {
                let svma = readable.facts.svma_of(file_offset)?;
                readable.cfi.rule(svma)
            }
            _ => None,
        }
    }

    /// Returns where a walk goes from a byte of the image's file.
    #[inline]
    pub(crate) fn jump(&mut self, index: ImageIndex, file_offset: u64) -> Jump {
        let Some(key) = Front::key(index.0, file_offset) else { return Jump::Other };
        match self.front.get(key) {
            Some(jump) => jump,
            None => self.look_up_jump(index, file_offset, key),
        }
    }

    fn look_up_jump(&mut self, index: ImageIndex, file_offset: u64, key: u64) -> Jump {
        let arch = match self.images.get(index.0 as usize).map(|image| &image.state) {
            Some(State::Readable(readable)) => readable.facts.arch.unwrap_or(Arch::X86_64),
            // What is read later may say more.
            _ => return Jump::Other,
        };
        let jump = match self.rule(index, file_offset) {
            Some(rule) if rule.is_outermost => Jump::Outermost,
            Some(rule) => Simple::of(rule, arch).map_or(Jump::Other, Jump::Simple),
            None => Jump::Other,
        };
        self.front.insert(key, jump);
        jump
    }

    /// Returns the address that frames in the image carry, for a byte of its file: SVMA where its program headers
    /// were read, else the offset itself.
    #[inline]
    pub(crate) fn address(&self, index: ImageIndex, file_offset: u64) -> u64 {
        match self.images.get(index.0 as usize).map(|image| &image.state) {
            Some(State::Readable(readable)) => {
                readable.facts.svma_of(file_offset).unwrap_or(file_offset)
            }
            _ => file_offset,
        }
    }

    /// Forgets the ids of the spool's epoch.
    pub(crate) fn start_epoch(&mut self) {
        self.images.iter_mut().for_each(|image| image.id = None);
    }

    /// Returns the image's id in the spool, defining it, and the symbols of a vDSO, at first use. `next` counts ids.
    pub(crate) fn id<K: RecordSink>(
        &mut self,
        index: ImageIndex,
        next: &mut u32,
        sink: &mut K,
    ) -> Result<ImageId, K::Error> {
        let at = (index.0 as usize).min(self.images.len().saturating_sub(1));
        let image = &mut self.images[at];
        if let Some(id) = image.id {
            return Ok(id);
        }
        let id = ImageId(*next);
        sink.record(&Record::Image(image.record()))?;
        *next += 1;
        image.id = Some(id);
        for symbol in image.symbols() {
            let ImageSymbol { svma: address, size, ref name } = *symbol;
            sink.record(&Record::Symbol { image: id, address, size, name })?;
        }
        Ok(id)
    }
}

impl CachedImage {
    fn record(&self) -> Image<'_> {
        let unread = ImageFile::default();
        let (kind, facts) = match &self.state {
            State::Readable(readable) if self.is_vdso => (ImageKind::Vdso, &readable.facts),
            State::Readable(readable) => (ImageKind::Elf, &readable.facts),
            _ => (ImageKind::File, &unread),
        };
        let told = self.file.build_id.as_deref().unwrap_or_default();
        Image {
            kind,
            path: &self.path,
            build_id: if let State::Readable(readable) = &self.state {
                &readable.facts.build_id
            } else {
                told
            },
            device: self.file.device,
            inode: self.file.inode,
            file_size: facts.file_size,
            modified_ns: facts.modified_ns,
        }
    }

    fn symbols(&self) -> &[ImageSymbol] {
        match &self.state {
            State::Readable(readable) if self.is_vdso => &readable.facts.symbols,
            _ => &[],
        }
    }
}
