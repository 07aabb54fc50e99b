//! What an ELF file says of itself: sections, segments, build id, links to other files.

use crate::allowance::Grant;
use crate::input::{Input, Piece, Position};
use crate::section::Section;
use crate::unpack::Packing;
use object::elf::{self, FileHeader32, FileHeader64};
use object::read::elf::{FileHeader, ProgramHeader, SectionHeader as _};
use object::{Endianness, ReadCache};
use std::sync::Arc;

/// More sections than this no linker makes for a program.
const MAX_SECTIONS: u32 = 1 << 16;

/// No section with a meaning has a longer name.
const MAX_SECTION_NAME: usize = 64;

/// Nor has it more segments.
const MAX_SEGMENTS: u32 = 1 << 12;

/// The names of all sections are no longer.
const MAX_NAMES_BYTES: u64 = 4 << 20;

/// What a section's header takes in memory, with its name.
const HEADER_BYTES: u64 = (size_of::<SectionHeader>() + MAX_SECTION_NAME) as u64;

/// Links and build ids are small.
const MAX_NOTE_BYTES: u64 = 64 << 10;

/// A section as the section table states it.
#[derive(Clone, Debug)]
pub(crate) struct SectionHeader {
    pub(crate) name: Vec<u8>,
    pub(crate) kind: u32,
    pub(crate) svma: u64,
    pub(crate) offset: u64,
    /// Bytes in memory; as many in the file, unless it has none there.
    pub(crate) size: u64,
    /// Index of a section that belongs to it.
    pub(crate) link: usize,
    pub(crate) entry_size: u64,
    pub(crate) is_code: bool,
    pub(crate) is_compressed: bool,
}

/// An executable segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment {
    pub(crate) offset: u64,
    pub(crate) file_len: u64,
    pub(crate) svma: u64,
}

/// An ELF file. Little-endian ones only: Linux has no others on the machines that are recorded.
#[derive(Debug)]
pub(crate) struct Elf {
    pub(crate) input: Arc<Input>,
    pub(crate) is_64: bool,
    pub(crate) machine: u16,
    pub(crate) sections: Vec<SectionHeader>,
    pub(crate) segments: Vec<Segment>,
    #[expect(dead_code, reason = "it is held as long as the headers")]
    grant: Grant,
}

impl Elf {
    /// Reads headers; `None` for what is no ELF file or a damaged one.
    pub(crate) fn read(input: Arc<Input>) -> Option<Self> {
        let ident = input.read(0, 6)?;
        let is_64 = match ident.as_ref() {
            [0x7f, b'E', b'L', b'F', 2, 1] => true,
            [0x7f, b'E', b'L', b'F', 1, 1] => false,
            _ => return None,
        };
        drop(ident);
        if is_64 {
            parse::<FileHeader64<Endianness>>(input, is_64)
        } else {
            parse::<FileHeader32<Endianness>>(input, is_64)
        }
    }

    /// Finds a section; one with contents rather than one whose contents were taken out.
    pub(crate) fn section(&self, name: &str) -> Option<&SectionHeader> {
        let named = |section: &&SectionHeader| section.name == name.as_bytes();
        self.sections.iter().filter(named).max_by_key(|section| section.has_contents())
    }

    /// Returns a section's bytes as they lie in the file.
    pub(crate) fn stored(&self, section: &SectionHeader) -> Option<Section> {
        if !section.has_contents() {
            return None;
        }
        Section::new(Arc::clone(&self.input), section.offset, section.size)
    }

    /// Returns a section's contents, unpacked if it is packed.
    pub(crate) fn contents(&self, section: &SectionHeader) -> Option<Section> {
        let stored = self.stored(section)?;
        let Some((packing, header_len, len)) = self.packing(section, &stored)? else {
            return Some(stored);
        };
        let packed = stored.part(header_len, stored.len().checked_sub(header_len)?)?;
        Some(packed.packed(packing)?.unpack(len)?.into())
    }

