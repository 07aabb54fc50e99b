//! A spool read from any moment on.

use crate::append::read_end;
use crate::block::frame::{BLOCK_HEADER_LEN, BlockHeader, BlockKind};
use crate::decode::Wanted;
use crate::encode::time_of;
use crate::end::Outcome;
use crate::error::{Damage, DamagedBlock, ReadError};
use crate::header::{self, HEADER_LEN};
use crate::index::{Index, IndexEntry};
use crate::reading::Reading;
use crate::record::Record;
use crate::replay::State;
use crate::scan::{self, Unread, read_at};
use crate::source::Found;
use crate::symbols::SymbolTable;
use crate::tables::Tables;
use std::io::{Read, Seek, SeekFrom};

/// Reads a spool as it was when it was opened, from any moment on.
///
/// Opening reads the index, or, where there is none, the header of each block; blocks are read when they are needed.
#[derive(Debug)]
pub struct Snapshot<F> {
    file: F,
    len: u64,
    blocks: Vec<IndexEntry>,
    outcome: Option<Outcome>,
    whole_until: u64,
    names_offset: u64,
    is_indexed: bool,
    reading: Reading,
    /// Index in `blocks` of the next to be read.
    next: usize,
    /// Records up to the first one of this time are passed over.
    from_ns: Option<u64>,
    payload: Vec<u8>,
}

impl<F: Read + Seek> Snapshot<F> {
    /// Opens a spool; it stands at its first record.
    ///
    /// # Errors
    ///
    /// When the file is no spool, or of a newer version, or cannot be read or sought in.
    pub fn open(mut file: F) -> Result<Self, ReadError> {
        let mut first = [0; HEADER_LEN];
        let have = read_at(&mut file, 0, &mut first)?;
        header::decode(&first[..have])?;
        let failed = |source| ReadError::Io { offset: 0, source };
        let len = file.seek(SeekFrom::End(0)).map_err(failed)?;
        let mut snapshot = Self {
            file,
            len,
            blocks: Vec::new(),
            outcome: None,
            whole_until: len,
            names_offset: 0,
            is_indexed: false,
            reading: Reading::new(),
            next: 0,
            from_ns: None,
            payload: Vec::new(),
        };
        if !snapshot.open_indexed()? {
            snapshot.open_scanned()?;
        }
        Ok(snapshot)
    }

    /// Goes to the first record, in the file's order, that is not earlier than `time_ns`.
    ///
    /// What was defined before it in its epoch is in [`tables`](Self::tables) once it has been read.
    ///
    /// # Errors
    ///
    /// When the file cannot be read.
    pub fn seek(&mut self, time_ns: u64) -> Result<(), ReadError> {
        self.from_ns = Some(time_ns);
        self.reading.left_out = 0;
        let Some(target) = self.blocks.iter().position(|block| block.last_ns >= time_ns) else {
            self.reading.jump();
            self.next = self.blocks.len();
            return Ok(());
        };
        let epoch = self.blocks.get(target).map_or(0, |block| block.epoch);
        // The block before the first of the epoch may hold the epoch's beginning.
        let before = self.blocks.get(..target).unwrap_or_default();
        let start = before.iter().rposition(|block| block.epoch < epoch).unwrap_or_default();
        if self.next > target || self.next <= start {
            self.reading.jump();
            self.next = start;
        }
        while self.reading.advance() {}
        while self.next < target {
            self.read_block(Wanted::Definitions)?;
            while self.reading.advance() {}
        }
        Ok(())
    }

