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

pub(crate) use find::Effort;
pub(crate) use split::SplitPlaces;

use crate::elf::Elf;
use crate::section::Section;
use crate::work::Work;
use form::{Cursor, StringRef};
use lists::Lists;
use units::{Text, Unit};

/// The sections of one file, and its units.
#[derive(Debug, Default)]
pub(crate) struct Dwarf {
    info: Section,
    lines: Section,
    strings: Section,
    line_strings: Section,
    string_offsets: Section,
    abbreviations: Vec<u8>,
    ranges: Vec<u8>,
    range_lists: Vec<u8>,
    addresses: Vec<u8>,
    /// Sorted by offset.
    units: Vec<Unit>,
    /// The supplementary file that dwz(1) moved common parts to.
    alternative: Option<Box<Dwarf>>,
    /// Where the units' other halves are, if they are split.
    split: SplitPlaces,
}

/// Memory that a file's debug information may take.
#[derive(Debug)]
pub(crate) struct Budget {
    left: u64,
}

impl Budget {
    pub(crate) fn new(bytes: u64) -> Self {
        Self { left: bytes }
    }

    pub(crate) fn left(&self) -> u64 {
        self.left
    }

    /// Takes the section's contents, unpacked if they are packed; an absent section is empty. `None`: damaged, or more than is left.
    fn section(&mut self, elf: &Elf, name: &str) -> Option<Section> {
        let stored_len = elf.section(name).and_then(|header| elf.stored(header)).map(|it| it.len());
        if stored_len.is_none() && elf.section(&name.replacen(".debug_", ".zdebug_", 1)).is_none() {
            return Some(Section::default());
        }
        let section = elf.debug_section(name, self.left)?;
        if Some(section.len()) != stored_len || section.is_in_memory() {
            self.left = self.left.checked_sub(section.len())?;
        }
        Some(section)
    }

    fn bytes(&mut self, elf: &Elf, name: &str) -> Option<Vec<u8>> {
        let section = self.section(elf, name)?;
        self.left = self.left.checked_sub(section.len())?;
        section.all().map(std::borrow::Cow::into_owned)
    }
}

impl Dwarf {
    /// Whether a file has debug information.
    pub(crate) fn is_in(elf: &Elf) -> bool {
        let has = |name| elf.section(name).is_some_and(crate::elf::SectionHeader::has_contents);
        has(".debug_info") || has(".zdebug_info")
    }

    /// Reads a file's debug information, as far as all lookups need it.
    pub(crate) fn read(elf: &Elf, budget: &mut Budget) -> Option<Self> {
        Self::read_named(elf, budget, "")
    }

    /// The same of sections whose names end in `suffix`.
    fn read_named(elf: &Elf, budget: &mut Budget, suffix: &str) -> Option<Self> {
        let name = |base: &str| format!("{base}{suffix}");
        let abbreviations = budget.bytes(elf, &name(".debug_abbrev"))?;
        let info = budget.section(elf, &name(".debug_info"))?;
        let units = units::scan(&info, &abbreviations);
        Some(Self {
            units,
            info,
            abbreviations,
            lines: budget.section(elf, &name(".debug_line"))?,
            strings: budget.section(elf, &name(".debug_str"))?,
            line_strings: budget.section(elf, &name(".debug_line_str"))?,
            string_offsets: budget.section(elf, &name(".debug_str_offsets"))?,
            ranges: budget.bytes(elf, &name(".debug_ranges"))?,
            range_lists: budget.bytes(elf, &name(".debug_rnglists"))?,
            addresses: budget.bytes(elf, &name(".debug_addr"))?,
            ..Self::default()
        })
    }

    pub(crate) fn set_alternative(&mut self, alternative: Self) {
        self.alternative = Some(Box::new(alternative));
    }

    pub(crate) fn set_split_places(&mut self, places: SplitPlaces) {
        self.split = places;
    }

    /// How much work the file is worth to a thread.
    fn work(&self) -> Work {
        let sections = [&self.info, &self.lines, &self.strings, &self.line_strings];
        let tables = [&self.abbreviations, &self.ranges, &self.range_lists, &self.addresses];
        let sections: u64 = sections.iter().map(|section| section.len()).sum();
        Work::for_bytes(sections + tables.iter().map(|table| table.len() as u64).sum::<u64>())
    }

    /// Whether some units' other halves are elsewhere.
    pub(crate) fn is_split(&self) -> bool {
        self.units.iter().any(|unit| unit.root.split_name.is_some())
    }

    /// Returns the unit that an offset lies in.
    fn unit_around(&self, offset: u64) -> Option<&Unit> {
        let after = self.units.partition_point(|unit| unit.offset <= offset);
        let unit = self.units.get(after.checked_sub(1)?)?;
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

/// Longer paths cannot be opened (`PATH_MAX`).
const MAX_PATH: u64 = 4096;
