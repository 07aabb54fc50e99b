//! `.gnu_debugdata`: a small ELF file with a symbol table, packed with xz.

use crate::elf::Elf;
use crate::input::{Input, Position};
use lzma_rust2::XzReader;
use std::io::Read;
use std::sync::Arc;

/// Larger ones are bombs.
const MAX_UNPACKED: u64 = 256 << 20;

/// Unpacks the file inside a file; `None` if there is none, or it is damaged.
pub(crate) fn unpack(elf: &Elf) -> Option<Elf> {
    let header = elf.section(".gnu_debugdata")?;
    let stored = elf.stored(header)?;
    let packed = Position::new(Arc::clone(&elf.input), header.offset, stored.len());
    let mut bytes = Vec::new();
    XzReader::new(packed, false).take(MAX_UNPACKED + 1).read_to_end(&mut bytes).ok()?;
    if bytes.len() as u64 > MAX_UNPACKED {
        return None;
    }
    Elf::read(Arc::new(Input::Memory(bytes)))
}
