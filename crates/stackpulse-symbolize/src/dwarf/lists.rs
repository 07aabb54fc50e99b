//! The address ranges that an entry states.

use super::form::{Cursor, Encoding, Value};
use crate::work::Work;
use gimli::{
    DebugAddr, DebugAddrBase, DebugRanges, DebugRngLists, DebugRngListsBase, EndianSlice,
    LittleEndian, RangeLists, RangeListsOffset,
};

/// More ranges than any entry has.
const MAX_RANGES: usize = 1 << 20;

/// What a unit's ranges and addresses are read from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lists<'a> {
    pub(crate) encoding: Encoding,
    /// `.debug_ranges` and where the unit's part of it starts.
    pub(crate) ranges: &'a [u8],
    pub(crate) ranges_base: u64,
    /// `.debug_rnglists` and the unit's table of offsets in it.
    pub(crate) range_lists: &'a [u8],
    pub(crate) range_lists_base: u64,
    /// `.debug_addr` and the unit's part of it.
    pub(crate) addresses: &'a [u8],
    pub(crate) addresses_base: u64,
    /// What addresses in lists are relative to.
    pub(crate) low_pc: u64,
    pub(crate) work: &'a Work,
}

/// The attributes by which an entry states its code.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Code {
    pub(crate) low_pc: Option<Value>,
    pub(crate) high_pc: Option<Value>,
    pub(crate) ranges: Option<Value>,
}

impl Lists<'_> {
    /// Returns the address that an attribute states.
    pub(crate) fn address(&self, value: Value) -> Option<u64> {
        match value {
            Value::Address(address) => Some(address),
            Value::AddressIndex(index) => {
                let size = self.encoding.address_size;
                let offset =
                    index.checked_mul(u64::from(size))?.checked_add(self.addresses_base)?;
                Cursor::new(self.addresses, usize::try_from(offset).ok()?).sized(size)
            }
            _ => None,
        }
    }

    /// Hands each range, start and end, to `take`. Those of code that the linker dropped are left out: they start at zero.
    #[inline]
    pub(crate) fn each(&self, code: &Code, mut take: impl FnMut(u64, u64)) -> Option<()> {
        if let Some(ranges) = code.ranges {
            return self.each_of_list(ranges, take);
        }
        let (Some(low), Some(high)) = (code.low_pc, code.high_pc) else { return None };
        let low = self.address(low)?;
        let high = match high {
            Value::Number(len) => low.checked_add(len)?,
            other => self.address(other)?,
        };
        if low != 0 && low < high {
            take(low, high);
        }
        Some(())
    }

    fn each_of_list(&self, ranges: Value, mut take: impl FnMut(u64, u64)) -> Option<()> {
        let offset = match ranges {
            Value::SectionOffset(offset) | Value::Number(offset) if self.encoding.version < 5 => {
                offset.checked_add(self.ranges_base)?
            }
            Value::SectionOffset(offset) | Value::Number(offset) => offset,
            Value::ListIndex(index) => self.list_offset(index)?,
            _ => return None,
        };
        if self.encoding.version < 5 {
            return self.each_of_pairs(offset, take);
        }
        let little = |bytes| EndianSlice::new(bytes, LittleEndian);
        let lists = RangeLists::new(
            DebugRanges::new(self.ranges, LittleEndian),
            DebugRngLists::new(self.range_lists, LittleEndian),
        );
        let mut iterator = lists
            .ranges(
                RangeListsOffset(usize::try_from(offset).ok()?),
                self.gimli_encoding(),
                self.low_pc,
                &DebugAddr::from(little(self.addresses)),
                DebugAddrBase(usize::try_from(self.addresses_base).ok()?),
            )
            .ok()?;
        for _ in 0..MAX_RANGES {
            self.work.take(1)?;
            match iterator.next().ok()? {
                None => return Some(()),
                Some(range) if range.begin != 0 && range.begin < range.end => {
                    take(range.begin, range.end);
                }
                Some(_) => {}
            }
        }
        None
    }

    /// Pairs of `.debug_ranges`: start and end relative to a base; two zeros end them; a start of all ones sets the base.
    fn each_of_pairs(&self, offset: u64, mut take: impl FnMut(u64, u64)) -> Option<()> {
        let size = self.encoding.address_size;
        let highest = if size == 4 { u64::from(u32::MAX) } else { u64::MAX };
        let mut cursor = Cursor::new(self.ranges, usize::try_from(offset).ok()?);
        let mut base = self.low_pc;
        for _ in 0..MAX_RANGES {
            self.work.take(1)?;
            let (start, end) = (cursor.sized(size)?, cursor.sized(size)?);
            if start == highest {
                base = end;
            } else if (start, end) == (0, 0) {
                return Some(());
            } else {
                let (from, to) =
                    (start.wrapping_add(base) & highest, end.wrapping_add(base) & highest);
                if from != 0 && from < to {
                    take(from, to);
                }
            }
        }
        None
    }

    fn list_offset(&self, index: u64) -> Option<u64> {
        let lists = RangeLists::new(
            DebugRanges::new(self.ranges, LittleEndian),
            DebugRngLists::new(self.range_lists, LittleEndian),
        );
        let base = DebugRngListsBase(usize::try_from(self.range_lists_base).ok()?);
        let index = gimli::DebugRngListsIndex(usize::try_from(index).ok()?);
        let offset = lists.get_offset(self.gimli_encoding(), base, index).ok()?;
        Some(offset.0 as u64)
    }

    fn gimli_encoding(&self) -> gimli::Encoding {
        gimli_encoding(self.encoding)
    }
}

pub(crate) fn gimli_encoding(encoding: Encoding) -> gimli::Encoding {
    gimli::Encoding {
        address_size: encoding.address_size,
        format: if encoding.is_64 { gimli::Format::Dwarf64 } else { gimli::Format::Dwarf32 },
        version: encoding.version,
    }
}
