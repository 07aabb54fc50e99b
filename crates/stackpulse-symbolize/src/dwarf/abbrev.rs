//! Abbreviations, prepared so that entries of no interest are passed over in one step.

use super::form::{self, Cursor, Encoding, Value};
use crate::allowance::Grant;
use crate::work::Work;
use gimli::constants::{self as dw, DwAt, DwForm, DwTag};
use rustc_hash::FxHashMap;

/// More than this no unit has: it is damage, or an attack on memory.
const MAX_ABBREVIATIONS: usize = 1 << 20;
const MAX_ATTRIBUTES: usize = 4 << 20;

/// Steps that an abbreviation is worth, beside those for its bytes.
const STEPS_PER_ABBREVIATION: u64 = 16;

/// What an entry is, as far as naming addresses needs to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A function; with code, or a declaration.
    Function,
    /// A function inlined into the enclosing one.
    Inlined,
    /// Nothing that has functions inside.
    Leafy,
    Other,
}

/// The shape of entries.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Abbreviation {
    pub(crate) kind: Kind,
    pub(crate) has_children: bool,
    /// Whether one attribute tells where the next entry on the same level is.
    pub(crate) has_sibling: bool,
    /// Total length of the values, if it is the same for all.
    fixed_len: Option<u32>,
    first: u32,
    count: u32,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Attribute {
    pub(crate) name: DwAt,
    form: DwForm,
    implicit: i64,
}

/// The abbreviations of a unit.
#[derive(Debug)]
pub(crate) struct Abbreviations {
    encoding: Encoding,
    /// By code minus one.
    dense: Vec<Abbreviation>,
    sparse: FxHashMap<u64, Abbreviation>,
    attributes: Vec<Attribute>,
    grant: Grant,
}

/// What an abbreviation takes in memory, and an attribute, in tables that double when they are full.
const ABBREVIATION_BYTES: u64 = 3 * size_of::<(u64, Abbreviation)>() as u64;
const ATTRIBUTE_BYTES: u64 = 3 * size_of::<Attribute>() as u64;

impl Abbreviations {
    /// Reads a table.
    pub(crate) fn read(bytes: &[u8], offset: u64, encoding: Encoding, work: &Work) -> Option<Self> {
        let mut table = Self::new(encoding, work);
        let mut cursor = Cursor::new(bytes, usize::try_from(offset).ok()?);
        while let Some((code, abbreviation)) = table.next(&mut cursor, work)? {
            table.grant.grow(ABBREVIATION_BYTES)?;
            if code == table.dense.len() as u64 + 1 {
                table.dense.push(abbreviation);
            } else {
                table.sparse.insert(code, abbreviation);
            }
            if table.dense.len() + table.sparse.len() > MAX_ABBREVIATIONS {
                return None;
            }
        }
        Some(table)
    }

    /// Reads one abbreviation of a table, the first with that code.
    pub(crate) fn read_one(
        bytes: &[u8],
        (offset, encoding): (u64, Encoding),
        wanted: u64,
        work: &Work,
    ) -> Option<Self> {
        let mut table = Self::new(encoding, work);
        let mut cursor = Cursor::new(bytes, usize::try_from(offset).ok()?);
        while let Some((code, abbreviation)) = table.next(&mut cursor, work)? {
            if code == wanted {
                table.sparse.insert(code, abbreviation);
                return Some(table);
            }
            table.attributes.clear();
        }
        None
    }

    fn new(encoding: Encoding, work: &Work) -> Self {
        Self {
            encoding,
            dense: Vec::new(),
            sparse: FxHashMap::default(),
            attributes: Vec::new(),
            grant: work.allowance().empty_grant(),
        }
    }

    /// Reads the next abbreviation and its code; `None` inside: there are no more.
    fn next(
        &mut self,
        cursor: &mut Cursor<'_>,
        work: &Work,
    ) -> Option<Option<(u64, Abbreviation)>> {
        // A table at the end of its section may lack its end.
        let code = if cursor.is_at_end() { 0 } else { cursor.uleb()? };
        if code == 0 {
            return Some(None);
        }
        let start = cursor.at();
        let abbreviation = self.abbreviation(cursor)?;
        work.take(STEPS_PER_ABBREVIATION + (cursor.at() - start) as u64)?;
        Some(Some((code, abbreviation)))
    }

