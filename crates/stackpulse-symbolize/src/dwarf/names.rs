//! Names of functions and files: from entries, through their origins, to text.

use super::Dwarf;
use super::abbrev::Abbreviations;
use super::form::{Cursor, StringRef, Value};
use super::lines::Header;
use super::units::{Text, Unit};
use crate::allowance::Grant;
use crate::strings::{MAX_NAME, NAME_BYTES, Strings};
use crate::work::Work;
use gimli::{AttributeValue, constants as dw};
use rustc_hash::FxHashMap;
use std::rc::Rc;
use std::sync::Arc;

/// Origins of origins; a longer chain is a cycle.
const MAX_ORIGINS: usize = 16;

/// How much of another unit is read to see one entry, at first and at most.
const ENTRY_READS: [u64; 2] = [512, 96 << 10];

/// So many tables of abbreviations are kept.
const MAX_TABLES: usize = 64;

/// A name, or where it is.
#[derive(Clone, Debug)]
pub(crate) enum Name {
    In(StringRef),
    Text(Arc<str>),
}

/// Reads names of one file. Each thread has its own.
pub(crate) struct Names<'a> {
    dwarf: &'a Dwarf,
    strings: Strings,
    line_strings: Strings,
    alternative: Option<Box<Names<'a>>>,
    texts: FxHashMap<StringRef, Option<Arc<str>>>,
    /// Names of entries of other units, by offset in `.debug_info`.
    entries: FxHashMap<u64, Option<Name>>,
    tables: FxHashMap<u64, Option<Rc<Abbreviations>>>,
    paths: FxHashMap<String, Arc<str>>,
    /// The memory of names that are not read from a section of strings, and of paths.
    given: Grant,
    work: &'a Work,
}

/// What an entry says of its name.
#[derive(Default)]
struct Facts {
    linkage: Option<Name>,
    name: Option<Name>,
    origin: Option<Value>,
}

impl<'a> Names<'a> {
    pub(crate) fn new(dwarf: &'a Dwarf, work: &'a Work) -> Self {
        Self {
            dwarf,
            strings: Strings::new(dwarf.strings.clone()),
            line_strings: Strings::new(dwarf.line_strings.clone()),
            alternative: dwarf.alternative.as_deref().map(|file| Box::new(Names::new(file, work))),
            texts: FxHashMap::default(),
            entries: FxHashMap::default(),
            tables: FxHashMap::default(),
            paths: FxHashMap::default(),
            given: work.allowance().empty_grant(),
            work,
        }
    }

    /// Returns a unit's abbreviations.
    pub(crate) fn table(&mut self, unit: &Unit) -> Option<Rc<Abbreviations>> {
        if let Some(known) = self.tables.get(&unit.abbreviations)
            && known.as_ref().is_none_or(|table| table.encoding() == unit.encoding)
        {
            return known.clone();
        }
        let bytes = &self.dwarf.abbreviations;
        let table = Abbreviations::read(bytes, unit.abbreviations, unit.encoding, self.work);
        let table = table.map(Rc::new);
        if self.tables.len() >= MAX_TABLES {
            self.tables.clear();
        }
        self.tables.insert(unit.abbreviations, table.clone());
        table
    }

    /// Returns the names of a unit's entries, which are read from its bytes.
    pub(crate) fn functions(
        &mut self,
        unit: &Unit,
        bytes: &[u8],
        table: &Abbreviations,
        entries: impl Iterator<Item = usize>,
    ) -> Vec<Option<Arc<str>>> {
        let names: Vec<_> =
            entries.map(|entry| self.entry_name(unit, bytes, table, entry)).collect();
        // Strings in ascending order are read in few pieces.
        let mut wanted: Vec<StringRef> = names
            .iter()
            .filter_map(|name| match name {
                Some(Name::In(reference)) if !self.texts.contains_key(reference) => {
                    Some(*reference)
                }
                _ => None,
            })
            .collect();
        wanted.sort_unstable();
        wanted.dedup();
        for reference in wanted {
            self.text(unit, reference);
        }
        names
            .into_iter()
            .map(|name| match name? {
                Name::Text(text) => Some(text),
                Name::In(reference) => self.text(unit, reference),
            })
            .collect()
    }

