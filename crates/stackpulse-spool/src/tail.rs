//! A spool followed while another process writes it.

use crate::block::frame::BLOCK_HEADER_LEN;
use crate::decode::Wanted;
use crate::error::{DamagedBlock, ReadError};
use crate::reading::Reading;
use crate::record::Record;
use crate::replay::State;
use crate::source::{BlockSource, Found};
use crate::symbols::SymbolTable;
use crate::tables::Tables;
use std::io::{Read, Seek, SeekFrom};

/// Reads the records of a spool as their blocks are published.
///
/// A tail never waits: [`next`](Self::next) answers `None` when everything published so far has been
/// delivered, and the caller decides when to ask again.
#[derive(Debug)]
pub struct Tail<F> {
    source: BlockSource<F>,
    reading: Reading,
    /// Where the latest block begins, and its header: they must stay as they are.
    latest: Option<(u64, [u8; BLOCK_HEADER_LEN])>,
}

impl<F: Read + Seek> Tail<F> {
    /// Opens a spool from its beginning. It may still be without any block, but its header must be there.
    ///
    /// # Errors
    ///
    /// [`ReadError::Empty`] while the writer has not begun; otherwise as [`Replay::open`](crate::Replay::open).
    pub fn open(mut file: F) -> Result<Self, ReadError> {
        file.seek(SeekFrom::Start(0)).map_err(|source| ReadError::Io { offset: 0, source })?;
        Ok(Self { source: BlockSource::open(file)?, reading: Reading::new(), latest: None })
    }

    /// Reads the next record; `None` if no more are published yet.
    ///
    /// # Errors
    ///
    /// [`ReadError::Replaced`] when the file became shorter than what was read of it, or the latest block is
    /// no longer what it was; otherwise as [`Replay::next`](crate::Replay::next). A file that was renamed over
    /// keeps being read under its old identity: whether the path still leads to it is for the caller to ask.
    #[expect(clippy::should_implement_trait, reason = "it lends what it returns")]
    pub fn next(&mut self) -> Result<Option<Record<'_>>, ReadError> {
        Ok(self.next_with_tables()?.map(|(record, _)| record))
    }

    /// As [`next`](Self::next), with what has been defined up to the record.
    ///
    /// # Errors
    ///
    /// As [`next`](Self::next).
    pub fn next_with_tables(&mut self) -> Result<Option<(Record<'_>, &Tables)>, ReadError> {
        if !self.step()? {
            return Ok(None);
        }
        Ok(Some((self.reading.record(), &self.reading.tables)))
    }

    /// Goes to the next record, if one is published.
    fn step(&mut self) -> Result<bool, ReadError> {
        while !self.reading.advance() {
            self.check_unchanged()?;
            let found = self.source.next()?;
            if let Found::Block { offset, header, .. } = &found {
                self.latest = Some((*offset, header.encode()));
            }
            if !self.reading.take(found, Wanted::Everything)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns what has been defined in the current epoch, as of the last record.
    #[must_use]
    pub fn tables(&self) -> &Tables {
        &self.reading.tables
    }

    /// Returns how far the spool goes as of now; [`State::Torn`] while it is still being written.
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

    /// Takes the newest names that were met on the way.
    pub fn take_names(&mut self) -> Option<SymbolTable> {
        self.reading.names.take()
    }

    /// Whether what was read is still there; leaves the file where reading goes on.
    fn check_unchanged(&mut self) -> Result<(), ReadError> {
        let position = self.source.position();
        let failed = |source| ReadError::Io { offset: position, source };
        let file = self.source.input_mut();
        let len = file.seek(SeekFrom::End(0)).map_err(failed)?;
        let replaced = ReadError::Replaced { offset: position };
        if len < position {
            return Err(replaced);
        }
        if let Some((offset, header)) = self.latest {
            let mut found = [0; BLOCK_HEADER_LEN];
            file.seek(SeekFrom::Start(offset)).map_err(failed)?;
            file.read_exact(&mut found).map_err(failed)?;
            if found != header {
                return Err(replaced);
            }
        }
        file.seek(SeekFrom::Start(position)).map_err(failed)?;
        Ok(())
    }
}
