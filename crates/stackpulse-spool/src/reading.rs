//! What all readers do with the blocks they find: one decoder, one account of damage.

use crate::block::frame::{BlockHeader, BlockKind};
use crate::decode::{Decoder, Step, Wanted};
use crate::end::{End, Outcome};
use crate::error::{Damage, DamagedBlock, LostWith, ReadError};
use crate::header::HEADER_LEN;
use crate::limits::{MAX_DAMAGED, MAX_RECORDS_RAW};
use crate::order::{Order, Place};
use crate::preface::Preface;
use crate::record::Record;
use crate::replay::State;
use crate::scan::Unread;
use crate::source::Found;
use crate::symbols::SymbolTable;
use crate::tables::{Counts, Tables};
use crate::varint::Cursor;
use std::ops::Range;

/// The state of a reader between blocks and within one.
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
    order: Order,
    /// Whether records may have been in what could not be read.
    may_miss: bool,
}

/// The block being decoded.
#[derive(Clone, Copy, Debug)]
struct Open {
    header: BlockHeader,
    offset: u64,
    preface: Preface,
    samples_met: u64,
    wanted: Wanted,
}

impl Reading {
    pub(crate) fn new() -> Self {
        Self {
            decoder: Decoder::new(),
            tables: Tables::default(),
            damage: Vec::new(),
            left_out: 0,
            names: None,
            outcome: None,
            block: None,
            whole_until: HEADER_LEN as u64,
            uncounted: None,
            order: Order::Next(0),
            may_miss: false,
        }
    }

    pub(crate) fn state(&self) -> State {
        match self.outcome {
            Some(Outcome::Finished) => State::Finished,
            Some(Outcome::Aborted) => State::Aborted,
            None => State::Torn { offset: self.whole_until },
        }
    }

    /// Gets ready for a block that is not the next one; what was defined is forgotten.
    pub(crate) fn jump(&mut self) {
        self.block = None;
        self.outcome = None;
        self.uncounted = None;
        self.may_miss = false;
        self.tables.start_epoch(0);
        self.order = Order::Any;
    }