    /// Returns the small ELF file with a symbol table that is packed into it (`.gnu_debugdata`).
    pub(crate) fn packed_elf(&self) -> Option<Self> {
        let packed = self.stored(self.section(".gnu_debugdata")?)?.packed(Packing::Xz)?;
        Self::read(packed.unpack(packed.stated_len()?)?.into())
    }

    /// How a section is packed, how long the header of that is, and how many bytes are packed; `None` inside: it is not.
    fn packing(
        &self,
        section: &SectionHeader,
        stored: &Section,
    ) -> Option<Option<(Packing, u64, u64)>> {
        if section.is_compressed {
            let header = stored.read_up_to(0, 24)?;
            let word = |at: usize| Some(u32::from_le_bytes(*header.get(at..)?.first_chunk()?));
            let packing = match word(0)? {
                1 => Packing::Zlib,
                2 => Packing::Zstd,
                _ => return None,
            };
            let long = || Some(u64::from_le_bytes(*header.get(8..)?.first_chunk()?));
            let (header_len, len) =
                if self.is_64 { (24, long()?) } else { (12, u64::from(word(4)?)) };
            return Some(Some((packing, header_len, len)));
        }
        if section.name.starts_with(b".zdebug_") {
            let header = stored.read(0, 12)?;
            let len = u64::from_be_bytes(*header.strip_prefix(b"ZLIB")?.first_chunk()?);
            return Some(Some((Packing::Zlib, 12, len)));
        }
        Some(None)
    }

    /// How many bytes of debug information there are, unpacked.
    pub(crate) fn debug_bytes(&self) -> u64 {
        let is_debug = |it: &&SectionHeader| {
            it.name.starts_with(b".debug_") || it.name.starts_with(b".zdebug_")
        };
        let bytes = self.sections.iter().filter(is_debug).filter_map(|section| {
            let stored = self.stored(section)?;
            let packing = self.packing(section, &stored)?;
            Some(packing.map_or(stored.len(), |(_, _, len)| len))
        });
        bytes.fold(0, u64::saturating_add)
    }

    /// Returns the contents of a `.debug_*` section, by its old packed name too; nothing if there is none. `None`: it is
    /// damaged, or costs too much.
    pub(crate) fn debug_section(&self, name: &str) -> Option<Section> {
        let present = |name: &str| self.section(name).filter(|it| it.has_contents());
        let packed = || present(&name.replacen(".debug_", ".zdebug_", 1));
        match present(name).or_else(packed) {
            Some(header) => self.contents(header),
            None => Some(Section::default()),
        }
    }

    /// Returns the GNU build id; empty if there is none.
    pub(crate) fn build_id(&self) -> Vec<u8> {
        let notes = self.sections.iter().filter(|section| section.kind == elf::SHT_NOTE.0);
        notes
            .filter_map(|section| self.small(section))
            .find_map(|notes| build_id_note(&notes))
            .unwrap_or_default()
    }

    /// Returns name and CRC-32 of a separate debug file.
    pub(crate) fn debug_link(&self) -> Option<(Vec<u8>, u32)> {
        let bytes = self.small(self.section(".gnu_debuglink")?)?;
        let (name, rest) = split_nul(&bytes)?;
        let padding = (4 - (name.len() + 1) % 4) % 4;
        Some((name.to_vec(), u32::from_le_bytes(*rest.get(padding..)?.first_chunk()?)))
    }

    /// Returns path and build id of a supplementary file.
    pub(crate) fn alternative_link(&self) -> Option<(Vec<u8>, Vec<u8>)> {
        let bytes = self.small(self.section(".gnu_debugaltlink")?)?;
        let (path, build_id) = split_nul(&bytes)?;
        Some((path.to_vec(), build_id.to_vec()))
    }

    /// Whether the file ends before its sections do.
    pub(crate) fn is_truncated(&self) -> bool {
        let reaches = |section: &SectionHeader| {
            section.offset.checked_add(section.size).is_none_or(|end| end > self.input.len())
        };
        self.sections.iter().any(|section| section.has_contents() && reaches(section))
    }

    fn small(&self, section: &SectionHeader) -> Option<Vec<u8>> {
        let stored = self.stored(section)?;
        (stored.len() <= MAX_NOTE_BYTES).then(|| Some(stored.all()?.to_vec()))?
    }
}

