//! Split debug information: the other half of a unit, in a `.dwo` file or in a package of them.

use super::lists::Lists;
use super::units::Unit;
use super::{Dwarf, Parts};
use crate::allowance::Allowance;
use crate::elf::Elf;
use crate::files::{self, Root};
use crate::section::{Section, Table};
use crate::work::Work;
use gimli::{DebugCuIndex, DwoId, LittleEndian, SectionId};
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
}

/// The half of a unit that has the functions.
#[derive(Debug)]
pub(crate) struct Half {
    pub(crate) dwarf: Dwarf,
    pub(crate) unit: Unit,
}

#[derive(Debug)]
struct Package {
    index: Table,
    strings: Section,
    /// What the index refers to, each unpacked once.
    parts: Vec<(SectionId, Section)>,
}

/// The parts that are read of a packaged half.
const PARTS: [(SectionId, &str); 4] = [
    (SectionId::DebugInfo, ".debug_info.dwo"),
    (SectionId::DebugAbbrev, ".debug_abbrev.dwo"),
    (SectionId::DebugStrOffsets, ".debug_str_offsets.dwo"),
    (SectionId::DebugRngLists, ".debug_rnglists.dwo"),
];

impl<'a> SplitFiles<'a> {
    /// Opens the package, if any of the units needs one and there is one.
    pub(crate) fn of(dwarf: &'a Dwarf) -> Self {
        let split = &dwarf.split;
        let mut places = split.packages.iter().filter(|_| dwarf.is_split());
        let open = |place: &PathBuf| Package::open(place, split.root.as_ref(), &dwarf.allowance);
        Self { dwarf, package: places.find_map(open) }
    }

    /// Returns the other half of a unit; `None` if it has none, or it is not to be found: its lines remain.
    pub(crate) fn half(&self, unit: &Unit) -> Option<Half> {
        let name = self.dwarf.root_bytes(unit, unit.root.split_name.as_ref()?)?;
        let id = unit.root.split_id?;
        let allowance = &self.dwarf.allowance;
        let packaged = self.package.as_ref().and_then(|package| package.half(id, allowance));
        packaged
            .or_else(|| self.places(unit, &name).iter().find_map(|place| self.half_in(place, id)))
    }

    fn half_in(&self, place: &Path, id: u64) -> Option<Half> {
        let (root, allowance) = (self.dwarf.split.root.as_ref(), &self.dwarf.allowance);
        let elf = Elf::read(files::input(place, root, allowance)?)?;
        let dwarf = Dwarf::read_named(&elf, ".dwo")?;
        let unit = dwarf.units.list.iter().find(|unit| unit.root.split_id == Some(id))?.clone();
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
    fn open(place: &Path, root: Option<&Root>, allowance: &Allowance) -> Option<Self> {
        let elf = Elf::read(files::input(place, root, allowance)?)?;
        let parts = PARTS.iter().map(|&(id, name)| Some((id, elf.debug_section(name)?)));
        Some(Self {
            index: Table::of(elf.debug_section(".debug_cu_index")?)?,
            strings: elf.debug_section(".debug_str.dwo")?,
            parts: parts.collect::<Option<_>>()?,
        })
    }

    /// Takes a unit's parts out of the package.
    fn half(&self, id: u64, allowance: &Allowance) -> Option<Half> {
        let index = DebugCuIndex::new(&self.index, LittleEndian);
        let index: gimli::UnitIndex<_> = index.index().ok()?;
        let row: Vec<_> = index.sections(index.find(DwoId(id).0)?).ok()?.collect();
        let part = |wanted: SectionId| {
            let Some(part) = row.iter().find(|part| part.section.section_id() == wanted) else {
                return Some(Section::default());
            };
            let (_, whole) = self.parts.iter().find(|(id, _)| *id == wanted)?;
            whole.part(part.offset.into(), part.size.into())
        };
        let parts = Parts {
            info: part(SectionId::DebugInfo)?,
            abbreviations: Table::of(part(SectionId::DebugAbbrev)?)?,
            string_offsets: part(SectionId::DebugStrOffsets)?,
            range_lists: Table::of(part(SectionId::DebugRngLists)?)?,
        };
        let dwarf = Dwarf { strings: self.strings.clone(), ..Dwarf::of_parts(parts, allowance)? };
        let unit = dwarf.units.list.iter().find(|unit| unit.root.split_id == Some(id))?.clone();
        Some(Half { dwarf, unit })
    }
}
