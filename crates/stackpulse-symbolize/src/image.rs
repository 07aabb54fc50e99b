//! One image: its files, and what each of them knows of the addresses.

use crate::addresses::Addresses;
use crate::allowance::Allowance;
use crate::dwarf::{Dwarf, SplitPlaces};
use crate::eh_bounds;
use crate::elf::Elf;
use crate::locate::{Files, Origins};
use crate::lookup::{Call, Lookup, Origin, Reason};
use crate::plt::Stubs;
use crate::symbols::{self, Symbol, Table};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What is known of an address so far.
#[derive(Clone, Debug, Default)]
struct Knowledge {
    calls: Vec<Call>,
    origin: Option<Origin>,
    start: Option<u64>,
}

/// More debug information than this is worth all threads.
const LARGE: u64 = 32 << 20;

/// With what an image is named.
#[derive(Clone, Debug)]
pub(crate) struct Effort {
    pub(crate) threads: usize,
    /// Whether that is a part only: others work at the same time.
    pub(crate) is_part: bool,
    pub(crate) allowance: Allowance,
}

/// What came of it.
#[derive(Debug)]
pub(crate) struct Named {
    pub(crate) lookups: Vec<Lookup>,
    /// Where the names are from.
    pub(crate) origins: Origins,
}

/// Names an image's addresses, which are distinct SVMAs in ascending order. `None` if that takes more than the part of the
/// effort that it may take.
pub(crate) fn name(files: &Files, svmas: Vec<u64>, effort: &Effort) -> Option<Named> {
    let need = files.debug_bytes();
    if effort.is_part && (need > LARGE || need > effort.allowance.memory_left()) {
        return None;
    }
    let mut naming = Naming {
        known: vec![Knowledge::default(); svmas.len()],
        svmas,
        effort,
        origins: Origins::default(),
    };
    naming.debug_information(files)?;
    if let Some(image) = &files.image {
        naming.stubs(&image.elf, &image.path);
    }
    naming.symbol_tables(files);
    if let Some(image) = &files.image {
        naming.bounds(&image.elf);
    }
    if effort.is_part && effort.allowance.refusals() > 0 {
        return None;
    }
    let reason = effort.allowance.shortage().unwrap_or(files.reason_of_no_name());
    let lookups = naming.known.into_iter().map(|known| known.lookup(reason)).collect();
    Some(Named { lookups, origins: naming.origins })
}

struct Naming<'a> {
    svmas: Vec<u64>,
    known: Vec<Knowledge>,
    effort: &'a Effort,
    origins: Origins,
}

