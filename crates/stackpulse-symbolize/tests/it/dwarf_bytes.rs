//! Debug information put together by hand.

use crate::elf_file::TEXT_SVMA;

pub(crate) fn uleb(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push(u8::try_from(value & 0x7f).unwrap() | 0x80);
        value >>= 7;
    }
    bytes.push(u8::try_from(value).unwrap());
    bytes
}

/// One unit of DWARF 4 around entries.
pub(crate) fn unit(entries: &[u8]) -> Vec<u8> {
    let len = u32::try_from(entries.len() + 7).unwrap();
    [&len.to_le_bytes()[..], &[4, 0, 0, 0, 0, 0, 8], entries].concat()
}

/// Start and length of the code.
pub(crate) fn range() -> Vec<u8> {
    [&TEXT_SVMA.to_le_bytes()[..], &4096u32.to_le_bytes()].concat()
}

/// Abbreviations: 1 a unit, 2 a function, 3 an inlined call, each with children and a range; 2 has a name, 3 an origin.
pub(crate) const ABBREVIATIONS: &[u8] = &[
    1, 0x11, 1, 0x11, 1, 0x12, 6, 0, 0, // low_pc addr, high_pc data4
    2, 0x2e, 1, 0x11, 1, 0x12, 6, 3, 8, 0, 0, // and a name string
    3, 0x1d, 1, 0x11, 1, 0x12, 6, 0x31, 0x13, 0, 0, // and abstract_origin ref4
    0,
];

pub(crate) fn function(name: &[u8]) -> Vec<u8> {
    [&[2][..], &range(), name, &[0]].concat()
}

pub(crate) fn entries_of_unit() -> Vec<u8> {
    [&[1][..], &range()].concat()
}