    fn entry_name(
        &mut self,
        unit: &Unit,
        bytes: &[u8],
        table: &Abbreviations,
        entry: usize,
    ) -> Option<Name> {
        let mut entry = entry;
        let mut plain = None;
        for _ in 0..MAX_ORIGINS {
            let Some(facts) = self.facts(bytes, table, entry) else { break };
            if facts.linkage.is_some() {
                return facts.linkage;
            }
            plain = plain.or(facts.name);
            match facts.origin {
                Some(Value::UnitRef(offset)) => entry = usize::try_from(offset).ok()?,
                Some(Value::InfoRef(offset)) => {
                    return self.elsewhere(offset, 0).or(plain);
                }
                Some(Value::AlternativeRef(offset)) => {
                    return self.in_alternative(offset).or(plain);
                }
                _ => break,
            }
        }
        // Indexes mean something in their own unit only.
        match plain {
            Some(Name::In(reference @ StringRef::Index(_))) => {
                self.text(unit, reference).map(Name::Text)
            }
            plain => plain,
        }
    }

    /// Returns the name of any entry of the file.
    fn elsewhere(&mut self, offset: u64, depth: usize) -> Option<Name> {
        if let Some(known) = self.entries.get(&offset) {
            return known.clone();
        }
        let name = if depth < MAX_ORIGINS { self.read_elsewhere(offset, depth) } else { None };
        self.entries.insert(offset, name.clone());
        name
    }

    fn read_elsewhere(&mut self, offset: u64, depth: usize) -> Option<Name> {
        let dwarf = self.dwarf;
        let unit = dwarf.unit_around(offset)?;
        let table = self.table(unit)?;
        let left = unit.offset + unit.len - offset;
        let facts = ENTRY_READS.iter().find_map(|&len| {
            let bytes = dwarf.info.read_up_to(offset, len.min(left))?;
            self.facts(&bytes, &table, 0)
        })?;
        if let Some(linkage) = facts.linkage {
            return self.settled(unit, linkage);
        }
        let origin = match facts.origin {
            Some(Value::UnitRef(inner)) => {
                self.elsewhere(unit.offset.checked_add(inner)?, depth + 1)
            }
            Some(Value::InfoRef(offset)) => self.elsewhere(offset, depth + 1),
            Some(Value::AlternativeRef(offset)) => self.in_alternative(offset),
            _ => None,
        };
        origin.or_else(|| facts.name.and_then(|name| self.settled(unit, name)))
    }

    fn in_alternative(&mut self, offset: u64) -> Option<Name> {
        let names = self.alternative.as_mut()?;
        match names.elsewhere(offset, 0)? {
            Name::In(StringRef::Str(offset)) => Some(Name::In(StringRef::Alternative(offset))),
            Name::In(reference) => {
                let text = names.text(names.dwarf.units.list.first()?, reference);
                text.map(Name::Text)
            }
            text => Some(text),
        }
    }

    /// A name that means the same outside its unit.
    fn settled(&mut self, unit: &Unit, name: Name) -> Option<Name> {
        match name {
            Name::In(reference @ StringRef::Index(_)) => self.text(unit, reference).map(Name::Text),
            name => Some(name),
        }
    }

    /// Returns a string.
    fn text(&mut self, unit: &Unit, reference: StringRef) -> Option<Arc<str>> {
        let reference = match reference {
            StringRef::Index(index) => StringRef::Str(self.dwarf.string_offset(unit, index)?),
            other => other,
        };
        if let Some(known) = self.texts.get(&reference) {
            return known.clone();
        }
        let text = match reference {
            StringRef::Str(offset) => self.strings.get(offset),
            StringRef::LineStr(offset) => self.line_strings.get(offset),
            StringRef::Alternative(offset) => {
                self.alternative.as_mut().and_then(|names| names.strings.get(offset))
            }
            StringRef::Index(_) | StringRef::Here(_) => None,
        };
        self.texts.insert(reference, text.clone());
        text
    }

