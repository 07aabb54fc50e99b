//! Line programs: run once, against sorted addresses, without making a table of their rows.

use super::form::{self, Cursor, Encoding};
use super::lists::gimli_encoding;
use crate::addresses::Addresses;
use crate::allowance::Grant;
use crate::input::Piece;
use crate::section::Section;
use crate::work::Work;
use gimli::{DebugLine, DebugLineOffset, DwForm, EndianSlice, IncompleteLineProgram, LittleEndian};

pub(crate) type Slice<'a> = EndianSlice<'a, LittleEndian>;
pub(crate) type Header<'a> = gimli::LineProgramHeader<Slice<'a>>;

/// What a directory or a file of a header takes in memory, in a list that doubles when it is full.
const ENTRY_BYTES: u64 = 3 * size_of::<gimli::FileEntry<Slice<'static>>>() as u64;

/// What a program says of an address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) file: u64,
    /// From one; zero: none.
    pub(crate) line: u32,
    pub(crate) column: u32,
}

/// Reads the bytes of the program at an offset.
pub(crate) fn program_bytes<'a>(lines: &'a Section, offset: u64, work: &Work) -> Option<Piece<'a>> {
    let head = lines.read_up_to(offset, 12)?;
    let mut cursor = Cursor::new(&head, 0);
    let len = match cursor.u32()? {
        0xffff_ffff => cursor.u64()?.checked_add(12)?,
        len => u64::from(len) + 4,
    };
    work.take(len)?;
    lines.read(offset, len)
}

/// A program, and the memory of its header.
#[derive(Debug)]
pub(crate) struct Program<'a> {
    program: IncompleteLineProgram<Slice<'a>>,
    #[expect(dead_code, reason = "it is held as long as the header")]
    grant: Grant,
}

impl<'a> Program<'a> {
    /// Reads a program's header.
    pub(crate) fn read(bytes: &'a [u8], encoding: Encoding, work: &Work) -> Option<Self> {
        let mut grant = work.allowance().empty_grant();
        reserve(bytes, encoding.address_size, &mut grant)?;
        let lines = DebugLine::new(bytes, LittleEndian);
        let encoding = gimli_encoding(encoding);
        let program = lines.program(DebugLineOffset(0), encoding.address_size, None, None).ok()?;
        Some(Self { program, grant })
    }

    pub(crate) fn header(&self) -> &Header<'a> {
        self.program.header()
    }
}

/// Takes the memory of a header's directories and files, which may be small and many: a byte each.
fn reserve(bytes: &[u8], address_size: u8, grant: &mut Grant) -> Option<()> {
    let mut cursor = Cursor::new(bytes, 0);
    let is_64 = cursor.u32()? == 0xffff_ffff;
    cursor.skip(if is_64 { 8 } else { 0 })?;
    let version = cursor.u16()?;
    if version >= 5 {
        cursor.skip(2)?;
    }
    cursor.offset(is_64)?;
    // Lengths and defaults of the machine; then how many operands each opcode has.
    cursor.skip(if version >= 4 { 5 } else { 4 })?;
    let opcodes = cursor.u8()?;
    cursor.skip(usize::from(opcodes.saturating_sub(1)))?;
    if version < 5 {
        for numbers in [0, 3] {
            while *cursor.bytes().get(cursor.at())? != 0 {
                grant.grow(ENTRY_BYTES)?;
                cursor.skip_string()?;
                (0..numbers).try_for_each(|_| cursor.skip_leb())?;
            }
            cursor.skip(1)?;
        }
        return Some(());
    }
    let encoding = Encoding { version, address_size, is_64 };
    for _ in 0..2 {
        reserve_entries(&mut cursor, encoding, grant)?;
    }
    Some(())
}

/// The same of one list of version 5: how its entries are made up, their number, and the entries.
fn reserve_entries(cursor: &mut Cursor<'_>, encoding: Encoding, grant: &mut Grant) -> Option<()> {
    let formats = (0..cursor.u8()?).map(|_| {
        cursor.skip_leb()?;
        Some(DwForm(u16::try_from(cursor.uleb()?).ok()?))
    });
    let formats: Vec<DwForm> = formats.collect::<Option<_>>()?;
    for _ in 0..cursor.uleb()? {
        let start = cursor.at();
        grant.grow(ENTRY_BYTES)?;
        formats.iter().try_for_each(|&form| form::skip(cursor, form, encoding))?;
        // Entries without a byte could be any number.
        (cursor.at() > start).then_some(())?;
    }
    Some(())
}

/// Runs a program: for each of the addresses its row.
pub(crate) fn rows(header: &Header<'_>, addresses: &Addresses, work: &Work) -> Vec<Option<Row>> {
    let mut machine = Machine::new(header, addresses, work);
    // What was found before the damage stays.
    let _ = machine.run(header);
    machine.found
}

