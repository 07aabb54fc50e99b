//! One file's debug information, and the calls that it tells of addresses.

mod abbrev;
mod find;
mod form;
mod functions;
mod lines;
mod lists;
mod names;
mod split;
mod units;

pub(crate) use split::SplitPlaces;

use crate::allowance::{Allowance, Grant};
use crate::elf::Elf;
use crate::section::{Section, Table};
use crate::work::Work;
use form::{Cursor, StringRef};
use lists::Lists;
use units::{Text, Unit};

/// The sections of one file, and its units.
#[derive(Debug)]
pub(crate) struct Dwarf {
    allowance: Allowance,
    info: Section,
    lines: Section,
    strings: Section,
    line_strings: Section,
    string_offsets: Section,
    abbreviations: Table,
    ranges: Table,
    range_lists: Table,
    addresses: Table,
    units: Units,
    /// The supplementary file that dwz(1) moved common parts to.
    alternative: Option<Box<Dwarf>>,
    /// Where the units' other halves are, if they are split.
    split: SplitPlaces,
}

impl Dwarf {
    /// Whether a file has debug information.
    pub(crate) fn is_in(elf: &Elf) -> bool {
        let has = |name| elf.section(name).is_some_and(crate::elf::SectionHeader::has_contents);
        has(".debug_info") || has(".zdebug_info")
    }

    /// Reads a file's debug information, as far as all lookups need it. `None`: it is damaged, or costs too much.
    pub(crate) fn read(elf: &Elf) -> Option<Self> {
        Self::read_named(elf, "")
    }

    /// The same of sections whose names end in `suffix`.
    fn read_named(elf: &Elf, suffix: &str) -> Option<Self> {
        let section = |base: &str| elf.debug_section(&format!("{base}{suffix}"));
        let table = |base: &str| Table::of(section(base)?);
        let parts = Parts {
            info: section(".debug_info")?,
            abbreviations: table(".debug_abbrev")?,
            string_offsets: section(".debug_str_offsets")?,
            range_lists: table(".debug_rnglists")?,
        };
        Some(Self {
            lines: section(".debug_line")?,
            strings: section(".debug_str")?,
            line_strings: section(".debug_line_str")?,
            ranges: table(".debug_ranges")?,
            addresses: table(".debug_addr")?,
            ..Self::of_parts(parts, elf.input.allowance())?
        })
    }

    /// Finds the units in parts that belong together.
    fn of_parts(parts: Parts, allowance: &Allowance) -> Option<Self> {
        let units = units::scan(&parts.info, &parts.abbreviations, allowance)?;
        Some(Self {
            allowance: allowance.clone(),
            units,
            info: parts.info,
            abbreviations: parts.abbreviations,
            string_offsets: parts.string_offsets,
            range_lists: parts.range_lists,
            lines: Section::default(),
            strings: Section::default(),
            line_strings: Section::default(),
            ranges: Table::default(),
            addresses: Table::default(),
            alternative: None,
            split: SplitPlaces::default(),
        })
    }

    pub(crate) fn set_alternative(&mut self, alternative: Self) {
        self.alternative = Some(Box::new(alternative));
    }

    pub(crate) fn set_split_places(&mut self, places: SplitPlaces) {
        self.split = places;
    }

    /// Whether some units' other halves are elsewhere.
    pub(crate) fn is_split(&self) -> bool {
        self.units.list.iter().any(|unit| unit.root.split_name.is_some())
    }

    /// Returns the unit that an offset lies in.
    fn unit_around(&self, offset: u64) -> Option<&Unit> {
        let after = self.units.list.partition_point(|unit| unit.offset <= offset);
        let unit = self.units.list.get(after.checked_sub(1)?)?;
        (offset - unit.offset < unit.len).then_some(unit)
    }

    fn string_offset(&self, unit: &Unit, index: u64) -> Option<u64> {
        let size = if unit.encoding.is_64 { 8 } else { 4 };
        // Split units do not say where theirs start: after the header that version 5 has.
        let default = match (unit.encoding.version, unit.encoding.is_64) {
            (..5, _) => 0,
            (_, false) => 8,
            (_, true) => 16,
        };
        let base = unit.root.string_offsets.unwrap_or(default);
        let offset = index.checked_mul(size)?.checked_add(base)?;
        let bytes = self.string_offsets.read(offset, size)?;
        Cursor::new(&bytes, 0).offset(unit.encoding.is_64)
    }

    fn lists<'a>(&'a self, unit: &Unit, work: &'a Work) -> Lists<'a> {
        let root = &unit.root;
        let mut lists = Lists {
            encoding: unit.encoding,
            ranges: &self.ranges,
            // A skeleton's own ranges are not relative to the base that it states for its other half.
            ranges_base: 0,
            range_lists: &self.range_lists,
            range_lists_base: root.range_lists.unwrap_or_default(),
            addresses: &self.addresses,
            addresses_base: root.addresses.unwrap_or_default(),
            low_pc: 0,
            work,
        };
        lists.low_pc = root.low_pc.and_then(|value| lists.address(value)).unwrap_or_default();
        lists
    }

    /// Returns a string of a first entry, for what is not looked up often.
    fn root_bytes(&self, unit: &Unit, text: &Text) -> Option<Vec<u8>> {
        let (section, offset) = match text {
            Text::Bytes(bytes) => return Some(bytes.clone()),
            Text::In(StringRef::Str(offset)) => (&self.strings, *offset),
            Text::In(StringRef::LineStr(offset)) => (&self.line_strings, *offset),
            Text::In(StringRef::Index(index)) => (&self.strings, self.string_offset(unit, *index)?),
            Text::In(_) => return None,
        };
        let bytes = section.read_up_to(offset, MAX_PATH)?;
        let len = bytes.iter().position(|&byte| byte == 0)?;
        Some(bytes[..len].to_vec())
    }
}

/// What units, and names of functions, are read from.
struct Parts {
    info: Section,
    abbreviations: Table,
    string_offsets: Section,
    range_lists: Table,
}

/// The units of a file, sorted by offset.
#[derive(Debug)]
struct Units {
    list: Vec<Unit>,
    #[expect(dead_code, reason = "it is held as long as the units")]
    grant: Grant,
}

/// Longer paths cannot be opened (`PATH_MAX`).
const MAX_PATH: u64 = 4096;