impl SectionHeader {
    pub(crate) fn has_contents(&self) -> bool {
        self.kind != elf::SHT_NOBITS.0
    }
}

fn parse<E: FileHeader<Endian = Endianness>>(input: Arc<Input>, is_64: bool) -> Option<Elf> {
    let len = input.len();
    let cache = ReadCache::new(Position::new(Arc::clone(&input), 0, len));
    let header = E::parse(&cache).ok()?;
    let endian = header.endian().ok()?;
    // A file may state any numbers of them.
    let segments = match header.phnum(endian, &cache) {
        Ok(0..=MAX_SEGMENTS) => header.program_headers(endian, &cache).unwrap_or_default(),
        _ => &[],
    };
    let segments = segments
        .iter()
        .filter(|segment| {
            segment.p_type(endian) == elf::PT_LOAD && segment.p_flags(endian).0 & elf::PF_X.0 != 0
        })
        .map(|segment| Segment {
            offset: segment.p_offset(endian).into(),
            file_len: segment.p_filesz(endian).into(),
            svma: segment.p_vaddr(endian).into(),
        })
        .collect();
    let count = header.shnum(endian, &cache).ok().filter(|&count| count <= MAX_SECTIONS)?;
    let grant = input.allowance().grant(u64::from(count) * HEADER_BYTES)?;
    let sections = header.section_headers(endian, &cache).ok()?;
    let names = header.shstrndx(endian, &cache).ok()?;
    let names = sections.get(names as usize).and_then(|names| {
        let len: u64 = names.sh_size(endian).into();
        input.read(names.sh_offset(endian).into(), len.min(MAX_NAMES_BYTES))
    });
    let names = names.unwrap_or(Piece::Borrowed(&[]));
    let sections = sections
        .iter()
        .map(|section| SectionHeader {
            name: section_name(&names, section.sh_name(endian)).to_vec(),
            kind: section.sh_type(endian).0,
            svma: section.sh_addr(endian).into(),
            offset: section.sh_offset(endian).into(),
            size: section.sh_size(endian).into(),
            link: section.sh_link(endian) as usize,
            entry_size: section.sh_entsize(endian).into(),
            is_code: flags_of(section, endian) & elf::SHF_EXECINSTR.0 != 0,
            is_compressed: flags_of(section, endian) & elf::SHF_COMPRESSED.0 != 0,
        })
        .collect();
    let machine = header.e_machine(endian).0;
    drop(names);
    Some(Elf { input, is_64, machine, sections, segments, grant })
}

fn section_name(names: &[u8], at: u32) -> &[u8] {
    let name = names.get(at as usize..).unwrap_or_default();
    let name = &name[..name.len().min(MAX_SECTION_NAME)];
    name.split(|&byte| byte == 0).next().unwrap_or_default()
}

fn flags_of<S: object::read::elf::SectionHeader<Endian = Endianness>>(
    section: &S,
    endian: Endianness,
) -> u64 {
    section.sh_flags(endian).0
}

fn split_nul(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = bytes.iter().position(|&byte| byte == 0)?;
    Some((&bytes[..end], &bytes[end + 1..]))
}

/// Finds `NT_GNU_BUILD_ID` among notes, which are aligned to four bytes.
fn build_id_note(mut notes: &[u8]) -> Option<Vec<u8>> {
    loop {
        let (head, rest) = notes.split_first_chunk::<12>()?;
        let word = |at: usize| {
            let bytes = [head[at], head[at + 1], head[at + 2], head[at + 3]];
            usize::try_from(u32::from_le_bytes(bytes)).ok()
        };
        let (name_len, len, kind) = (word(0)?, word(4)?, word(8)?);
        let name = rest.get(..name_len)?;
        let rest = rest.get(name_len.next_multiple_of(4)..)?;
        let description = rest.get(..len)?;
        if kind == 3 && name == b"GNU\0" {
            return Some(description.to_vec());
        }
        notes = rest.get(len.next_multiple_of(4)..)?;
    }
}
