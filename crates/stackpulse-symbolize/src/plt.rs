//! Stubs of the procedure linkage table: named after the function that they jump to.

use crate::allowance::Grant;
use crate::elf::{Elf, SectionHeader};
use crate::section::Table;
use crate::strings::{NAME_BYTES, Strings};
use crate::work::Work;
use object::elf;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// A file has fewer imported functions, and its stubs are smaller: bytes of all of them.
const MAX_BYTES: u64 = 64 << 20;

/// Steps that a relocation is worth.
const STEPS_PER_RELOCATION: u64 = 16;

/// Stubs are of this size where the section does not say.
const STUB_LEN: u64 = 16;

/// The stubs of one file.
#[derive(Debug)]
pub(crate) struct Stubs {
    machine: u16,
    sections: Vec<StubSection>,
    /// Symbol index and explicit name by the address of the slot that a stub jumps through.
    slots: FxHashMap<u64, Arc<str>>,
    #[expect(dead_code, reason = "it is held as long as the names of the slots")]
    grant: Grant,
    work: Work,
}

#[derive(Debug)]
struct StubSection {
    svma: u64,
    stub_len: u64,
    bytes: Table,
}

impl Stubs {
    /// Whether a section holds stubs.
    pub(crate) fn are_in(section: &SectionHeader) -> bool {
        section.is_code && section.name.starts_with(b".plt")
    }

    /// Reads a file's stubs; without any it has no answers.
    pub(crate) fn read(elf: &Elf) -> Self {
        let mut left = MAX_BYTES;
        let sections = elf
            .sections
            .iter()
            .filter(|section| Self::are_in(section))
            .filter_map(|section| {
                let bytes = small(elf, section, &mut left)?;
                // `.plt.got` has stubs of half the size unless they start with endbr64.
                let stub_len = match section.entry_size {
                    8 => 8,
                    _ => STUB_LEN,
                };
                Some(StubSection { svma: section.svma, stub_len, bytes })
            })
            .collect::<Vec<_>>();
        let allowance = elf.input.allowance();
        let (mut slots, mut grant, work) =
            (FxHashMap::default(), allowance.empty_grant(), allowance.work());
        if !sections.is_empty() {
            // Those before what costs too much stay.
            let _ = read_slots(elf, &mut slots, &mut grant);
        }
        Self { machine: elf.machine, sections, slots, grant, work }
    }

    /// Returns the name of the stub that an address is in, `name@plt`, and its start.
    pub(crate) fn find(&self, svma: u64) -> Option<(Arc<str>, u64)> {
        self.work.take(self.sections.len() as u64)?;
        self.sections.iter().find_map(|section| {
            let into = svma.checked_sub(section.svma)?;
            let start = into - into % section.stub_len;
            let at = usize::try_from(start).ok()?;
            let len = usize::try_from(section.stub_len).ok()?;
            let stub = section.bytes.get(at..(at + len).min(section.bytes.len()))?;
            let start_svma = section.svma.checked_add(start)?;
            let slot = match self.machine {
                machine if machine == elf::EM_X86_64.0 => x86_64_slot(stub, start_svma),
                machine if machine == elf::EM_AARCH64.0 => aarch64_slot(stub, start_svma),
                _ => None,
            };
            Some((Arc::clone(self.slots.get(&slot?)?), start_svma))
        })
    }
}

/// `jmp *slot(%rip)`: ff 25 and a displacement from the next instruction.
fn x86_64_slot(stub: &[u8], svma: u64) -> Option<u64> {
    let at = stub.windows(2).position(|bytes| bytes == [0xff, 0x25])?;
    let displacement = i32::from_le_bytes(*stub.get(at + 2..)?.first_chunk()?);
    svma.checked_add(at as u64 + 6)?.checked_add_signed(displacement.into())
}

/// `adrp x16, page; ldr x17, [x16, offset]`.
fn aarch64_slot(stub: &[u8], svma: u64) -> Option<u64> {
    let (words, _) = stub.as_chunks::<4>();
    let words: Vec<u32> = words.iter().map(|word| u32::from_le_bytes(*word)).collect();
    let at = words.iter().position(|word| word & 0x9f00_001f == 0x9000_0010)?;
    let (adrp, ldr) = (words[at], *words.get(at + 1)?);
    if ldr & 0xffc0_03ff != 0xf940_0211 {
        return None;
    }
    let pages = (adrp >> 29 & 3) | (adrp >> 5 & 0x7_ffff) << 2;
    let pages = i64::from((pages << 11).cast_signed() >> 11);
    let page = (svma + 4 * at as u64) & !0xfff;
    page.checked_add_signed(pages << 12)?.checked_add(u64::from(ldr >> 10 & 0xfff) * 8)
}

/// Reads the slots that relocations fill with functions' addresses.
fn read_slots(elf: &Elf, slots: &mut FxHashMap<u64, Arc<str>>, grant: &mut Grant) -> Option<()> {
    let work = elf.input.allowance().work();
    let mut left = MAX_BYTES * 4;
    for section in elf.sections.iter().filter(|it| it.kind == elf::SHT_RELA.0 && elf.is_64) {
        let Some(table) = elf.sections.get(section.link) else { continue };
        let names = elf.sections.get(table.link).and_then(|names| elf.stored(names));
        let (Some(relocations), Some(symbols), Some(names)) =
            (small(elf, section, &mut left), small(elf, table, &mut left), names)
        else {
            continue;
        };
        let mut strings = Strings::new(names);
        for relocation in relocations.as_chunks::<24>().0 {
            work.take(STEPS_PER_RELOCATION)?;
            let (Some(slot), Some(symbol)) = (long(relocation, 0), long(relocation, 8)) else {
                continue;
            };
            // The upper half of the info is the symbol; zero: none.
            let at = usize::try_from(symbol >> 32).unwrap_or_default();
            let offset = symbols.as_chunks::<24>().0.get(at).filter(|_| at > 0);
            let Some(offset) = offset.and_then(|symbol| symbol.first_chunk()) else { continue };
            if let Some(name) = strings.get(u32::from_le_bytes(*offset).into()) {
                let name = name.split('@').next().unwrap_or_default();
                grant.grow(name.len() as u64 + NAME_BYTES)?;
                slots.insert(slot, format!("{name}@plt").into());
            }
        }
    }
    Some(())
}

fn long(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// Reads a section if not more than `left` bytes are, and takes its length off.
fn small(elf: &Elf, section: &SectionHeader, left: &mut u64) -> Option<Table> {
    let stored = elf.stored(section)?;
    *left = left.checked_sub(stored.len())?;
    Table::of(stored)
}