    fn abbreviation(&mut self, cursor: &mut Cursor<'_>) -> Option<Abbreviation> {
        let tag = DwTag(u16::try_from(cursor.uleb()?).unwrap_or_default());
        let has_children = cursor.u8()? != 0;
        let first = self.attributes.len();
        let mut fixed_len = Some(0usize);
        let mut has_sibling = false;
        loop {
            let (name, form) = (cursor.uleb()?, cursor.uleb()?);
            if (name, form) == (0, 0) {
                break;
            }
            let name = DwAt(u16::try_from(name).unwrap_or_default());
            let form = DwForm(u16::try_from(form).ok()?);
            let implicit = if form == dw::DW_FORM_implicit_const { cursor.sleb()? } else { 0 };
            let len = form::fixed_len(form, self.encoding);
            fixed_len = fixed_len.zip(len).map(|(total, len)| total + len);
            has_sibling |= name == dw::DW_AT_sibling;
            self.grant.grow(ATTRIBUTE_BYTES)?;
            self.attributes.push(Attribute { name, form, implicit });
            if self.attributes.len() > MAX_ATTRIBUTES {
                return None;
            }
        }
        let kind = match tag {
            dw::DW_TAG_subprogram => Kind::Function,
            dw::DW_TAG_inlined_subroutine => Kind::Inlined,
            dw::DW_TAG_enumeration_type
            | dw::DW_TAG_array_type
            | dw::DW_TAG_subroutine_type
            | dw::DW_TAG_call_site
            | dw::DW_TAG_GNU_call_site
            | dw::DW_TAG_formal_parameter => Kind::Leafy,
            _ => Kind::Other,
        };
        Some(Abbreviation {
            kind,
            has_children,
            has_sibling,
            fixed_len: fixed_len.and_then(|len| u32::try_from(len).ok()),
            first: u32::try_from(first).ok()?,
            count: u32::try_from(self.attributes.len() - first).ok()?,
        })
    }

    #[inline]
    pub(crate) fn get(&self, code: u64) -> Option<&Abbreviation> {
        let dense = usize::try_from(code.checked_sub(1)?).ok().and_then(|at| self.dense.get(at));
        dense.or_else(|| self.sparse.get(&code))
    }

    pub(crate) fn encoding(&self) -> Encoding {
        self.encoding
    }

    /// Passes over an entry's values.
    #[inline]
    pub(crate) fn skip(&self, entry: &Abbreviation, cursor: &mut Cursor<'_>) -> Option<()> {
        if let Some(len) = entry.fixed_len {
            return cursor.skip(len as usize);
        }
        for attribute in self.attributes(entry) {
            form::skip(cursor, attribute.form, self.encoding)?;
        }
        Some(())
    }

    /// Steps that reading an entry's values takes, beside those for its bytes: values may have none.
    pub(crate) fn steps(&self, entry: &Abbreviation) -> u64 {
        entry.count.into()
    }

    /// Reads an entry's values, and hands those of interest to `take`.
    pub(crate) fn read_entry(
        &self,
        entry: &Abbreviation,
        cursor: &mut Cursor<'_>,
        mut take: impl FnMut(DwAt, Value),
    ) -> Option<()> {
        for attribute in self.attributes(entry) {
            match attribute.name {
                dw::DW_AT_name
                | dw::DW_AT_linkage_name
                | dw::DW_AT_MIPS_linkage_name
                | dw::DW_AT_low_pc
                | dw::DW_AT_high_pc
                | dw::DW_AT_ranges
                | dw::DW_AT_abstract_origin
                | dw::DW_AT_specification
                | dw::DW_AT_call_file
                | dw::DW_AT_call_line
                | dw::DW_AT_call_column
                | dw::DW_AT_sibling
                | dw::DW_AT_stmt_list
                | dw::DW_AT_comp_dir
                | dw::DW_AT_str_offsets_base
                | dw::DW_AT_addr_base
                | dw::DW_AT_GNU_addr_base
                | dw::DW_AT_rnglists_base
                | dw::DW_AT_GNU_ranges_base
                | dw::DW_AT_dwo_name
                | dw::DW_AT_GNU_dwo_name
                | dw::DW_AT_GNU_dwo_id => {
                    take(
                        attribute.name,
                        form::read(cursor, attribute.form, self.encoding, attribute.implicit)?,
                    );
                }
                _ => form::skip(cursor, attribute.form, self.encoding)?,
            }
        }
        Some(())
    }

    fn attributes(&self, entry: &Abbreviation) -> &[Attribute] {
        let first = entry.first as usize;
        self.attributes.get(first..first + entry.count as usize).unwrap_or_default()
    }
}
