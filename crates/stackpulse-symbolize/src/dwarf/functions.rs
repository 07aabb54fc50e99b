//! Which function, and which inlined calls, an address lies in: one walk over a unit's entries.

use super::abbrev::{Abbreviation, Abbreviations, Kind};
use super::form::{Cursor, Value};
use super::lists::{Code, Lists};
use crate::addresses::Addresses;
use crate::allowance::Grant;
use gimli::constants as dw;

/// Entries nested deeper than this are damage.
const MAX_DEPTH: usize = 4096;

/// More inlined calls than this at one address are not shown.
const MAX_INLINED: usize = 256;

/// What a link takes in memory, with its name and what is known of that.
const LINK_BYTES: u64 = 2 * size_of::<Link>() as u64 + 128;

/// A function, or a call inlined into another, that holds one of the addresses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link {
    /// The entry's offset from the unit's header.
    pub(crate) entry: usize,
    /// Index of the one around it.
    pub(crate) outer: Option<u32>,
    /// Where it was called, if it is inlined.
    pub(crate) call_file: u64,
    pub(crate) call_line: u32,
    pub(crate) call_column: u32,
}

/// What a walk found.
#[derive(Debug, Default)]
pub(crate) struct Functions {
    pub(crate) links: Vec<Link>,
    /// For each address its innermost link.
    pub(crate) innermost: Vec<Option<u32>>,
    #[expect(dead_code, reason = "it is held as long as the links")]
    grant: Option<Grant>,
}

/// What encloses the entries of a level.
#[derive(Clone, Copy)]
struct Level {
    link: Option<u32>,
    /// Whether inlined calls in it matter: it is in a function that holds one of the addresses.
    is_inside: bool,
}

/// Walks over a unit's entries from its first one.
pub(crate) fn walk(
    bytes: &[u8],
    first_entry: usize,
    abbreviations: &Abbreviations,
    lists: &Lists<'_>,
    addresses: &Addresses,
) -> Functions {
    let mut walk = Walk {
        abbreviations,
        lists,
        addresses,
        functions: Functions {
            links: Vec::new(),
            innermost: vec![None; addresses.as_slice().len()],
            grant: None,
        },
        grant: lists.work.allowance().empty_grant(),
        has_room: false,
        levels: Vec::new(),
    };
    // What was found before the damage stays.
    let _ = walk.run(Cursor::new(bytes, first_entry));
    Functions { grant: Some(walk.grant), ..walk.functions }
}

struct Walk<'a> {
    abbreviations: &'a Abbreviations,
    lists: &'a Lists<'a>,
    addresses: &'a Addresses,
    functions: Functions,
    /// The memory of the links, and whether there is room for the next.
    grant: Grant,
    has_room: bool,
    levels: Vec<Level>,
}

