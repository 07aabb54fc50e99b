//! What unwinding needs of an ELF file.

use crate::cfi::{CfiSections, Section};
use crate::unpack;
use object::read::elf::{ElfFile64, FileHeader, ProgramHeader};
use object::{Architecture, Endianness, Object, ObjectSection, ObjectSymbol, ReadRef};
use stackpulse_perf::regs::Arch;
use std::ops::Range;
use thiserror::Error;

/// Larger sections of call frame information are not read.
const MAX_SECTION_BYTES: u64 = 256 << 20;

/// More symbols are not taken from a vDSO.
const MAX_SYMBOLS: usize = 10_000;

/// Why an image cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
pub enum ImageError {
    /// There is no such file any more, or it may not be read.
    #[error("the file cannot be opened")]
    Unreadable,
    /// The file is not the one that was mapped.
    #[error("the file is not the one that was mapped")]
    Replaced,
    /// It is no regular file.
    #[error("not a regular file")]
    NotAFile,
    /// It is not an ELF file of 64 bits and little-endian, or damaged.
    #[error("not a usable ELF file")]
    NotElf,
    /// It is a program's memory under the name of a file: code made at run time.
    #[error("no file, but code made at run time")]
    Generated,
}

/// A loadable, executable segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Where it lies in the file.
    pub file_offset: u64,
    /// How many bytes of the file it is.
    pub file_size: u64,
    /// The address the file states for it.
    pub svma: u64,
}

/// A symbol of an image whose file will not be there later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageSymbol {
    /// The address the file states.
    pub svma: u64,
    /// Length in bytes; zero: not known.
    pub size: u64,
    /// The name.
    pub name: Box<[u8]>,
}

/// What was read of an image.
#[derive(Clone, Debug, Default)]
pub struct ImageFile {
    /// File size in bytes; zero where there is no file.
    pub file_size: u64,
    /// Last modification, nanoseconds since 1970 UTC; zero where there is no file.
    pub modified_ns: u64,
    /// The GNU build id, empty where there is none.
    pub build_id: Vec<u8>,
    /// Executable segments only: the last page of the read-only segment before them shares a page of the file
    /// with them, and a mapping matched against it would shift every address by a page.
    pub segments: Vec<Segment>,
    /// Where the kernel starts a process that this image is the program or the interpreter of; zero for a plain library.
    pub entry_svma: u64,
    /// Whose code it is.
    pub arch: Option<Arch>,
    /// Whether it is a Go program: its goroutines begin with a return address of zero, which nothing else tells of.
    pub is_go: bool,
    /// Call frame information.
    pub cfi: CfiSections,
    /// Symbols, if they were asked for.
    pub symbols: Vec<ImageSymbol>,
}

impl ImageFile {
    /// Reads an ELF file.
    ///
    /// # Errors
    ///
    /// [`ImageError::NotElf`] when it is none of 64 bits, little-endian.
    pub fn parse<'a>(data: impl ReadRef<'a>, with_symbols: bool) -> Result<Self, ImageError> {
        let elf = ElfFile64::<Endianness, _>::parse(data).map_err(|_| ImageError::NotElf)?;
        if elf.endian() != Endianness::Little {
            return Err(ImageError::NotElf);
        }
        let endian = elf.endian();
        let headers =
            elf.elf_header().program_headers(endian, data).map_err(|_| ImageError::NotElf)?;
        let segments = headers
            .iter()
            .filter(|header| {
                header.p_type(endian) == object::elf::PT_LOAD
                    && header.p_flags(endian) & object::elf::PF_X != object::elf::ProgramFlags(0)
            })
            .map(|header| Segment {
                file_offset: header.p_offset(endian),
                file_size: header.p_filesz(endian),
                svma: header.p_vaddr(endian),
            })
            .collect();
        let arch = match elf.architecture() {
            Architecture::X86_64 => Some(Arch::X86_64),
            Architecture::Aarch64 => Some(Arch::Aarch64),
            _ => None,
        };
        let section = |name| section(&elf, name);
        let address = |name: &str| elf.section_by_name(name).map_or(0, |section| section.address());
        let plt = [".plt", ".plt.sec", ".plt.got", ".iplt"]
            .into_iter()
            .filter_map(|name| elf.section_by_name(name))
            .map(|section| section.address()..section.address().saturating_add(section.size()))
            .collect::<Vec<Range<u64>>>();
        Ok(Self {
            file_size: 0,
            modified_ns: 0,
            build_id: elf.build_id().ok().flatten().unwrap_or_default().to_vec(),
            segments,
            entry_svma: elf.entry(),
            arch,
            is_go: elf.section_by_name(".go.buildinfo").is_some(),
            cfi: CfiSections {
                eh_frame: section(".eh_frame").unwrap_or_default(),
                eh_frame_hdr: section(".eh_frame_hdr").unwrap_or_default(),
                debug_frame: section(".debug_frame")
                    .or_else(|| packed_debug_frame(&elf))
                    .unwrap_or_default(),
                text_svma: address(".text"),
                got_svma: address(".got"),
                plt,
                signal_trampolines: match arch {
                    // Only the kernel's own object is looked through.
                    Some(Arch::Aarch64) if with_symbols => signal_trampolines(&elf),
                    _ => Vec::new(),
                },
            },
            symbols: if with_symbols { symbols(&elf) } else { Vec::new() },
        })
    }

    /// Returns the address the file states for a byte of it, if an executable segment holds the byte.
    #[must_use]
    pub fn svma_of(&self, file_offset: u64) -> Option<u64> {
        let segment = self.segments.iter().find(|segment| {
            file_offset
                .checked_sub(segment.file_offset)
                .is_some_and(|into| into < segment.file_size)
        })?;
        segment.svma.checked_add(file_offset - segment.file_offset)
    }
}