    /// Reads the next record; `None` at the end.
    ///
    /// # Errors
    ///
    /// When the file cannot be read; [`ReadError::Replaced`] when it has become shorter since it was opened.
    #[expect(clippy::should_implement_trait, reason = "it lends what it returns")]
    pub fn next(&mut self) -> Result<Option<Record<'_>>, ReadError> {
        loop {
            while !self.reading.advance() {
                if self.next >= self.blocks.len() {
                    return Ok(None);
                }
                self.read_block(Wanted::Everything)?;
            }
            let Some(from_ns) = self.from_ns else { break };
            if time_of(&self.reading.record()).is_some_and(|time_ns| time_ns >= from_ns) {
                self.from_ns = None;
                break;
            }
        }
        Ok(Some(self.reading.record()))
    }

    /// Reads the newest names stored in the spool, if there are any.
    ///
    /// # Errors
    ///
    /// When the file cannot be read. Names that are damaged are noted in [`damage`](Self::damage).
    pub fn names(&mut self) -> Result<Option<SymbolTable>, ReadError> {
        if self.names_offset == 0 {
            return Ok(None);
        }
        let offset = self.names_offset;
        match load(&mut self.file, offset, self.len, &mut self.payload)? {
            Found::Block { header, payload, .. } if header.kind == BlockKind::NAMES => {
                match SymbolTable::decode(payload) {
                    Ok(names) => return Ok(Some(names)),
                    Err(damage) => self.reading.note_block(offset, &header, damage),
                }
            }
            Found::Damaged { len, damage, header, .. } => {
                self.reading.note_unread(&Unread { offset, len, damage, header });
            }
            _ => {
                let (len, damage) = (0, Damage::BadBlockHeader);
                self.reading.note_unread(&Unread { offset, len, damage, header: None });
            }
        }
        Ok(None)
    }

    /// Returns what has been defined in the current epoch, as of the last record.
    #[must_use]
    pub fn tables(&self) -> &Tables {
        &self.reading.tables
    }

    /// Returns how far the spool goes.
    #[must_use]
    pub fn state(&self) -> State {
        match self.outcome {
            Some(Outcome::Finished) => State::Finished,
            Some(Outcome::Aborted) => State::Aborted,
            None => State::Torn { offset: self.whole_until },
        }
    }

    /// Returns what could not be read so far.
    #[must_use]
    pub fn damage(&self) -> &[DamagedBlock] {
        &self.reading.damage
    }

    /// Returns how many records were left out since the last seek because they refer to what is damaged.
    #[must_use]
    pub fn left_out(&self) -> u64 {
        self.reading.left_out
    }

    /// Returns how many samples the blocks say they hold.
    #[must_use]
    pub fn samples(&self) -> u64 {
        self.blocks.iter().fold(0, |sum, block| sum.saturating_add(block.samples))
    }

    /// Returns the earliest and the latest time of all records, nanoseconds; `None` without records.
    #[must_use]
    pub fn span_ns(&self) -> Option<(u64, u64)> {
        let first = self.blocks.iter().map(|block| block.first_ns).min()?;
        let last = self.blocks.iter().map(|block| block.last_ns).max()?;
        Some((first, last))
    }

    /// Whether the file's own index was used; otherwise its blocks were looked for.
    #[must_use]
    pub fn is_indexed(&self) -> bool {
        self.is_indexed
    }

    /// Reads end and index; whether both are there and sound.
    fn open_indexed(&mut self) -> Result<bool, ReadError> {
        let Some((_, end)) = read_end(&mut self.file, self.len)? else {
            return Ok(false);
        };
        let found = load(&mut self.file, end.index_offset, self.len, &mut self.payload)?;
        let Found::Block { header, payload, .. } = found else { return Ok(false) };
        if header.kind != BlockKind::INDEX {
            return Ok(false);
        }
        let Ok(index) = Index::decode(payload) else { return Ok(false) };
        self.blocks = index.into_entries();
        self.outcome = Some(end.outcome);
        self.names_offset = end.names_offset;
        self.is_indexed = true;
        Ok(true)
    }

    fn open_scanned(&mut self) -> Result<(), ReadError> {
        let scan = scan::scan(&mut self.file, self.len)?;
        self.blocks = scan.entries;
        self.outcome = scan.outcome;
        self.names_offset = scan.names_offset;
        self.whole_until = scan.whole_until;
        for unread in scan.damaged {
            self.reading.note_unread(&unread);
        }
        Ok(())
    }

    /// Reads the next block of records.
    fn read_block(&mut self, wanted: Wanted) -> Result<(), ReadError> {
        let Some(&IndexEntry { offset, .. }) = self.blocks.get(self.next) else { return Ok(()) };
        let before = self.next.checked_sub(1).and_then(|before| self.blocks.get(before));
        self.reading.pass_over(before.map_or(0, |before| before.offset)..offset);
        self.reading.go_on_anywhere();
        self.next += 1;
        let found = load(&mut self.file, offset, self.len, &mut self.payload)?;
        match &found {
            Found::Block { header, .. } if header.kind != BlockKind::RECORDS => {
                self.reading.note_block(offset, header, Damage::BadSequence);
            }
            Found::Partial | Found::End => {
                self.reading.take(Found::nothing_at(offset), wanted)?;
            }
            _ => {
                self.reading.take(found, wanted)?;
            }
        }
        Ok(())
    }
}

/// Reads the block at an offset of a file of `len` bytes.
fn load<'a, F: Read + Seek>(
    file: &mut F,
    offset: u64,
    len: u64,
    bytes: &'a mut Vec<u8>,
) -> Result<Found<'a>, ReadError> {
    let rest = len.saturating_sub(offset);
    if rest < BLOCK_HEADER_LEN as u64 {
        return Ok(Found::End);
    }
    let mut first = [0; BLOCK_HEADER_LEN];
    if read_at(file, offset, &mut first)? < first.len() {
        return Err(ReadError::Replaced { offset });
    }
    let header = match BlockHeader::decode(&first) {
        Ok(header) => header,
        Err(damage) => {
            return Ok(Found::Damaged { offset, len: 0, damage, header: None, payload: &[] });
        }
    };
    if rest < header.block_len() {
        return Ok(Found::Partial);
    }
    bytes.clear();
    bytes.resize(header.payload_len as usize, 0);
    if read_at(file, offset + BLOCK_HEADER_LEN as u64, bytes)? < bytes.len() {
        return Err(ReadError::Replaced { offset });
    }
    Ok(Found::checked(offset, header, bytes))
}
