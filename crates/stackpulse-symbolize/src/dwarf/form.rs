//! Attribute values: read, or passed over.

use gimli::constants::{self as dw, DwForm};

/// A place in bytes that are read forward; nothing is read past their end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

/// What the length of values depends on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Encoding {
    pub(crate) version: u16,
    pub(crate) address_size: u8,
    /// The 64-bit format of DWARF: offsets are eight bytes.
    pub(crate) is_64: bool,
}

/// Where a string is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum StringRef {
    /// In `.debug_str`.
    Str(u64),
    /// In `.debug_line_str`.
    LineStr(u64),
    /// In `.debug_str` of the supplementary file.
    Alternative(u64),
    /// By an index into `.debug_str_offsets`.
    Index(u64),
    /// In the bytes that were read: where it starts.
    Here(usize),
}

/// A value, as far as naming needs to tell kinds apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    Address(u64),
    AddressIndex(u64),
    Number(u64),
    SectionOffset(u64),
    ListIndex(u64),
    /// An entry of the same unit: bytes from its header.
    UnitRef(u64),
    /// An entry of any unit.
    InfoRef(u64),
    /// An entry of the supplementary file.
    AlternativeRef(u64),
    String(StringRef),
    Other,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(bytes: &'a [u8], at: usize) -> Self {
        Self { bytes, at }
    }

    pub(crate) fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    pub(crate) fn at(&self) -> usize {
        self.at
    }

    pub(crate) fn is_at_end(&self) -> bool {
        self.at >= self.bytes.len()
    }

    #[inline]
    pub(crate) fn skip(&mut self, len: usize) -> Option<()> {
        self.at = self.at.checked_add(len).filter(|&at| at <= self.bytes.len())?;
        Some(())
    }

    #[inline]
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let bytes = *self.bytes.get(self.at..)?.first_chunk()?;
        self.at += N;
        Some(bytes)
    }

    #[inline]
    pub(crate) fn u8(&mut self) -> Option<u8> {
        let byte = *self.bytes.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// A number of so many bytes.
    pub(crate) fn sized(&mut self, len: u8) -> Option<u64> {
        match len {
            1 => self.u8().map(u64::from),
            2 => self.u16().map(u64::from),
            3 => self.array::<3>().map(|[a, b, c]| u64::from(u32::from_le_bytes([a, b, c, 0]))),
            4 => self.u32().map(u64::from),
            8 => self.u64(),
            _ => None,
        }
    }

    /// An offset into a section.
    pub(crate) fn offset(&mut self, is_64: bool) -> Option<u64> {
        if is_64 { self.u64() } else { self.u32().map(u64::from) }
    }

    /// An unsigned number of variable length; bits past the 64th are lost, as a damaged file deserves.
    #[inline]
    pub(crate) fn uleb(&mut self) -> Option<u64> {
        let first = self.u8()?;
        if first < 0x80 {
            return Some(u64::from(first));
        }
        let mut value = u64::from(first & 0x7f);
        let mut shift = 7;
        loop {
            let byte = self.u8()?;
            value |= u64::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
            if byte < 0x80 {
                return Some(value);
            }
            shift = (shift + 7).min(70);
        }
    }

    /// A signed number of variable length.
    #[inline]
    pub(crate) fn sleb(&mut self) -> Option<i64> {
        let mut value = 0u64;
        let mut shift = 0;
        loop {
            let byte = self.u8()?;
            value |= u64::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
            shift = (shift + 7).min(70);
            if byte < 0x80 {
                if byte & 0x40 != 0 && shift < 64 {
                    value |= u64::MAX << shift;
                }
                return Some(value.cast_signed());
            }
        }
    }

    pub(crate) fn skip_leb(&mut self) -> Option<()> {
        while self.u8()? >= 0x80 {}
        Some(())
    }

    pub(crate) fn skip_string(&mut self) -> Option<()> {
        let len = self.bytes.get(self.at..)?.iter().position(|&byte| byte == 0)?;
        self.skip(len + 1)
    }

    fn skip_block(&mut self, len: u64) -> Option<()> {
        self.skip(usize::try_from(len).ok()?)
    }
}