    /// Returns a string of a unit's first entry.
    pub(crate) fn root_text(&mut self, unit: &Unit, text: &Text) -> Option<Arc<str>> {
        match text {
            Text::Bytes(bytes) => self.copied(bytes),
            Text::In(reference) => self.text(unit, *reference),
        }
    }

    /// Returns a name that lies among other bytes; of a longer one its beginning.
    fn copied(&mut self, bytes: &[u8]) -> Option<Arc<str>> {
        let text: Arc<str> = String::from_utf8_lossy(&bytes[..bytes.len().min(MAX_NAME)]).into();
        self.given.grow(text.len() as u64 + NAME_BYTES)?;
        Some(text)
    }

    /// Returns the path of a file of a line program: absolute, if the unit's directory is known.
    pub(crate) fn path(
        &mut self,
        unit: &Unit,
        header: &Header<'_>,
        index: u64,
    ) -> Option<Arc<str>> {
        let file = header.file(index)?;
        let name = self.header_text(unit, &file.path_name())?;
        let mut path = String::new();
        if !name.starts_with('/') {
            let has_directory = header.version() >= 5 || file.directory_index() != 0;
            let directory = has_directory.then(|| file.directory(header)).flatten();
            let directory = directory.and_then(|text| self.header_text(unit, &text));
            let is_absolute =
                directory.as_ref().is_some_and(|directory| directory.starts_with('/'));
            if !is_absolute
                && let Some(text) = &unit.root.directory
                && let Some(unit_directory) = self.root_text(unit, text)
            {
                push(&mut path, &unit_directory);
            }
            push(&mut path, directory.as_deref().unwrap_or_default());
        }
        push(&mut path, &name);
        if let Some(known) = self.paths.get(&path) {
            return Some(Arc::clone(known));
        }
        // Once as a key, and once as what it leads to.
        self.given.grow(2 * (path.len() as u64 + NAME_BYTES))?;
        let shared: Arc<str> = path.as_str().into();
        self.paths.insert(path, Arc::clone(&shared));
        Some(shared)
    }

    fn header_text(
        &mut self,
        unit: &Unit,
        value: &AttributeValue<super::lines::Slice<'_>>,
    ) -> Option<Arc<str>> {
        match value {
            AttributeValue::String(text) => self.copied(text.slice()),
            AttributeValue::DebugStrRef(offset) => self.text(unit, StringRef::Str(offset.0 as u64)),
            AttributeValue::DebugLineStrRef(offset) => {
                self.text(unit, StringRef::LineStr(offset.0 as u64))
            }
            AttributeValue::DebugStrRefSup(offset) => {
                self.text(unit, StringRef::Alternative(offset.0 as u64))
            }
            AttributeValue::DebugStrOffsetsIndex(index) => {
                self.text(unit, StringRef::Index(index.0 as u64))
            }
            _ => None,
        }
    }

    /// Reads what an entry says of its name.
    fn facts(&mut self, bytes: &[u8], table: &Abbreviations, entry: usize) -> Option<Facts> {
        let mut cursor = Cursor::new(bytes, entry);
        let code = cursor.uleb()?;
        let entry = table.get(code)?;
        self.work.take(table.steps(entry))?;
        let mut facts = Facts::default();
        let mut text = |reference| match reference {
            StringRef::Here(start) => {
                let bytes = bytes.get(start..)?;
                let len = bytes.iter().position(|&byte| byte == 0).filter(|&len| len > 0)?;
                self.copied(&bytes[..len]).map(Name::Text)
            }
            elsewhere => Some(Name::In(elsewhere)),
        };
        table.read_entry(entry, &mut cursor, |name, value| match (name, value) {
            (dw::DW_AT_linkage_name | dw::DW_AT_MIPS_linkage_name, Value::String(reference)) => {
                facts.linkage = text(reference);
            }
            (dw::DW_AT_name, Value::String(reference)) => facts.name = text(reference),
            (dw::DW_AT_abstract_origin | dw::DW_AT_specification, value) => {
                facts.origin = Some(value);
            }
            _ => {}
        })?;
        Some(facts)
    }
}

fn push(path: &mut String, part: &str) {
    if !path.is_empty() && !path.ends_with('/') && !part.is_empty() {
        path.push('/');
    }
    path.push_str(part);
}
