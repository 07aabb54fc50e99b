//! Symbol tables: read once, in pieces, against sorted addresses; only names that are hit are read.

use crate::addresses::Addresses;
use crate::allowance::Grant;
use crate::elf::{Elf, SectionHeader};
use crate::section::{Section, Table as Bytes};
use crate::strings::Strings;
use crate::work::Work;
use object::elf;
use std::cmp::Reverse;
use std::sync::Arc;

/// How much of a table is read at a time.
const CHUNK: usize = 768 << 10;

/// What a symbol with addresses in it takes in memory, in a list that doubles when it is full.
const CANDIDATE_BYTES: u64 = 3 * size_of::<Candidate>() as u64;

/// Steps that a symbol is worth.
const STEPS_PER_SYMBOL: u64 = 8;

/// Larger tables of names are not searched for marks.
const MAX_MARKED: u64 = 256 << 20;

/// So many symbols over one address are told apart, the innermost ones; there is no such nesting in earnest.
const MAX_NESTED: usize = 64;

/// So many names of one function are compared; more than that are nobody's choice.
const MAX_NAMES: usize = 32;

/// A function that an address lies in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Symbol {
    pub(crate) name: Arc<str>,
    pub(crate) start: u64,
}

/// A symbol that covers at least one of the addresses.
#[derive(Clone, Copy)]
struct Candidate {
    start: u64,
    /// One past the last address; `start` if it has no size: then up to the next symbol.
    end: u64,
    rank: u8,
    name: u32,
}

/// One kind of table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Table {
    /// `.symtab`
    Full,
    /// `.dynsym`
    Dynamic,
}

/// Looks the addresses up in a table; all `None` if there is no such table.
pub(crate) fn find(elf: &Elf, table: Table, addresses: &Addresses) -> Vec<Option<Symbol>> {
    let count = addresses.as_slice().len();
    let found = section(elf, table).and_then(|header| {
        let names = elf.stored(elf.sections.get(header.link)?)?;
        let mut search = Search::new(elf, addresses, &names);
        // What was found before it costs too much stays.
        let _ = search.run(&elf.stored(header)?);
        Some(search.answers(names))
    });
    found.unwrap_or_else(|| vec![None; count])
}

/// Whether a file has a table with anything in it.
pub(crate) fn has(elf: &Elf, table: Table) -> bool {
    section(elf, table).is_some_and(|header| header.size > 24)
}

fn section(elf: &Elf, table: Table) -> Option<&SectionHeader> {
    let kind = match table {
        Table::Full => elf::SHT_SYMTAB.0,
        Table::Dynamic => elf::SHT_DYNSYM.0,
    };
    elf.sections.iter().find(|section| section.kind == kind)
}

struct Search<'a> {
    elf: &'a Elf,
    addresses: &'a Addresses,
    /// Those with a size.
    covering: Vec<Candidate>,
    /// For each address the last symbol before it, if that is after the address before.
    preceding: Vec<Option<Candidate>>,
    /// Thumb code has odd symbols.
    mask: u64,
    /// Names, on machines where some of them mark kinds of bytes, not functions.
    marks: Bytes,
    /// The memory of `covering`.
    grant: Grant,
    work: Work,
}

impl<'a> Search<'a> {
    fn new(elf: &'a Elf, addresses: &'a Addresses, names: &Section) -> Self {
        let mask = if elf.machine == elf::EM_ARM.0 { !1 } else { !0 };
        let preceding = vec![None; addresses.as_slice().len()];
        let has_marks = [elf::EM_ARM.0, elf::EM_AARCH64.0, elf::EM_RISCV.0].contains(&elf.machine);
        let marks = Some(names).filter(|names| has_marks && names.len() <= MAX_MARKED);
        let marks = marks.and_then(|names| Bytes::of(names.clone())).unwrap_or_default();
        let allowance = elf.input.allowance();
        let (grant, work) = (allowance.empty_grant(), allowance.work());
        Self { elf, addresses, covering: Vec::new(), preceding, mask, marks, grant, work }
    }

    fn run(&mut self, table: &Section) -> Option<()> {
        let entry_len = if self.elf.is_64 { 24 } else { 16 };
        let code: Vec<bool> = self.elf.sections.iter().map(|section| section.is_code).collect();
        let mut chunk = vec![0; CHUNK.min(usize::try_from(table.len()).ok()?)];
        let mut offset = 0;
        loop {
            let filled = table.read_into(offset, &mut chunk)?;
            let whole = filled - filled % entry_len;
            if whole == 0 {
                return Some(());
            }
            for entry in chunk[..whole].chunks_exact(entry_len) {
                self.work.take(STEPS_PER_SYMBOL)?;
                self.entry(entry, &code)?;
            }
            offset += whole as u64;
        }
    }

