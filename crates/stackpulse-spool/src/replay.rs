//! A spool read once, from its beginning to its end.

use crate::block::frame::BlockKind;
use crate::decode::{Decoder, Preface, Step};
use crate::end::{End, Outcome};
use crate::error::{Damage, DamagedBlock, LostWith, ReadError};
use crate::limits::MAX_RECORDS_RAW;
use crate::record::Record;
use crate::source::{BlockSource, Found};
use crate::symbols::SymbolTable;
use crate::tables::{Counts, Tables};
use crate::varint::Cursor;
use std::io::Read;

/// How far a spool goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// The recording ended as it should.
    Finished,
    /// The recording ended early, and says so.
    Aborted,
    /// The file ends without an end: the recorder was killed, or still runs, or the file was cut.
    Torn {
        /// Where the last whole block ends.
        offset: u64,
    },
}

/// Reads every record of a spool in order.
///
/// Memory is needed for the definitions of one epoch and for one block, not for samples. Damage does not end
/// the reading: it is noted in [`damage`](Self::damage), and what does not depend on it is delivered.
#[derive(Debug)]
pub struct Replay<R> {
    source: BlockSource<R>,
    reading: Reading,
}

impl<R: Read> Replay<R> {
    /// Opens a spool that begins where `input` stands.
    ///
    /// # Errors
    ///
    /// When the file is no spool, or of a newer version, or cannot be read.
    pub fn open(input: R) -> Result<Self, ReadError> {
        Ok(Self { source: BlockSource::open(input)?, reading: Reading::new()? })
    }

    /// Reads the next record; `None` at the end of the file.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or a block of an unknown kind may not be skipped.
    // Named for what it is; an iterator could not lend its items.
    #[expect(clippy::should_implement_trait, reason = "it lends what it returns")]
    pub fn next(&mut self) -> Result<Option<Record<'_>>, ReadError> {
        loop {
            if self.reading.advance() {
                return Ok(Some(self.reading.record()));
            }
            let found = self.source.next()?;
            if !self.reading.take(found)? {
                return Ok(None);
            }
        }
    }

    /// Returns what has been defined in the current epoch, as of the last record.
    #[must_use]
    pub fn tables(&self) -> &Tables {
        &self.reading.tables
    }

    /// Returns how far the spool goes; final once [`next`](Self::next) has returned `None`.
    #[must_use]
    pub fn state(&self) -> State {
        self.reading.state()
    }

    /// Returns what could not be read so far.
    #[must_use]
    pub fn damage(&self) -> &[DamagedBlock] {
        &self.reading.damage
    }

    /// Returns how many samples and other records were left out because they refer to what is damaged.
    #[must_use]
    pub fn left_out(&self) -> u64 {
        self.reading.left_out
    }

    /// Takes the names that were met on the way; the newest, once the end has been reached.
    pub fn take_names(&mut self) -> Option<SymbolTable> {
        self.reading.names.take()
    }
}

/// What all readers do with the blocks they find.
#[derive(Debug)]
pub(crate) struct Reading {
    decoder: Decoder,
    pub(crate) tables: Tables,
    pub(crate) damage: Vec<DamagedBlock>,
    pub(crate) left_out: u64,
    pub(crate) names: Option<SymbolTable>,
    outcome: Option<Outcome>,
    block: Option<Open>,
    whole_until: u64,
    /// Index in `damage` of the latest, until the next block tells what definitions it cost.
    uncounted: Option<usize>,
}

/// The block being decoded.
#[derive(Clone, Copy, Debug)]
struct Open {
    offset: u64,
    len: u64,
    /// Samples that it says it has, and those delivered so far.
    samples: u64,
    delivered: u64,
}

impl Reading {
    pub(crate) fn new() -> Result<Self, ReadError> {
        let decoder = Decoder::new().map_err(|source| ReadError::Io { offset: 0, source })?;
        Ok(Self {
            decoder,
            tables: Tables::default(),
            damage: Vec::new(),
            left_out: 0,
            names: None,
            outcome: None,
            block: None,
            whole_until: 0,
            uncounted: None,
        })
    }

    pub(crate) fn state(&self) -> State {
        match self.outcome {
            Some(Outcome::Finished) => State::Finished,
            Some(Outcome::Aborted) => State::Aborted,
            None => State::Torn { offset: self.whole_until },
        }
    }