struct Machine<'a> {
    addresses: &'a Addresses,
    work: &'a Work,
    found: Vec<Option<Row>>,
    address: u64,
    line: u32,
    file: u64,
    column: u32,
    /// The row before, and the address it starts at.
    last: Option<(u64, Row)>,
    /// The first of the addresses that the sequence has not passed yet.
    next: usize,
    next_address: u64,
    /// The linker dropped the code of this sequence.
    is_dropped: bool,
    min_len: u64,
    line_base: i32,
    line_range: u8,
    opcode_base: u8,
}

impl<'a> Machine<'a> {
    fn new(header: &Header<'_>, addresses: &'a Addresses, work: &'a Work) -> Self {
        Self {
            addresses,
            work,
            found: vec![None; addresses.as_slice().len()],
            address: 0,
            line: 1,
            file: 1,
            column: 0,
            last: None,
            next: 0,
            next_address: 0,
            is_dropped: true,
            min_len: header.minimum_instruction_length().into(),
            line_base: header.line_base().into(),
            line_range: header.line_range(),
            opcode_base: header.opcode_base(),
        }
    }

    fn run(&mut self, header: &Header<'_>) -> Option<()> {
        let buffer = header.raw_program_buf();
        let lengths = header.standard_opcode_lengths();
        let mut cursor = Cursor::new(buffer.slice(), 0);
        if self.line_range == 0 {
            return None;
        }
        while !cursor.is_at_end() {
            let opcode = cursor.u8()?;
            if opcode >= self.opcode_base {
                let adjusted = opcode - self.opcode_base;
                self.advance(u64::from(adjusted / self.line_range));
                let by = self.line_base + i32::from(adjusted % self.line_range);
                self.line = self.line.wrapping_add_signed(by);
                self.row();
                continue;
            }
            match opcode {
                0 => self.extended(&mut cursor)?,
                1 => self.row(),
                2 => {
                    let by = cursor.uleb()?;
                    self.advance(by);
                }
                3 => {
                    let by = i32::try_from(cursor.sleb()?).ok()?;
                    self.line = self.line.wrapping_add_signed(by);
                }
                4 => self.file = cursor.uleb()?,
                5 => self.column = u32::try_from(cursor.uleb()?).unwrap_or_default(),
                6 | 7 | 10 | 11 => {}
                8 => self.advance(u64::from((255 - self.opcode_base) / self.line_range)),
                9 => self.address = self.address.wrapping_add(cursor.u16()?.into()),
                12 => cursor.skip_leb()?,
                _ => {
                    let count = lengths.slice().get(usize::from(opcode) - 1).copied()?;
                    for _ in 0..count {
                        cursor.skip_leb()?;
                    }
                }
            }
        }
        Some(())
    }

    fn extended(&mut self, cursor: &mut Cursor<'_>) -> Option<()> {
        let len = usize::try_from(cursor.uleb()?).ok()?;
        let start = cursor.at();
        if len > 0 {
            match cursor.u8()? {
                1 => self.end_sequence(),
                2 => {
                    let size = u8::try_from(len - 1).ok()?;
                    self.address = cursor.sized(size)?;
                    // Linkers leave zero, or all ones, in what they dropped.
                    let highest = u64::MAX >> (64 - 8 * u32::from(size));
                    self.is_dropped = self.address == 0 || self.address >= highest - 1;
                }
                _ => {}
            }
        }
        *cursor = Cursor::new(cursor.bytes(), start);
        cursor.skip(len)
    }

    #[inline]
    fn advance(&mut self, by: u64) {
        self.address = self.address.wrapping_add(by.wrapping_mul(self.min_len));
    }

    #[inline]
    fn row(&mut self) {
        let row = Row { file: self.file, line: self.line, column: self.column };
        match self.last {
            Some((start, _)) if self.address >= start => {
                if self.address > self.next_address {
                    self.pass();
                }
            }
            _ => self.seek(),
        }
        self.last = Some((self.address, row));
    }

    fn end_sequence(&mut self) {
        if self.last.is_some_and(|(start, _)| self.address >= start)
            && self.address > self.next_address
        {
            self.pass();
        }
        (self.address, self.line, self.file, self.column) = (0, 1, 1, 0);
        self.last = None;
        self.is_dropped = true;
    }

    /// The last row holds for the addresses up to the present one.
    fn pass(&mut self) {
        let sorted = self.addresses.as_slice();
        let Some((_, row)) = self.last else { return };
        while self.next < sorted.len()
            && sorted[self.next] < self.address
            && self.work.take(1).is_some()
        {
            // Of two sequences for the same code the first counts.
            self.found[self.next].get_or_insert(row);
            self.next += 1;
        }
        self.next_address = sorted.get(self.next).copied().unwrap_or(u64::MAX);
    }

    /// A sequence starts here.
    fn seek(&mut self) {
        let sorted = self.addresses.as_slice();
        self.next = if self.is_dropped { sorted.len() } else { self.addresses.below(self.address) };
        self.next_address = sorted.get(self.next).copied().unwrap_or(u64::MAX);
    }
}
