//! Units: where each lies, and what its first entry says.

use super::Units;
use super::abbrev::Abbreviations;
use super::form::{Cursor, Encoding, StringRef, Value};
use crate::allowance::Allowance;
use crate::section::Section;
use crate::work::Work;
use gimli::constants as dw;

/// How much of a unit is read to see its first entry; more if that is not enough.
const FIRST_READ: u64 = 256;

/// Steps that a header is worth.
const STEPS_PER_UNIT: u64 = 64;

/// A first entry is never larger.
const MAX_FIRST_ENTRY: u64 = 64 << 10;

/// A unit of `.debug_info`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Unit {
    /// Where its header starts in `.debug_info`.
    pub(crate) offset: u64,
    /// Bytes, header included.
    pub(crate) len: u64,
    pub(crate) header_len: u64,
    pub(crate) encoding: Encoding,
    pub(crate) abbreviations: u64,
    pub(crate) root: Root,
}

/// What the first entry says.
#[derive(Clone, Debug, Default)]
pub(crate) struct Root {
    pub(crate) low_pc: Option<Value>,
    pub(crate) high_pc: Option<Value>,
    pub(crate) ranges: Option<Value>,
    pub(crate) line_program: Option<u64>,
    pub(crate) directory: Option<Text>,
    pub(crate) name: Option<Text>,
    pub(crate) string_offsets: Option<u64>,
    pub(crate) addresses: Option<u64>,
    pub(crate) range_lists: Option<u64>,
    pub(crate) split_name: Option<Text>,
    pub(crate) split_id: Option<u64>,
}

/// A string of a first entry.
#[derive(Clone, Debug)]
pub(crate) enum Text {
    In(StringRef),
    Bytes(Vec<u8>),
}

/// Finds all units of a section. A damaged header ends the list: there is no telling where the next would be. `None`: they
/// cost too much.
pub(super) fn scan(info: &Section, abbreviations: &[u8], allowance: &Allowance) -> Option<Units> {
    let mut list = Vec::new();
    let mut grant = allowance.empty_grant();
    let work = allowance.work();
    let mut offset = 0;
    while offset < info.len() {
        work.take(STEPS_PER_UNIT)?;
        let Some((unit, next)) = unit_at(info, offset, abbreviations, &work) else { break };
        if let Some(unit) = unit {
            // A list that grows is there twice for a moment.
            grant.grow(2 * (size_of::<Unit>() as u64 + unit.root.text_bytes()))?;
            list.push(unit);
        }
        if next <= offset {
            break;
        }
        offset = next;
    }
    Some(Units { list, grant })
}

impl Root {
    /// Bytes of the strings that are in the entry itself.
    fn text_bytes(&self) -> u64 {
        let texts = [&self.directory, &self.name, &self.split_name];
        let len = |text: &Option<Text>| match text {
            Some(Text::Bytes(bytes)) => bytes.len() as u64,
            _ => 0,
        };
        texts.into_iter().map(len).sum()
    }
}

/// Reads a unit's header and first entry, and returns it, if it is of use, with the offset of the next.
fn unit_at(
    info: &Section,
    offset: u64,
    abbreviations: &[u8],
    work: &Work,
) -> Option<(Option<Unit>, u64)> {
    let mut wanted = FIRST_READ;
    loop {
        let bytes = info.read_up_to(offset, wanted)?;
        let mut cursor = Cursor::new(&bytes, 0);
        let (mut unit, is_of_use) = header(&mut cursor, offset)?;
        let next = offset.checked_add(unit.len)?;
        if next > info.len() {
            return None;
        }
        if !is_of_use {
            return Some((None, next));
        }
        match first_entry(&mut cursor, &unit, abbreviations, work) {
            Some(root) => {
                unit.root.split_id = root.split_id.or(unit.root.split_id);
                unit.root = Root { split_id: unit.root.split_id, ..root };
                return Some((Some(unit), next));
            }
            None if wanted < MAX_FIRST_ENTRY.min(unit.len) => wanted *= 16,
            None => return Some((None, next)),
        }
    }
}

/// Reads a header; whether the unit holds functions is the second answer.
fn header(cursor: &mut Cursor<'_>, offset: u64) -> Option<(Unit, bool)> {
    let mut len = u64::from(cursor.u32()?);
    let is_64 = len == 0xffff_ffff;
    if is_64 {
        len = cursor.u64()?;
    } else if len >= 0xffff_fff0 {
        return None;
    }
    let len = len.checked_add(if is_64 { 12 } else { 4 })?;
    let version = cursor.u16()?;
    let mut unit = Unit { offset, len, ..Unit::default() };
    let mut kind = dw::DW_UT_compile;
    let address_size;
    match version {
        2..=4 => {
            unit.abbreviations = cursor.offset(is_64)?;
            address_size = cursor.u8()?;
        }
        5 => {
            kind = dw::DwUt(cursor.u8()?);
            address_size = cursor.u8()?;
            unit.abbreviations = cursor.offset(is_64)?;
            if matches!(kind, dw::DW_UT_skeleton | dw::DW_UT_split_compile) {
                unit.root.split_id = Some(cursor.u64()?);
            }
        }
        _ => return Some((unit, false)),
    }
    unit.encoding = Encoding { version, address_size, is_64 };
    unit.header_len = cursor.at() as u64;
    let is_of_use = matches!(
        kind,
        dw::DW_UT_compile | dw::DW_UT_partial | dw::DW_UT_skeleton | dw::DW_UT_split_compile
    );
    Some((unit, is_of_use))
}

fn first_entry(
    cursor: &mut Cursor<'_>,
    unit: &Unit,
    abbreviations: &[u8],
    work: &Work,
) -> Option<Root> {
    let bytes = cursor.bytes();
    let code = cursor.uleb()?;
    let place = (unit.abbreviations, unit.encoding);
    let table = Abbreviations::read_one(abbreviations, place, code, work)?;
    let mut root = Root::default();
    let text = |reference: StringRef| match reference {
        StringRef::Here(start) => {
            let bytes = &bytes[start..];
            let len = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
            Text::Bytes(bytes[..len].to_vec())
        }
        elsewhere => Text::In(elsewhere),
    };
    table.read_entry(table.get(code)?, cursor, |name, value| match (name, value) {
        (dw::DW_AT_low_pc, value) => root.low_pc = Some(value),
        (dw::DW_AT_high_pc, value) => root.high_pc = Some(value),
        (dw::DW_AT_ranges, value) => root.ranges = Some(value),
        (dw::DW_AT_name, Value::String(reference)) => root.name = Some(text(reference)),
        (dw::DW_AT_comp_dir, Value::String(reference)) => root.directory = Some(text(reference)),
        (dw::DW_AT_dwo_name | dw::DW_AT_GNU_dwo_name, Value::String(reference)) => {
            root.split_name = Some(text(reference));
        }
        (dw::DW_AT_GNU_dwo_id, Value::Number(id)) => root.split_id = Some(id),
        (name, Value::SectionOffset(offset) | Value::Number(offset)) => match name {
            dw::DW_AT_stmt_list => root.line_program = Some(offset),
            dw::DW_AT_str_offsets_base => root.string_offsets = Some(offset),
            dw::DW_AT_addr_base | dw::DW_AT_GNU_addr_base => root.addresses = Some(offset),
            dw::DW_AT_rnglists_base | dw::DW_AT_GNU_ranges_base => root.range_lists = Some(offset),
            _ => {}
        },
        _ => {}
    })?;
    Some(root)
}