    /// Goes to the next record of the open block; whether there is one.
    pub(crate) fn advance(&mut self) -> bool {
        while let Some(open) = &mut self.block {
            match self.decoder.step(&mut self.tables) {
                Ok(Step::Record) => {
                    open.delivered += u64::from(self.decoder.is_at_sample());
                    return true;
                }
                Ok(Step::LeftOut) => {
                    open.delivered += u64::from(self.decoder.is_at_sample());
                    self.left_out = self.left_out.saturating_add(1);
                }
                Ok(Step::Skipped) => {}
                Ok(Step::End) => self.block = None,
                Err(damage) => {
                    let open = *open;
                    self.block = None;
                    let lost = open.samples.saturating_sub(open.delivered);
                    self.note(open.offset, open.len, damage, Some(BlockKind::RECORDS.0), lost);
                }
            }
        }
        false
    }

    /// The record that [`advance`](Self::advance) went to.
    pub(crate) fn record(&self) -> Record<'_> {
        self.decoder.record()
    }

    /// Takes what was found in the file; whether there may be more.
    pub(crate) fn take(&mut self, found: Found<'_>) -> Result<bool, ReadError> {
        match found {
            Found::Block { offset, header, payload } => {
                let end = offset + header.block_len();
                self.whole_until = end;
                match header.kind {
                    BlockKind::RECORDS => self.open_records(offset, header.block_len(), payload),
                    BlockKind::END => match End::decode(payload) {
                        Ok(end) => self.outcome = Some(end.outcome),
                        Err(damage) => {
                            self.note(offset, header.block_len(), damage, Some(header.kind.0), 0);
                        }
                    },
                    BlockKind::NAMES => match SymbolTable::decode(payload) {
                        Ok(names) => self.names = Some(names),
                        Err(damage) => {
                            self.note(offset, header.block_len(), damage, Some(header.kind.0), 0);
                        }
                    },
                    BlockKind::INDEX => {}
                    _ if header.skippable => {}
                    kind => return Err(ReadError::UnknownBlock { offset, kind: kind.0 }),
                }
                Ok(true)
            }
            Found::Damaged { offset, len, damage, kind, payload } => {
                // The checksum is wrong, so the preface is only a hint of what was lost.
                let samples = match kind {
                    Some(kind) if kind == BlockKind::RECORDS.0 => hinted_samples(payload),
                    _ => 0,
                };
                self.note(offset, len, damage, kind, samples);
                Ok(true)
            }
            Found::Partial | Found::End => Ok(false),
        }
    }

    fn open_records(&mut self, offset: u64, len: u64, payload: &[u8]) {
        if self.outcome.is_some() {
            self.note(offset, len, Damage::AfterEnd, Some(BlockKind::RECORDS.0), 0);
            return;
        }
        let preface = match self.decoder.start(payload) {
            Ok(preface) => preface,
            Err(damage) => {
                self.note(offset, len, damage, Some(BlockKind::RECORDS.0), hinted_samples(payload));
                return;
            }
        };
        let start = preface.start;
        let follows = if start.epoch == self.tables.epoch() {
            self.tables.counts().until(&start.counts)
        } else if start.epoch > self.tables.epoch() {
            Counts::default().until(&start.counts)
        } else {
            None
        };
        // Definitions may only be missing where something was damaged.
        let follows = follows.filter(|&missing| {
            (missing == 0 && start.epoch == self.tables.epoch()) || !self.damage.is_empty()
        });
        let Some(missing) = follows else {
            self.note(
                offset,
                len,
                Damage::BadSequence,
                Some(BlockKind::RECORDS.0),
                preface.samples,
            );
            return;
        };
        if let Some(damage) = self.uncounted.take().and_then(|at| self.damage.get_mut(at)) {
            damage.lost.definitions = missing;
        }
        if start.epoch != self.tables.epoch() {
            self.tables.start_epoch(start.epoch);
        }
        self.tables.skip_to(&start.counts);
        self.block = Some(Open { offset, len, samples: preface.samples, delivered: 0 });
    }

    fn note(&mut self, offset: u64, len: u64, damage: Damage, kind: Option<u8>, samples: u64) {
        let lost = LostWith { samples, definitions: 0 };
        self.uncounted = Some(self.damage.len());
        self.damage.push(DamagedBlock { offset, len, damage, kind, lost });
    }
}

/// How many samples a block says it has whose bytes cannot be trusted: believed only as far as its size allows.
fn hinted_samples(payload: &[u8]) -> u64 {
    let preface = Preface::decode(&mut Cursor::new(payload));
    preface.map_or(0, |preface| preface.samples.min(MAX_RECORDS_RAW as u64))
}
