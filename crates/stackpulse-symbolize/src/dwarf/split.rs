//! Split debug information: the other half of a unit, in a `.dwo` file or in a package of them.

use super::lists::Lists;
use super::units::{self, Unit};
use super::{Budget, Dwarf};
use crate::elf::Elf;
use crate::files::{self, Root};
use crate::section::Section;
use crate::work::Work;
use gimli::{DebugCuIndex, DwoId, LittleEndian, SectionId};
use std::borrow::Cow;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Where other halves are looked for.
#[derive(Clone, Debug, Default)]
pub(crate) struct SplitPlaces {
    /// Packages: `IMAGE.dwp`.
    pub(crate) packages: Vec<PathBuf>,
    /// The directory of the image.
    pub(crate) beside: Option<PathBuf>,
    /// Recorded paths are below it.
    pub(crate) root: Option<Root>,
}

/// The other halves of one file's units.
#[derive(Debug)]
pub(crate) struct SplitFiles<'a> {
    dwarf: &'a Dwarf,
    package: Option<Package>,
    memory: u64,
}

/// The half of a unit that has the functions.
#[derive(Debug)]
pub(crate) struct Half {
    pub(crate) dwarf: Dwarf,
    pub(crate) unit: Unit,
}

#[derive(Debug)]
struct Package {
    elf: Elf,
    index: Vec<u8>,
    strings: Section,
}

impl<'a> SplitFiles<'a> {
    /// Opens the package, if any of the units needs one and there is one.
    pub(crate) fn of(dwarf: &'a Dwarf, memory: u64) -> Self {
        let mut places = dwarf.split.packages.iter().filter(|_| dwarf.is_split());
        Self {
            dwarf,
            package: places
                .find_map(|place| Package::open(place, dwarf.split.root.as_ref(), memory)),
            memory,
        }
    }

    /// Returns the other half of a unit; `None` if it has none, or it is not to be found: its lines remain.
    pub(crate) fn half(&self, unit: &Unit) -> Option<Half> {
        let name = self.dwarf.root_bytes(unit, unit.root.split_name.as_ref()?)?;
        let id = unit.root.split_id?;
        let packaged = self.package.as_ref().and_then(|package| package.half(id, self.memory));
        packaged
            .or_else(|| self.places(unit, &name).iter().find_map(|place| self.half_in(place, id)))
    }

    fn half_in(&self, place: &Path, id: u64) -> Option<Half> {
        let elf = Elf::read(files::input(place, self.dwarf.split.root.as_ref())?)?;
        let dwarf = Dwarf::read_named(&elf, &mut Budget::new(self.memory), ".dwo")?;
        let unit = dwarf.units.iter().find(|unit| unit.root.split_id == Some(id))?.clone();
        Some(Half { dwarf, unit })
    }

    fn places(&self, unit: &Unit, name: &[u8]) -> Vec<PathBuf> {
        let split = &self.dwarf.split;
        let name = Path::new(OsStr::from_bytes(name));
        let directory = unit.root.directory.as_ref();
        let directory = directory.and_then(|text| self.dwarf.root_bytes(unit, text));
        let directory = PathBuf::from(OsStr::from_bytes(&directory.unwrap_or_default()));
        let recorded = directory.join(name);
        let recorded = match &split.root {
            Some(root) => root.below(&recorded),
            None => recorded,
        };
        let beside = split.beside.iter().flat_map(|beside| {
            [Some(beside.join(name)), name.file_name().map(|file| beside.join(file))]
        });
        std::iter::once(recorded).chain(beside.flatten()).collect()
    }

    /// What the ranges and addresses of a half are read from: in part the file that has the skeleton.
    pub(crate) fn lists<'b>(
        &'b self,
        skeleton: &Unit,
        half: &'b Half,
        work: &'b Work,
    ) -> Lists<'b> {
        let outer = self.dwarf.lists(skeleton, work);
        let inner = &half.unit;
        let header_len = if inner.encoding.is_64 { 20 } else { 12 };
        Lists {
            encoding: inner.encoding,
            ranges: outer.ranges,
            ranges_base: skeleton.root.range_lists.unwrap_or_default(),
            range_lists: &half.dwarf.range_lists,
            range_lists_base: inner.root.range_lists.unwrap_or(header_len),
            addresses: outer.addresses,
            addresses_base: outer.addresses_base,
            low_pc: outer.low_pc,
            work,
        }
    }
}

impl Package {
    fn open(place: &Path, root: Option<&Root>, memory: u64) -> Option<Self> {
        let elf = Elf::read(files::input(place, root)?)?;
        let mut budget = Budget::new(memory);
        let index = budget.bytes(&elf, ".debug_cu_index")?;
        let strings = budget.section(&elf, ".debug_str.dwo")?;
        Some(Self { elf, index, strings })
    }

    /// Takes a unit's parts out of the package.
    fn half(&self, id: u64, memory: u64) -> Option<Half> {
        let index = DebugCuIndex::new(&self.index, LittleEndian);
        let index: gimli::UnitIndex<_> = index.index().ok()?;
        let row = index.find(DwoId(id).0)?;
        let mut dwarf = Dwarf { strings: self.strings.clone(), ..Dwarf::default() };
        let mut budget = Budget::new(memory);
        for part in index.sections(row).ok()? {
            let section = part.section.section_id();
            let Some(name) = section.dwo_name() else { continue };
            let whole = budget.section(&self.elf, name)?;
            let part = whole.part(part.offset.into(), part.size.into())?;
            match section {
                SectionId::DebugInfo => dwarf.info = part,
                SectionId::DebugStrOffsets => dwarf.string_offsets = part,
                SectionId::DebugAbbrev => dwarf.abbreviations = part.all().map(Cow::into_owned)?,
                SectionId::DebugRngLists => dwarf.range_lists = part.all().map(Cow::into_owned)?,
                _ => {}
            }
        }
        dwarf.units = units::scan(&dwarf.info, &dwarf.abbreviations);
        let unit = dwarf.units.iter().find(|unit| unit.root.split_id == Some(id))?.clone();
        Some(Half { dwarf, unit })
    }
}