impl Naming<'_> {
    /// Addresses of which `is_wanted`, with their indexes.
    fn select(&self, is_wanted: impl Fn(&Knowledge) -> bool) -> (Vec<usize>, Addresses) {
        let indexes: Vec<usize> = self
            .known
            .iter()
            .enumerate()
            .filter(|(_, it)| is_wanted(it))
            .map(|(at, _)| at)
            .collect();
        let addresses = Addresses::new(indexes.iter().map(|&at| self.svmas[at]).collect());
        (indexes, addresses)
    }

    /// `None` if it takes more than a part of the effort: there is no telling how large the other halves of units are.
    fn debug_information(&mut self, files: &Files) -> Option<()> {
        for file in files.debug.iter().chain(&files.image) {
            if !Dwarf::is_in(&file.elf) {
                continue;
            }
            let (indexes, addresses) = self.select(|known| !known.has_function());
            if indexes.is_empty() {
                break;
            }
            let Some(mut dwarf) = Dwarf::read(&file.elf) else { continue };
            if self.effort.is_part && dwarf.is_split() {
                return None;
            }
            if let Some(alternative) = file.alternative.as_ref()
                && let Some(alternative) = Dwarf::read(alternative)
            {
                dwarf.set_alternative(alternative);
            }
            dwarf.set_split_places(split_places(&file.path, files));
            for (at, calls) in indexes.into_iter().zip(dwarf.find(&addresses, self.effort.threads))
            {
                let known = &mut self.known[at];
                if !calls.is_empty() && !known.has_function() {
                    known.origin =
                        calls.iter().any(has_function).then_some(Origin::DebugInformation);
                    known.calls = calls;
                    self.origins.used(&file.path, Origin::DebugInformation);
                }
            }
        }
        Some(())
    }

    fn symbol_tables(&mut self, files: &Files) {
        let every = || files.debug.iter().chain(&files.image);
        for file in every() {
            self.table(&file.elf, Table::Full, Origin::SymbolTable, &file.path);
        }
        if let Some(image) = &files.image
            && self.known.iter().any(|known| known.origin.is_none())
            && let Some(packed) = image.elf.packed_elf()
        {
            self.table(&packed, Table::Full, Origin::MiniDebugInformation, &image.path);
        }
        for file in every() {
            self.table(&file.elf, Table::Dynamic, Origin::DynamicSymbols, &file.path);
        }
    }

    fn table(&mut self, elf: &Elf, table: Table, origin: Origin, path: &Path) {
        if !symbols::has(elf, table) {
            return;
        }
        let (indexes, addresses) = self.select(Knowledge::wants_symbol);
        if indexes.is_empty() {
            return;
        }
        for (at, symbol) in indexes.into_iter().zip(symbols::find(elf, table, &addresses)) {
            let Some(symbol) = symbol else { continue };
            if self.known[at].take_symbol(symbol, origin) {
                self.origins.used(path, origin);
            }
        }
    }

    /// Stubs come before symbols: some linkers leave one symbol for the whole table.
    fn stubs(&mut self, elf: &Elf, path: &Path) {
        let sections: Vec<_> = elf.sections.iter().filter(|it| Stubs::are_in(it)).collect();
        let work = self.effort.allowance.work();
        let is_stub = |svma: u64| {
            work.take(sections.len() as u64).is_some()
                && sections
                    .iter()
                    .any(|it| svma.checked_sub(it.svma).is_some_and(|at| at < it.size))
        };
        let mut stubs = None;
        for (known, &svma) in self.known.iter_mut().zip(&self.svmas) {
            if known.origin.is_none() && is_stub(svma) {
                let stubs = stubs.get_or_insert_with(|| Stubs::read(elf));
                if let Some((name, start)) = stubs.find(svma) {
                    known.take_symbol(Symbol { name, start }, Origin::Stub);
                    self.origins.used(path, Origin::Stub);
                }
            }
        }
    }

    /// The bounds of functions without a name.
    fn bounds(&mut self, elf: &Elf) {
        let (indexes, addresses) = self.select(|known| known.origin.is_none());
        if indexes.is_empty() {
            return;
        }
        for (at, start) in indexes.into_iter().zip(eh_bounds::starts(elf, &addresses)) {
            self.known[at].start = start;
        }
    }
}

impl Knowledge {
    fn has_function(&self) -> bool {
        self.calls.iter().any(has_function)
    }

    /// Whether a symbol would say more: there is no name yet, or a bare one where the symbol tells scope and arguments.
    fn wants_symbol(&self) -> bool {
        self.calls.last().is_none_or(|outermost| {
            outermost.function.as_ref().is_none_or(|name| {
                self.origin == Some(Origin::DebugInformation) && !is_mangled(name)
            })
        })
    }

    /// Uses a symbol where it says more, and tells whether the address has its name from it alone.
    fn take_symbol(&mut self, symbol: Symbol, origin: Origin) -> bool {
        match self.calls.last_mut() {
            Some(outermost) if outermost.function.is_some() => {
                if is_mangled(&symbol.name) {
                    outermost.function = Some(symbol.name);
                }
                return false;
            }
            Some(outermost) => outermost.function = Some(symbol.name),
            None => {
                self.calls.push(Call { function: Some(symbol.name), ..Call::default() });
            }
        }
        self.start = Some(symbol.start);
        let first = self.origin.is_none();
        self.origin.get_or_insert(origin);
        first
    }

    fn lookup(self, reason: Reason) -> Lookup {
        match self.origin {
            Some(origin) => Lookup::Resolved { calls: self.calls, origin },
            None => Lookup::Unresolved { reason, start: self.start },
        }
    }
}

fn has_function(call: &Call) -> bool {
    call.function.is_some()
}

fn is_mangled(name: &Arc<str>) -> bool {
    name.starts_with("_Z") || name.starts_with("_R")
}

/// Where the other halves of a file's units may be: `FILE.dwp`, and beside the file.
fn split_places(path: &Path, files: &Files) -> SplitPlaces {
    let package = |path: &Path| {
        let mut name = path.as_os_str().to_owned();
        name.push(".dwp");
        PathBuf::from(name)
    };
    let image = files.image.as_ref().map(|image| image.path.as_path());
    let mut packages = vec![package(path)];
    packages.extend(image.filter(|&image| image != path).map(package));
    let beside = image.unwrap_or(path).parent().map(PathBuf::from);
    SplitPlaces { packages, beside, root: files.root.clone() }
}