    /// Goes to the next record of the open block; whether there is one.
    pub(crate) fn advance(&mut self) -> bool {
        while let Some(open) = &mut self.block {
            match self.decoder.step(&mut self.tables) {
                Ok(Step::Record) => {
                    open.samples_met += u64::from(self.decoder.is_at_sample());
                    return true;
                }
                Ok(Step::LeftOut) => {
                    open.samples_met += u64::from(self.decoder.is_at_sample());
                    // Who wants definitions only does not miss what refers to lost ones.
                    let missed = u64::from(open.wanted == Wanted::Everything);
                    self.left_out = self.left_out.saturating_add(missed);
                }
                Ok(Step::Skipped) => {}
                Ok(Step::End) => self.block = None,
                Err(damage) => {
                    let open = *open;
                    self.block = None;
                    let mut block = Damaged::of(open.offset, &open.header, damage);
                    block.lose(&open.preface, open.samples_met);
                    self.note(block);
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
    pub(crate) fn take(&mut self, found: Found<'_>, wanted: Wanted) -> Result<bool, ReadError> {
        match found {
            Found::Block { offset, header, payload } => {
                self.whole_until = offset + header.block_len();
                if self.follows(offset, &header) {
                    self.block(offset, header, payload, wanted)?;
                }
                Ok(true)
            }
            Found::Damaged { offset, len, damage, header, payload } => {
                let mut block = Damaged { offset, len, damage, header, lost: LostWith::default() };
                match header {
                    Some(header) if !self.follows(offset, &header) => return Ok(true),
                    Some(header) if header.kind == BlockKind::RECORDS => block.hint(payload),
                    Some(_) => {}
                    None => self.order.pass_unknown(),
                }
                self.note(block);
                Ok(true)
            }
            Found::Partial | Found::End => Ok(false),
        }
    }

    /// Gets ready for a block whose place in the file is known to be right.
    pub(crate) fn go_on_anywhere(&mut self) {
        if self.order != Order::Any {
            self.order = Order::NotBefore(0);
        }
    }

    /// Notes what a look through the whole file found: [`pass_over`](Self::pass_over) tells when the reader comes by.
    pub(crate) fn note_unread(&mut self, unread: &Unread) {
        let &Unread { offset, len, damage, header } = unread;
        self.insert(&Damaged { offset, len, damage, header, lost: LostWith::default() });
    }

    /// Notes a block that is not what it must be.
    pub(crate) fn note_block(&mut self, offset: u64, header: &BlockHeader, damage: Damage) {
        self.note(Damaged::of(offset, header, damage));
    }

    /// Goes from a block to one that is not the next in the file: what was noted between them may have held blocks
    /// and definitions.
    pub(crate) fn pass_over(&mut self, offsets: Range<u64>) {
        let at = self.damage.partition_point(|known| known.offset < offsets.start);
        let between = self.damage.get(at..).unwrap_or_default().iter().take_while(|known| {
            known.offset < offsets.end || known.offset == offsets.end && known.len == 0
        });
        let held = between.clone().position(may_have_held_records);
        if let Some(first) = held {
            self.uncounted = Some(at + first);
            self.may_miss = true;
        }
    }

    /// Whether a block may come here; notes it where not, and where others are missing before it.
    fn follows(&mut self, offset: u64, header: &BlockHeader) -> bool {
        match self.order.place(header.sequence) {
            Place::Here => {}
            Place::AfterMissing => self.note(Damaged::missing(offset)),
            Place::Again => {
                self.note(Damaged::of(offset, header, Damage::BadSequence));
                return false;
            }
        }
        true
    }

    fn block(
        &mut self,
        offset: u64,
        header: BlockHeader,
        payload: &[u8],
        wanted: Wanted,
    ) -> Result<(), ReadError> {
        match header.kind {
            BlockKind::RECORDS => self.open_records(offset, header, payload, wanted),
            BlockKind::END => match End::decode(payload) {
                Ok(end) => self.outcome = Some(end.outcome),
                Err(damage) => self.note(Damaged::of(offset, &header, damage)),
            },
            BlockKind::NAMES => match SymbolTable::decode(payload) {
                Ok(names) => self.names = Some(names),
                Err(damage) => self.note(Damaged::of(offset, &header, damage)),
            },
            BlockKind::INDEX => {}
            _ if header.skippable => {}
            kind => return Err(ReadError::UnknownBlock { offset, kind: kind.0 }),
        }
        Ok(())
    }

    fn open_records(&mut self, offset: u64, header: BlockHeader, payload: &[u8], wanted: Wanted) {
        let mut damaged = Damaged::of(offset, &header, Damage::AfterEnd);
        damaged.hint(payload);
        if self.outcome.is_some() {
            return self.note(damaged);
        }
        let preface = match self.decoder.start(payload, wanted) {
            Ok(preface) => preface,
            Err(damage) => return self.note(Damaged { damage, ..damaged }),
        };
        let Some(missing) = self.missing_before(&preface) else {
            return self.note(Damaged { damage: Damage::BadSequence, ..damaged });
        };
        if let Some(damage) = self.uncounted.take().and_then(|at| self.damage.get_mut(at)) {
            damage.lost.definitions = missing;
        }
        let start = preface.start;
        if start.epoch != self.tables.epoch() {
            self.tables.start_epoch(start.epoch);
        }
        self.tables.skip_to(&start.counts);
        if self.order == Order::Any {
            self.order = Order::Next(header.sequence.saturating_add(1));
        }
        self.block = Some(Open { header, offset, preface, samples_met: 0, wanted });
    }

    /// How many definitions the block builds on that were not read; `None` if it cannot come here.
    fn missing_before(&self, preface: &Preface) -> Option<u64> {
        let start = &preface.start;
        let same_epoch = start.epoch == self.tables.epoch();
        let missing = match start.epoch.checked_sub(self.tables.epoch())? {
            0 => self.tables.counts().until(&start.counts)?,
            _ => Counts::default().until(&start.counts)?,
        };
        // Definitions may only be missing where something was damaged or passed over.
        let whole = missing == 0 && same_epoch;
        (whole || self.may_miss || self.order == Order::Any).then_some(missing)
    }

    /// Notes damage where the reader is.
    fn note(&mut self, block: Damaged) {
        let at = self.insert(&block);
        if self.damage.get(at).is_some_and(may_have_held_records) {
            self.may_miss = true;
            self.uncounted = Some(at);
        }
    }

    /// Keeps damage in the order of the file; returns its place. A reader that goes back meets it again: it is kept once.
    fn insert(&mut self, block: &Damaged) -> usize {
        let place = |known: &DamagedBlock| (known.offset, known.len > 0);
        match self.damage.binary_search_by_key(&(block.offset, block.len > 0), place) {
            Ok(at) => at,
            Err(at) if self.damage.len() < MAX_DAMAGED => {
                self.damage.insert(at, block.told());
                self.uncounted = self.uncounted.map(|known| known + usize::from(known >= at));
                at
            }
            Err(at) => {
                let at = at.saturating_sub(1);
                if let Some(before) = self.damage.get_mut(at) {
                    block.join(before);
                }
                at
            }
        }
    }
}

/// Whether records may have been lost with it.
fn may_have_held_records(block: &DamagedBlock) -> bool {
    block.kind.is_none_or(|kind| kind == BlockKind::RECORDS.0)
}

/// Damage being described.
#[derive(Clone, Copy, Debug)]
struct Damaged {
    offset: u64,
    len: u64,
    damage: Damage,
    header: Option<BlockHeader>,
    lost: LostWith,
}

impl Damaged {
    fn of(offset: u64, header: &BlockHeader, damage: Damage) -> Self {
        let lost = LostWith::default();
        Self { offset, len: header.block_len(), damage, header: Some(*header), lost }
    }

    /// Blocks that must have been before this offset.
    fn missing(offset: u64) -> Self {
        let lost = LostWith::default();
        Self { offset, len: 0, damage: Damage::MissingBlocks, header: None, lost }
    }

    fn told(&self) -> DamagedBlock {
        DamagedBlock {
            offset: self.offset,
            len: self.len,
            damage: self.damage,
            kind: self.header.map(|header| header.kind.0),
            lost: self.lost,
        }
    }

    /// Adds to what is told already, unless that reaches this far.
    fn join(&self, before: &mut DamagedBlock) {
        let end = before.offset.saturating_add(before.len);
        if self.offset >= end {
            before.len = self.offset.saturating_add(self.len).saturating_sub(before.offset);
            before.lost.samples = before.lost.samples.saturating_add(self.lost.samples);
        }
    }

    /// What a block of records says it has, of which some samples were met before the damage.
    fn lose(&mut self, preface: &Preface, samples_met: u64) {
        // A sample takes at least one byte of each of its columns: no more are believed.
        let samples = preface.samples.min(MAX_RECORDS_RAW as u64);
        self.lost.samples = samples.saturating_sub(samples_met);
        self.lost.span_ns =
            (preface.first_ns <= preface.last_ns).then_some((preface.first_ns, preface.last_ns));
    }

    /// As [`lose`](Self::lose), from bytes that may be wrong themselves.
    fn hint(&mut self, payload: &[u8]) {
        if let Ok(preface) = Preface::decode(&mut Cursor::new(payload)) {
            self.lose(&preface, 0);
        }
    }
}