/// How long values of a form are, where that does not depend on the value.
pub(crate) fn fixed_len(form: DwForm, encoding: Encoding) -> Option<usize> {
    let offset = if encoding.is_64 { 8 } else { 4 };
    Some(match form {
        dw::DW_FORM_flag_present | dw::DW_FORM_implicit_const => 0,
        dw::DW_FORM_data1
        | dw::DW_FORM_ref1
        | dw::DW_FORM_flag
        | dw::DW_FORM_strx1
        | dw::DW_FORM_addrx1 => 1,
        dw::DW_FORM_data2 | dw::DW_FORM_ref2 | dw::DW_FORM_strx2 | dw::DW_FORM_addrx2 => 2,
        dw::DW_FORM_strx3 | dw::DW_FORM_addrx3 => 3,
        dw::DW_FORM_data4
        | dw::DW_FORM_ref4
        | dw::DW_FORM_strx4
        | dw::DW_FORM_addrx4
        | dw::DW_FORM_ref_sup4 => 4,
        dw::DW_FORM_data8 | dw::DW_FORM_ref8 | dw::DW_FORM_ref_sig8 | dw::DW_FORM_ref_sup8 => 8,
        dw::DW_FORM_data16 => 16,
        dw::DW_FORM_addr => usize::from(encoding.address_size),
        dw::DW_FORM_ref_addr if encoding.version <= 2 => usize::from(encoding.address_size),
        dw::DW_FORM_ref_addr
        | dw::DW_FORM_sec_offset
        | dw::DW_FORM_strp
        | dw::DW_FORM_line_strp
        | dw::DW_FORM_strp_sup
        | dw::DW_FORM_GNU_ref_alt
        | dw::DW_FORM_GNU_strp_alt => offset,
        _ => return None,
    })
}

/// Passes over a value.
pub(crate) fn skip(cursor: &mut Cursor<'_>, form: DwForm, encoding: Encoding) -> Option<()> {
    if let Some(len) = fixed_len(form, encoding) {
        return cursor.skip(len);
    }
    match form {
        dw::DW_FORM_udata
        | dw::DW_FORM_sdata
        | dw::DW_FORM_ref_udata
        | dw::DW_FORM_strx
        | dw::DW_FORM_addrx
        | dw::DW_FORM_loclistx
        | dw::DW_FORM_rnglistx
        | dw::DW_FORM_GNU_addr_index
        | dw::DW_FORM_GNU_str_index => cursor.skip_leb(),
        dw::DW_FORM_string => cursor.skip_string(),
        dw::DW_FORM_exprloc | dw::DW_FORM_block => {
            let len = cursor.uleb()?;
            cursor.skip_block(len)
        }
        dw::DW_FORM_block1 => {
            let len = cursor.sized(1)?;
            cursor.skip_block(len)
        }
        dw::DW_FORM_block2 => {
            let len = cursor.sized(2)?;
            cursor.skip_block(len)
        }
        dw::DW_FORM_block4 => {
            let len = cursor.sized(4)?;
            cursor.skip_block(len)
        }
        dw::DW_FORM_indirect => {
            let form = indirect(cursor)?;
            skip(cursor, form, encoding)
        }
        _ => None,
    }
}

