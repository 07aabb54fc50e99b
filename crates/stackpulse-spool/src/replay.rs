//! A spool read once, from its beginning to its end.

use crate::decode::Wanted;
use crate::error::{DamagedBlock, ReadError};
use crate::reading::Reading;
use crate::record::Record;
use crate::source::BlockSource;
use crate::symbols::SymbolTable;
use crate::tables::Tables;
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
        Ok(Self { source: BlockSource::open(input)?, reading: Reading::new() })
    }

    /// Reads the next record; `None` at the end of the file.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or a block of an unknown kind may not be skipped.
    // Named for what it is; an iterator could not lend its items.
    #[expect(clippy::should_implement_trait, reason = "it lends what it returns")]
    #[inline]
    pub fn next(&mut self) -> Result<Option<Record<'_>>, ReadError> {
        Ok(self.next_with_tables()?.map(|(record, _)| record))
    }

    /// As [`next`](Self::next), with what has been defined up to the record: a definition's id is known from
    /// [`Tables::counts`] even where damage took earlier ones along.
    ///
    /// # Errors
    ///
    /// As [`next`](Self::next).
    #[inline]
    pub fn next_with_tables(&mut self) -> Result<Option<(Record<'_>, &Tables)>, ReadError> {
        while !self.reading.advance() {
            let found = self.source.next()?;
            if !self.reading.take(found, Wanted::Everything)? {
                return Ok(None);
            }
        }
        Ok(Some((self.reading.record(), &self.reading.tables)))
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
