//! Names for addresses, kept in the spool itself.

use crate::block::column::{self, ColumnEncoder};
use crate::error::Damage;
use crate::limits::{MAX_NAMES_RAW, MAX_STRING};
use crate::record::ImageId;
use crate::varint::{self, Cursor};
use rustc_hash::FxHashMap;
use std::fmt;

/// The image an address lies in: ids count afresh in every epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ImageKey {
    /// The epoch the id belongs to.
    pub epoch: u32,
    /// The image.
    pub image: ImageId,
}

/// One call at an address: that of the machine code, or one inlined into it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct NamedCall<'a> {
    /// The function's name as the symbol or debug information has it; empty: not known.
    pub function: &'a [u8],
    /// The source file; empty: not known.
    pub file: &'a [u8],
    /// The line in it, from one; zero: not known.
    pub line: u32,
    /// The column, from one; zero: not known.
    pub column: u32,
}

/// What is stored for an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer<'a> {
    table: &'a SymbolTable,
    entry: Entry,
}

/// Names for addresses of images, sorted; made by a [`SymbolTableBuilder`] or read from a spool.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct SymbolTable {
    /// All strings, one after the other.
    text: Vec<u8>,
    /// Where each string ends in `text`. String 0 is the empty one.
    ends: Vec<u32>,
    /// Sorted by image and address, without duplicates.
    entries: Vec<Entry>,
    calls: Vec<Call>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    key: ImageKey,
    address: u64,
    /// `calls[first..first + len]`; `len` is zero where there is no name.
    first: u32,
    len: u32,
    /// Where the names are from, or why there are none.
    origin: u8,
    /// First address of the function; `address` itself where not known.
    start: u64,
}

/// Strings are indexes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Call {
    function: u32,
    file: u32,
    line: u32,
    column: u32,
}

/// Puts a [`SymbolTable`] together.
#[derive(Debug, Default)]
pub struct SymbolTableBuilder {
    table: SymbolTable,
    strings: FxHashMap<Vec<u8>, u32>,
}

impl<'a> Answer<'a> {
    /// Returns the calls at the address, innermost first; none where there is no name.
    pub fn calls(&self) -> impl ExactSizeIterator<Item = NamedCall<'a>> + use<'a> {
        let table = self.table;
        let first = self.entry.first as usize;
        let calls = table.calls.get(first..first + self.entry.len as usize).unwrap_or_default();
        calls.iter().map(move |call| NamedCall {
            function: table.string(call.function),
            file: table.string(call.file),
            line: call.line,
            column: call.column,
        })
    }

    /// Returns where the names are from, or, without names, why there are none: a number that the
    /// program that stored them gave it.
    #[must_use]
    pub fn origin(&self) -> u8 {
        self.entry.origin
    }

    /// Returns the first address of the function; the address asked for, where that is not known.
    #[must_use]
    pub fn start(&self) -> u64 {
        self.entry.start
    }
}

