//! Images, each read once for all processes that map it.

use crate::address_space::ImageIndex;
use crate::cfi::{CfiTable, Front, Jump, Rule, Simple};
use crate::image::ImageFile;
use stackpulse_perf::regs::Arch;

/// Entry code is a few instructions of assembly, often without call frame information, as the dynamic linker's is.
const ENTRY_CODE_BYTES: u64 = 128;

/// An image: known from its first mapping, provided at the first frame in it.
#[derive(Debug)]
enum State {
    Unread,
    Readable(Box<Readable>),
    Missing,
}

#[derive(Debug)]
struct Readable {
    file: ImageFile,
    arch: Arch,
    cfi: CfiTable,
}

/// All images, and where a walk goes from their addresses.
#[derive(Debug, Default)]
pub(crate) struct Images {
    images: Vec<State>,
    front: Front,
}

impl Images {
    /// Makes an image known whose file is wanted at the first frame in it.
    pub(crate) fn add(&mut self) -> ImageIndex {
        self.images.push(State::Unread);
        ImageIndex(u32::try_from(self.images.len() - 1).unwrap_or(u32::MAX))
    }

    /// Provides an image's file, or says that there is none.
    pub(crate) fn provide(&mut self, index: ImageIndex, file: Option<ImageFile>) {
        let Some(state) = self.images.get_mut(index.0 as usize) else { return };
        *state = match file {
            Some(mut file) => {
                let arch = file.arch.unwrap_or(Arch::X86_64);
                let cfi = CfiTable::new(std::mem::take(&mut file.cfi), arch);
                State::Readable(Box::new(Readable { file, arch, cfi }))
            }
            None => State::Missing,
        };
    }

    fn readable(&self, index: ImageIndex) -> Option<&Readable> {
        match self.images.get(index.0 as usize)? {
            State::Readable(readable) => Some(readable),
            _ => None,
        }
    }

    /// Whether an image waits for its first frame.
    pub(crate) fn is_unread(&self, index: ImageIndex) -> bool {
        matches!(self.images.get(index.0 as usize), Some(State::Unread))
    }

    /// Whether an image tells nothing of how to unwind it, so that frame pointers are all there is.
    pub(crate) fn has_no_unwind_information(&self, index: ImageIndex) -> bool {
        self.readable(index).is_none_or(|readable| readable.cfi.is_empty())
    }

    /// Whether a return address of zero ends the stack at this byte of the image's file: a process begins with a link
    /// register of zero, a goroutine with a zero on its stack.
    pub(crate) fn may_end_by_null(&self, index: ImageIndex, file_offset: u64) -> bool {
        let is_go = self.readable(index).is_some_and(|readable| readable.file.is_go);
        is_go || self.is_entry_code(index, file_offset)
    }

    /// Whether a byte of the image's file is in the code that the kernel starts a process with: nothing called it.
    pub(crate) fn is_entry_code(&self, index: ImageIndex, file_offset: u64) -> bool {
        let Some(Readable { file, .. }) = self.readable(index) else { return false };
        let into = file.svma_of(file_offset).and_then(|svma| svma.checked_sub(file.entry_svma));
        file.entry_svma != 0 && into.is_some_and(|into| into < ENTRY_CODE_BYTES)
    }

    /// Returns the unwind rule at a byte of the image's file.
    #[inline]
    pub(crate) fn rule(&mut self, index: ImageIndex, file_offset: u64) -> Option<&Rule> {
        match self.images.get_mut(index.0 as usize)? {
            State::Readable(readable) => {
                let svma = readable.file.svma_of(file_offset)?;
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
        // What is provided later may say more.
        let Some(arch) = self.readable(index).map(|readable| readable.arch) else {
            return Jump::Other;
        };
        let jump = match self.rule(index, file_offset) {
            Some(rule) if rule.is_outermost => Jump::Outermost,
            Some(rule) => Simple::of(rule, arch).map_or(Jump::Other, Jump::Simple),
            None => Jump::Other,
        };
        self.front.insert(key, jump);
        jump
    }

    /// Returns the address the file states for a byte of it; where its program headers are not known, the offset itself.
    #[inline]
    pub(crate) fn svma(&self, index: ImageIndex, file_offset: u64) -> u64 {
        let svma = self.readable(index).and_then(|readable| readable.file.svma_of(file_offset));
        svma.unwrap_or(file_offset)
    }
}