impl Walk<'_> {
    fn run(&mut self, mut cursor: Cursor<'_>) -> Option<()> {
        let mut level = Level { link: None, is_inside: false };
        loop {
            let entry = cursor.at();
            let code = cursor.uleb()?;
            if code == 0 {
                level = self.levels.pop()?;
                if self.levels.is_empty() {
                    return Some(());
                }
                continue;
            }
            let abbreviation = *self.abbreviations.get(code)?;
            self.lists.work.take(self.abbreviations.steps(&abbreviation))?;
            let mut inner = level;
            match abbreviation.kind {
                Kind::Function => {
                    let link = self.function(&abbreviation, &mut cursor, entry)?;
                    inner = Level { link, is_inside: link.is_some() };
                }
                Kind::Inlined if level.is_inside => {
                    let (link, sibling) =
                        self.inlined(&abbreviation, &mut cursor, entry, level.link)?;
                    match (link, sibling) {
                        (None, Some(sibling)) if abbreviation.has_children && sibling > entry => {
                            cursor = Cursor::new(cursor.bytes(), sibling);
                            continue;
                        }
                        _ => inner = Level { link, is_inside: link.is_some() },
                    }
                }
                Kind::Leafy if abbreviation.has_sibling && abbreviation.has_children => {
                    let sibling = self.sibling(&abbreviation, &mut cursor)?;
                    if sibling > entry {
                        cursor = Cursor::new(cursor.bytes(), sibling);
                        continue;
                    }
                }
                _ => self.abbreviations.skip(&abbreviation, &mut cursor)?,
            }
            if abbreviation.has_children {
                if self.levels.len() >= MAX_DEPTH {
                    return None;
                }
                self.levels.push(level);
                level = inner;
            } else if self.levels.is_empty() {
                // A unit whose first entry has no children.
                return Some(());
            }
        }
    }

    fn sibling(&self, entry: &Abbreviation, cursor: &mut Cursor<'_>) -> Option<usize> {
        let mut sibling = 0;
        self.abbreviations.read_entry(entry, cursor, |name, value| {
            if let (dw::DW_AT_sibling, Value::UnitRef(offset)) = (name, value) {
                sibling = usize::try_from(offset).unwrap_or_default();
            }
        })?;
        Some(sibling)
    }

    /// A function's entry: its link, if it holds one of the addresses that no other function held before.
    fn function(
        &mut self,
        abbreviation: &Abbreviation,
        cursor: &mut Cursor<'_>,
        entry: usize,
    ) -> Option<Option<u32>> {
        let mut code = Code::default();
        self.abbreviations.read_entry(abbreviation, cursor, |name, value| match name {
            dw::DW_AT_low_pc => code.low_pc = Some(value),
            dw::DW_AT_high_pc => code.high_pc = Some(value),
            dw::DW_AT_ranges => code.ranges = Some(value),
            _ => {}
        })?;
        let link = Link { entry, outer: None, call_file: 0, call_line: 0, call_column: 0 };
        Some(self.place(&code, link))
    }

    fn inlined(
        &mut self,
        abbreviation: &Abbreviation,
        cursor: &mut Cursor<'_>,
        entry: usize,
        outer: Option<u32>,
    ) -> Option<(Option<u32>, Option<usize>)> {
        let mut code = Code::default();
        let mut link = Link { entry, outer, call_file: 0, call_line: 0, call_column: 0 };
        let mut sibling = None;
        let small = |value| u32::try_from(value).unwrap_or_default();
        self.abbreviations.read_entry(abbreviation, cursor, |name, value| match (name, value) {
            (dw::DW_AT_low_pc, value) => code.low_pc = Some(value),
            (dw::DW_AT_high_pc, value) => code.high_pc = Some(value),
            (dw::DW_AT_ranges, value) => code.ranges = Some(value),
            (dw::DW_AT_call_file, Value::Number(file)) => link.call_file = file,
            (dw::DW_AT_call_line, Value::Number(line)) => link.call_line = small(line),
            (dw::DW_AT_call_column, Value::Number(column)) => link.call_column = small(column),
            (dw::DW_AT_sibling, Value::UnitRef(offset)) => sibling = usize::try_from(offset).ok(),
            _ => {}
        })?;
        Some((self.place(&code, link), sibling))
    }

    /// Makes the link the innermost one of the addresses in its code whose innermost one is the one around it.
    #[inline]
    fn place(&mut self, code: &Code, link: Link) -> Option<u32> {
        let at = u32::try_from(self.functions.links.len()).ok()?;
        if !self.has_room {
            self.grant.grow(LINK_BYTES)?;
            self.has_room = true;
        }
        let innermost = &mut self.functions.innermost;
        let mut is_used = false;
        // An entry without ranges of its own is a declaration, or damaged.
        self.lists.each(code, |start, end| {
            let indexes = self.addresses.range(start, end);
            if self.lists.work.take(indexes.len() as u64).is_none() {
                return;
            }
            for index in indexes {
                if innermost[index] == link.outer {
                    innermost[index] = Some(at);
                    is_used = true;
                }
            }
        });
        if is_used {
            self.functions.links.push(link);
            self.has_room = false;
        }
        is_used.then_some(at)
    }
}

impl Functions {
    /// Returns an address's links, innermost first; of too many those in the middle are left out, never the function.
    pub(crate) fn chain(&self, index: usize) -> impl Iterator<Item = (u32, &Link)> {
        let mut next = self.innermost.get(index).copied().flatten();
        let links = std::iter::from_fn(move || {
            let at = next?;
            let link = self.links.get(at as usize)?;
            next = link.outer;
            Some((at, link))
        });
        let is_shown = |&(count, (_, link)): &(usize, (u32, &Link))| {
            count < MAX_INLINED || link.outer.is_none()
        };
        links.enumerate().filter(is_shown).map(|(_, link)| link)
    }
}