impl SymbolTable {
    /// Returns what is stored for an address; `None` if nothing is.
    #[must_use]
    pub fn get(&self, key: ImageKey, address: u64) -> Option<Answer<'_>> {
        let at =
            self.entries.binary_search_by_key(&(key, address), |entry| (entry.key, entry.address));
        Some(Answer { table: self, entry: *self.entries.get(at.ok()?)? })
    }

    /// Returns how many addresses have an answer.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is no answer at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns every image, address and answer, sorted.
    pub fn iter(&self) -> impl Iterator<Item = (ImageKey, u64, Answer<'_>)> {
        self.entries.iter().map(|&entry| (entry.key, entry.address, Answer { table: self, entry }))
    }

    fn string(&self, at: u32) -> &[u8] {
        let at = at as usize;
        let start = match at.checked_sub(1) {
            None => 0,
            Some(before) => self.ends.get(before).copied().unwrap_or_default() as usize,
        };
        let end = self.ends.get(at).copied().unwrap_or_default() as usize;
        self.text.get(start..end).unwrap_or_default()
    }

    /// Returns the payload of a block of names.
    pub(crate) fn encode(&self) -> Result<Vec<u8>, Damage> {
        let mut lengths = Vec::new();
        varint::put(&mut lengths, self.ends.len() as u64);
        let mut start = 0;
        for &end in &self.ends {
            varint::put(&mut lengths, u64::from(end - start));
            start = end;
        }
        let mut entries = Vec::new();
        varint::put(&mut entries, self.entries.len() as u64);
        let mut calls = Vec::new();
        let mut last = (0, 0, 0);
        for entry in &self.entries {
            let (epoch, image) = (entry.key.epoch, entry.key.image.0);
            let same_image = (epoch, image) == (last.0, last.1);
            varint::put(&mut entries, u64::from(epoch));
            varint::put(&mut entries, u64::from(image));
            varint::put(
                &mut entries,
                if same_image { entry.address - last.2 } else { entry.address },
            );
            varint::put_difference(&mut entries, entry.address, entry.start);
            entries.push(entry.origin);
            varint::put(&mut entries, u64::from(entry.len));
            last = (epoch, image, entry.address);
        }
        for call in &self.calls {
            for number in [call.function, call.file, call.line, call.column] {
                varint::put(&mut calls, u64::from(number));
            }
        }
        let columns = [lengths, self.text.clone(), entries, calls];
        if columns.iter().map(Vec::len).sum::<usize>() > MAX_NAMES_RAW {
            return Err(Damage::OverLimit);
        }
        let mut payload = Vec::new();
        let encoder = ColumnEncoder::new(NAMES_LEVEL).or_else(|_| ColumnEncoder::new(0));
        encoder.map_err(|_| Damage::BadCompression)?.encode(&columns, &mut payload);
        Ok(payload)
    }

    /// Reads what [`encode`](Self::encode) made.
    pub(crate) fn decode(payload: &[u8]) -> Result<Self, Damage> {
        let mut columns = [const { Vec::new() }; 4];
        let mut cursor = Cursor::new(payload);
        let everything = column::Selection { limit: MAX_NAMES_RAW, is_wanted: |_| true };
        column::decode(&mut cursor, &mut None, &mut columns, &everything)?;
        let [lengths, text, entries, calls] = columns;
        let mut table = Self { text, ..Self::default() };
        table.decode_strings(&lengths)?;
        table.decode_calls(&calls)?;
        table.decode_entries(&entries)?;
        Ok(table)
    }

    fn decode_strings(&mut self, lengths: &[u8]) -> Result<(), Damage> {
        let mut cursor = Cursor::new(lengths);
        let count = cursor.number()?;
        let mut end = 0u32;
        for _ in 0..count {
            let len = cursor.number32()?;
            end = end
                .checked_add(len)
                .filter(|_| len as usize <= MAX_STRING)
                .ok_or(Damage::OverLimit)?;
            self.ends.push(end);
        }
        let whole = end as usize == self.text.len() && cursor.is_at_end();
        if whole { Ok(()) } else { Err(Damage::BadRecord) }
    }

    fn decode_calls(&mut self, calls: &[u8]) -> Result<(), Damage> {
        let mut cursor = Cursor::new(calls);
        let strings = self.ends.len();
        while !cursor.is_at_end() {
            let call = Call {
                function: cursor.number32()?,
                file: cursor.number32()?,
                line: cursor.number32()?,
                column: cursor.number32()?,
            };
            if call.function as usize >= strings || call.file as usize >= strings {
                return Err(Damage::ForwardReference);
            }
            self.calls.push(call);
        }
        Ok(())
    }

    fn decode_entries(&mut self, entries: &[u8]) -> Result<(), Damage> {
        let mut cursor = Cursor::new(entries);
        let count = cursor.number()?;
        let mut last: Option<(ImageKey, u64)> = None;
        let mut first = 0u32;
        for _ in 0..count {
            let epoch = cursor.number32()?;
            let key = ImageKey { epoch, image: ImageId(cursor.number32()?) };
            let number = cursor.number()?;
            let address = match last {
                Some((last_key, address)) if last_key == key => {
                    address.checked_add(number).ok_or(Damage::BadNumber)?
                }
                _ => number,
            };
            if last.is_some_and(|last| last >= (key, address)) {
                return Err(Damage::BadSequence);
            }
            let start = address.wrapping_sub(cursor.difference(0)?);
            let origin = cursor.byte()?;
            let len = cursor.number32()?;
            let end = first.checked_add(len).filter(|&end| end as usize <= self.calls.len());
            let end = end.ok_or(Damage::ForwardReference)?;
            self.entries.push(Entry { key, address, first, len, origin, start });
            first = end;
            last = Some((key, address));
        }
        let whole = cursor.is_at_end() && first as usize == self.calls.len();
        if whole { Ok(()) } else { Err(Damage::TrailingBytes) }
    }
}

/// Names are written once and read often.
const NAMES_LEVEL: i32 = 9;

impl SymbolTableBuilder {
    /// Makes an empty one.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Stores the calls at an address, innermost first; none of them says that it has no name. `origin` is kept for the
    /// reader: where the names are from, or why there are none. `start` is the function's first address.
    ///
    /// Names longer than the format's limit are cut. A second answer for the same address replaces the first.
    pub fn insert(
        &mut self,
        key: ImageKey,
        address: u64,
        start: u64,
        origin: u8,
        calls: &[NamedCall<'_>],
    ) {
        let first = index(self.table.calls.len());
        for call in calls {
            let call = Call {
                function: self.string(call.function),
                file: self.string(call.file),
                line: call.line,
                column: call.column,
            };
            self.table.calls.push(call);
        }
        let len = index(calls.len());
        self.table.entries.push(Entry { key, address, first, len, origin, start });
    }

    /// Returns the finished table.
    #[must_use]
    pub fn build(self) -> SymbolTable {
        let mut table = self.table;
        // A stable sort, so that the last of several answers for one address comes last.
        table.entries.sort_by_key(|entry| (entry.key, entry.address));
        let mut entries: Vec<Entry> = Vec::with_capacity(table.entries.len());
        for entry in table.entries {
            match entries.last_mut() {
                Some(last) if (last.key, last.address) == (entry.key, entry.address) => {
                    *last = entry;
                }
                _ => entries.push(entry),
            }
        }
        // Calls in the order of their entries, as they are written.
        let mut calls = Vec::with_capacity(table.calls.len());
        for entry in &mut entries {
            let own = entry.first as usize..(entry.first + entry.len) as usize;
            entry.first = index(calls.len());
            calls.extend_from_slice(&table.calls[own]);
        }
        table.entries = entries;
        table.calls = calls;
        table
    }

    fn string(&mut self, bytes: &[u8]) -> u32 {
        let bytes = &bytes[..bytes.len().min(MAX_STRING)];
        if self.table.ends.is_empty() {
            self.table.ends.push(0);
            self.strings.insert(Vec::new(), 0);
        }
        if let Some(&at) = self.strings.get(bytes) {
            return at;
        }
        let at = index(self.table.ends.len());
        self.table.text.extend_from_slice(bytes);
        self.table.ends.push(index(self.table.text.len()));
        self.strings.insert(bytes.to_vec(), at);
        at
    }
}

/// Counts of a table; one that outgrows 32 bits is refused by the block limit when it is written.
fn index(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}

impl fmt::Debug for SymbolTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SymbolTable")
            .field("addresses", &self.entries.len())
            .finish_non_exhaustive()
    }
}
