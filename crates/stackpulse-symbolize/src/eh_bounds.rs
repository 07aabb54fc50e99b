//! Where functions without a name start: what unwind tables say.

use crate::addresses::Addresses;
use crate::elf::Elf;
use crate::section::Table;
use gimli::{BaseAddresses, CieOrFde, EhFrame, LittleEndian, UnwindSection};

/// Larger unwind tables are not read for this.
const MAX_SECTION: u64 = 256 << 20;

/// Steps that an entry is worth, beside those for the bytes of the one that it refers to.
const STEPS_PER_ENTRY: u64 = 32;

/// Returns for each address the start of the function it is in, as far as `.eh_frame` tells.
pub(crate) fn starts(elf: &Elf, addresses: &Addresses) -> Vec<Option<u64>> {
    let mut starts = vec![None; addresses.as_slice().len()];
    // What was found before the damage stays.
    let _ = fill(elf, addresses, &mut starts);
    starts
}

fn fill(elf: &Elf, addresses: &Addresses, starts: &mut [Option<u64>]) -> Option<()> {
    let header = elf.section(".eh_frame")?;
    let bytes = Table::of(elf.contents(header).filter(|it| it.len() <= MAX_SECTION)?)?;
    let svma = |name| elf.section(name).map_or(0, |section| section.svma);
    let bases = BaseAddresses::default()
        .set_eh_frame(header.svma)
        .set_text(svma(".text"))
        .set_got(svma(".got"));
    let mut frames = EhFrame::new(&bytes, LittleEndian);
    frames.set_address_size(if elf.is_64 { 8 } else { 4 });
    let work = elf.input.allowance().work();
    let mut entries = frames.entries(&bases);
    while let Some(entry) = entries.next().ok()? {
        work.take(STEPS_PER_ENTRY)?;
        let CieOrFde::Fde(partial) = entry else { continue };
        // Many may refer to a long one.
        work.take(len_at(&bytes, partial.cie_offset().0))?;
        let Ok(entry) = partial.parse(EhFrame::cie_from_offset) else { continue };
        let start = entry.initial_address();
        let indexes = addresses.range(start, start.saturating_add(entry.len()));
        work.take(indexes.len() as u64)?;
        for index in indexes {
            starts[index].get_or_insert(start);
        }
    }
    Some(())
}

/// How many bytes the entry at an offset has.
fn len_at(bytes: &[u8], offset: usize) -> u64 {
    let rest = bytes.get(offset..).unwrap_or_default();
    let len = rest.first_chunk().map_or(0, |len| u64::from(u32::from_le_bytes(*len)));
    len.min(rest.len() as u64)
}