    /// Takes an entry of the table; `None` if that costs too much.
    #[inline]
    fn entry(&mut self, entry: &[u8], code: &[bool]) -> Option<()> {
        let (name, info, section, value, size) = fields(entry, self.elf.is_64)?;
        let kind = info & 0xf;
        let is_function = kind == elf::STT_FUNC.0 || kind == elf::STT_GNU_IFUNC.0;
        // Labels of assembly code have no type.
        if !is_function && kind != elf::STT_NOTYPE.0 {
            return Some(());
        }
        // No code is at address zero: linkers leave it in symbols of what they dropped.
        if section == 0 || name == 0 || value == 0 {
            return Some(());
        }
        // Special indexes stand for sections that have no number, and for none.
        let is_code = code.get(usize::from(section)).copied().unwrap_or(is_function);
        if !is_code {
            return Some(());
        }
        let start = value & self.mask;
        let is_global = info >> 4 != 0;
        let rank = u8::from(is_function) * 2 + u8::from(is_global);
        if size == 0 && self.is_mark(name) {
            return Some(());
        }
        let candidate = Candidate { start, end: start.saturating_add(size), rank, name };
        let first = self.addresses.below(start);
        let Some(&next) = self.addresses.as_slice().get(first) else { return Some(()) };
        if next < candidate.end {
            self.grant.grow(CANDIDATE_BYTES)?;
            self.covering.push(candidate);
        }
        let better = |known: Candidate| {
            (known.start, known.end > known.start, known.rank) < (start, size > 0, rank)
        };
        if let Some(known) = self.preceding.get_mut(first)
            && known.is_none_or(better)
        {
            *known = Some(candidate);
        }
        Some(())
    }

    /// ARM's mapping symbols: `$x`, `$d.1` and so on.
    fn is_mark(&self, name: u32) -> bool {
        let name = self.marks.get(name as usize..).unwrap_or_default();
        matches!(name, [b'$', b'a' | b'd' | b't' | b'x', 0 | b'.', ..])
    }

    fn answers(mut self, names: Section) -> Vec<Option<Symbol>> {
        // Innermost last; of several at one place the best last, of equals the first in the table.
        let order = |it: &Candidate| (it.start, Reverse(it.end), it.rank, Reverse(it.name));
        self.covering.sort_unstable_by_key(order);
        let mut strings = Strings::new(names);
        put_plainest_last(&mut self.covering, &mut strings);
        let mut open: Vec<Candidate> = Vec::new();
        let mut last: Option<Candidate> = None;
        let mut starts = self.covering.iter().peekable();
        let mut chosen = Vec::with_capacity(self.preceding.len());
        for (&address, preceding) in self.addresses.as_slice().iter().zip(&self.preceding) {
            last = preceding.or(last);
            while let Some(candidate) = starts.next_if(|it| it.start <= address) {
                open.retain(|open| open.end > candidate.start);
                if open.len() >= MAX_NESTED {
                    open.remove(0);
                }
                open.push(*candidate);
            }
            // A label in the middle of a function is no function.
            let covering = open.iter().rev().find(|candidate| candidate.end > address);
            let label = last.filter(|last| last.start == last.end && !self.is_cut(last, address));
            chosen.push(covering.copied().or(label));
        }
        named(&chosen, strings)
    }

    /// Whether an address is outside the section that a label is in; or that costs too much to say.
    fn is_cut(&self, label: &Candidate, address: u64) -> bool {
        if self.work.take(self.elf.sections.len() as u64).is_none() {
            return true;
        }
        let holds = |section: &&SectionHeader| {
            section.is_code
                && label.start >= section.svma
                && label.start - section.svma < section.size
        };
        let home = self.elf.sections.iter().find(holds);
        home.is_some_and(|section| address - section.svma >= section.size)
    }
}

/// Of several names for one function the one with the fewest underscores before it is what people call it: libraries have
/// `clone3`, `__clone3` and `__GI___clone3`. Among equals the order stays.
fn put_plainest_last(sorted: &mut [Candidate], strings: &mut Strings) {
    let is_same =
        |a: &Candidate, b: &Candidate| (a.start, a.end, a.rank) == (b.start, b.end, b.rank);
    for same in sorted.chunk_by_mut(is_same).filter(|same| (2..=MAX_NAMES).contains(&same.len())) {
        same.sort_by_cached_key(|candidate| {
            let name = strings.get(candidate.name.into()).unwrap_or_default();
            Reverse(name.len() - name.trim_start_matches('_').len())
        });
    }
}

/// Reads the names of the chosen symbols, in the order they lie in.
fn named(chosen: &[Option<Candidate>], mut strings: Strings) -> Vec<Option<Symbol>> {
    let mut order: Vec<(u32, u32)> = (0u32..)
        .zip(chosen)
        .filter_map(|(at, candidate)| candidate.map(|candidate| (candidate.name, at)))
        .collect();
    order.sort_unstable();
    let mut found = vec![None; chosen.len()];
    let mut last: Option<(u32, Option<Arc<str>>)> = None;
    for (offset, at) in order {
        let name = match &last {
            Some((known, name)) if *known == offset => name.clone(),
            _ => strings.get(offset.into()).map(|name| readable(&name)),
        };
        last = Some((offset, name.clone()));
        let start = chosen[at as usize].map_or(0, |candidate| candidate.start);
        found[at as usize] = name.map(|name| Symbol { name, start });
    }
    found
}

/// A symbol's name without its version, which some linkers leave in it.
fn readable(name: &Arc<str>) -> Arc<str> {
    match name.find('@') {
        Some(at) if at > 0 => name[..at].into(),
        _ => Arc::clone(name),
    }
}

/// Name, info, section, value and size.
fn fields(entry: &[u8], is_64: bool) -> Option<(u32, u8, u16, u64, u64)> {
    let word = |at: usize| Some(u32::from_le_bytes(*entry.get(at..)?.first_chunk()?));
    let half = |at: usize| Some(u16::from_le_bytes(*entry.get(at..)?.first_chunk()?));
    let long = |at: usize| Some(u64::from_le_bytes(*entry.get(at..)?.first_chunk()?));
    if is_64 {
        Some((word(0)?, *entry.get(4)?, half(6)?, long(8)?, long(16)?))
    } else {
        Some((word(0)?, *entry.get(12)?, half(14)?, word(4)?.into(), word(8)?.into()))
    }
}