fn section<'a>(elf: &ElfFile64<'a, Endianness, impl ReadRef<'a>>, name: &str) -> Option<Section> {
    let section = elf.section_by_name(name)?;
    if section.size() > MAX_SECTION_BYTES {
        return None;
    }
    let bytes = unpack::contents(&section, MAX_SECTION_BYTES)?;
    Some(Section { svma: section.address(), bytes })
}

/// Distributions pack what stripping took away, call frame information too, into `.gnu_debugdata`.
fn packed_debug_frame<'a>(elf: &ElfFile64<'a, Endianness, impl ReadRef<'a>>) -> Option<Section> {
    let packed = section(elf, ".gnu_debugdata")?;
    let file = unpack::packed_file(&packed.bytes, MAX_SECTION_BYTES)?;
    section(&ElfFile64::<Endianness>::parse(file.as_slice()).ok()?, ".debug_frame")
}

/// `mov x8, #139; svc #0`: the system call rt_sigreturn of AArch64.
const SIGNAL_RETURN: [u8; 8] = [0x68, 0x11, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4];

/// Where code of the image returns from signal handlers.
fn signal_trampolines<'a>(elf: &ElfFile64<'a, Endianness, impl ReadRef<'a>>) -> Vec<u64> {
    elf.sections()
        .filter(|section| section.kind() == object::SectionKind::Text)
        .filter_map(|section| Some((section.address(), section.data().ok()?)))
        .flat_map(|(start, code)| {
            let places = (start..).step_by(4).zip(code.windows(SIGNAL_RETURN.len()).step_by(4));
            places.filter(|(_, bytes)| *bytes == SIGNAL_RETURN).map(|(svma, _)| svma)
        })
        .collect()
}

fn symbols<'a>(elf: &ElfFile64<'a, Endianness, impl ReadRef<'a>>) -> Vec<ImageSymbol> {
    elf.dynamic_symbols()
        .filter(|symbol| symbol.is_definition() && symbol.kind() == object::SymbolKind::Text)
        .take(MAX_SYMBOLS)
        .filter_map(|symbol| {
            let name = symbol.name_bytes().ok()?.into();
            Some(ImageSymbol { svma: symbol.address(), size: symbol.size(), name })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The layout of lld with read-only data before the text: both segments hold the file's page 0x1000, and a
    /// mapping of that page at offset 0x1000 is the text, whose first byte is at 0x1500.
    #[test]
    fn the_page_shared_with_read_only_data_belongs_to_the_text() {
        let image = ImageFile {
            segments: vec![Segment { file_offset: 0x1500, file_size: 0x2000, svma: 0x2500 }],
            ..ImageFile::default()
        };
        assert_eq!(image.svma_of(0x1500), Some(0x2500));
        assert_eq!(image.svma_of(0x1fff), Some(0x2fff));
        // These bytes of the page are read-only data: no code is there.
        assert_eq!(image.svma_of(0x14ff), None);
        assert_eq!(image.svma_of(0x3500), None);
    }

    #[test]
    fn what_is_no_elf_file_is_refused() {
        for bytes in [&b""[..], b"\x7fELF", &[0; 4096], b"#!/bin/sh\n"] {
            assert_eq!(ImageFile::parse(bytes, false).unwrap_err(), ImageError::NotElf);
        }
    }
}