/// Reads a value. `implicit` is the one that the abbreviation holds.
pub(crate) fn read(
    cursor: &mut Cursor<'_>,
    form: DwForm,
    encoding: Encoding,
    implicit: i64,
) -> Option<Value> {
    let is_64 = encoding.is_64;
    Some(match form {
        dw::DW_FORM_addr => Value::Address(cursor.sized(encoding.address_size)?),
        dw::DW_FORM_addrx | dw::DW_FORM_GNU_addr_index => Value::AddressIndex(cursor.uleb()?),
        dw::DW_FORM_addrx1 => Value::AddressIndex(cursor.sized(1)?),
        dw::DW_FORM_addrx2 => Value::AddressIndex(cursor.sized(2)?),
        dw::DW_FORM_addrx3 => Value::AddressIndex(cursor.sized(3)?),
        dw::DW_FORM_addrx4 => Value::AddressIndex(cursor.sized(4)?),
        dw::DW_FORM_data1 => Value::Number(cursor.sized(1)?),
        dw::DW_FORM_data2 => Value::Number(cursor.sized(2)?),
        // Before version 4 these two stood for section offsets as well.
        dw::DW_FORM_data4 => Value::Number(cursor.sized(4)?),
        dw::DW_FORM_data8 => Value::Number(cursor.sized(8)?),
        dw::DW_FORM_udata => Value::Number(cursor.uleb()?),
        dw::DW_FORM_sdata => Value::Number(cursor.sleb()?.cast_unsigned()),
        dw::DW_FORM_implicit_const => Value::Number(implicit.cast_unsigned()),
        dw::DW_FORM_sec_offset => Value::SectionOffset(cursor.offset(is_64)?),
        dw::DW_FORM_rnglistx => Value::ListIndex(cursor.uleb()?),
        dw::DW_FORM_ref1 => Value::UnitRef(cursor.sized(1)?),
        dw::DW_FORM_ref2 => Value::UnitRef(cursor.sized(2)?),
        dw::DW_FORM_ref4 => Value::UnitRef(cursor.sized(4)?),
        dw::DW_FORM_ref8 => Value::UnitRef(cursor.sized(8)?),
        dw::DW_FORM_ref_udata => Value::UnitRef(cursor.uleb()?),
        dw::DW_FORM_ref_addr if encoding.version <= 2 => {
            Value::InfoRef(cursor.sized(encoding.address_size)?)
        }
        dw::DW_FORM_ref_addr => Value::InfoRef(cursor.offset(is_64)?),
        dw::DW_FORM_GNU_ref_alt => Value::AlternativeRef(cursor.offset(is_64)?),
        dw::DW_FORM_ref_sup4 => Value::AlternativeRef(cursor.sized(4)?),
        dw::DW_FORM_ref_sup8 => Value::AlternativeRef(cursor.sized(8)?),
        dw::DW_FORM_strp => Value::String(StringRef::Str(cursor.offset(is_64)?)),
        dw::DW_FORM_line_strp => Value::String(StringRef::LineStr(cursor.offset(is_64)?)),
        dw::DW_FORM_strp_sup | dw::DW_FORM_GNU_strp_alt => {
            Value::String(StringRef::Alternative(cursor.offset(is_64)?))
        }
        dw::DW_FORM_strx | dw::DW_FORM_GNU_str_index => {
            Value::String(StringRef::Index(cursor.uleb()?))
        }
        dw::DW_FORM_strx1 => Value::String(StringRef::Index(cursor.sized(1)?)),
        dw::DW_FORM_strx2 => Value::String(StringRef::Index(cursor.sized(2)?)),
        dw::DW_FORM_strx3 => Value::String(StringRef::Index(cursor.sized(3)?)),
        dw::DW_FORM_strx4 => Value::String(StringRef::Index(cursor.sized(4)?)),
        dw::DW_FORM_string => {
            let start = cursor.at();
            cursor.skip_string()?;
            Value::String(StringRef::Here(start))
        }
        dw::DW_FORM_indirect => {
            let form = indirect(cursor)?;
            read(cursor, form, encoding, implicit)?
        }
        _ => {
            skip(cursor, form, encoding)?;
            Value::Other
        }
    })
}

/// The form that a value states itself; it may not be indirect again.
fn indirect(cursor: &mut Cursor<'_>) -> Option<DwForm> {
    let form = DwForm(u16::try_from(cursor.uleb()?).ok()?);
    (form != dw::DW_FORM_indirect && form != dw::DW_FORM_implicit_const).then_some(form)
}
