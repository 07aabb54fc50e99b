//! Records into a file, whole blocks at a time.

use crate::block::column::ColumnEncoder;
use crate::block::frame::{BlockHeader, BlockKind};
use crate::encode::Encoder;
use crate::end::{End, Outcome};
use crate::error::WriteError;
use crate::header;
use crate::index::{IndexBuilder, IndexEntry};
use crate::limits;
use crate::preface::Preface;
use crate::record::Record;
use crate::sink::RecordSink;
use std::fmt;
use std::io::Write;

/// How a spool is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WriterOptions {
    /// zstd level; zero stores columns as they are.
    pub compression_level: i32,
    /// A block is published when its columns hold this many bytes, and at 2 MiB at the latest.
    pub block_bytes: usize,
    /// Times are rounded down to multiples of this many nanoseconds, a power of two up to 2^20 (another number is rounded down
    /// to one). 1 keeps every time as it is; a coarser unit leaves out what a timer's jitter alone decides, most of what
    /// a sample of a known stack takes.
    pub time_unit_ns: u32,
}

impl Default for WriterOptions {
    /// Level 3, the smallest of 1 to 3 on real recordings (`docs/benchmarks.md`); 1 MiB blocks; exact times.
    fn default() -> Self {
        Self { compression_level: 3, block_bytes: 1 << 20, time_unit_ns: 1 }
    }
}

impl WriterOptions {
    /// Sets the compression level.
    #[must_use]
    pub fn compression_level(mut self, level: i32) -> Self {
        self.compression_level = level;
        self
    }

    /// Sets the block size.
    #[must_use]
    pub fn block_bytes(mut self, bytes: usize) -> Self {
        self.block_bytes = bytes;
        self
    }

    /// Sets the unit of time, in nanoseconds.
    #[must_use]
    pub fn time_unit_ns(mut self, unit: u32) -> Self {
        self.time_unit_ns = unit;
        self
    }

    /// The unit's logarithm.
    fn time_shift(&self) -> u32 {
        self.time_unit_ns.checked_ilog2().unwrap_or(0).min(limits::MAX_TIME_SHIFT)
    }
}

/// Writes a spool, once, from its beginning to its end.
///
/// What was published survives whatever happens later. After a failed write the spool ends at its last
/// whole block: the failure is returned once, and every later call answers [`WriteError::Ended`].
pub struct Writer<W> {
    out: W,
    encoder: Encoder,
    columns: ColumnEncoder,
    options: WriterOptions,
    index: IndexBuilder,
    sequence: u32,
    written: u64,
    failed: bool,
    /// Until the block has this many records, samples alone cannot fill it.
    look_at: u64,
    /// The payload being put together; kept for its memory.
    payload: Vec<u8>,
}

impl<W: Write> Writer<W> {
    /// Begins a spool on `out`, which must be empty.
    ///
    /// # Errors
    ///
    /// Those of `out`, and of the compressor's memory.
    pub fn new(mut out: W, options: WriterOptions) -> Result<Self, WriteError> {
        let columns = ColumnEncoder::new(options.compression_level)?;
        let header = header::encode();
        out.write_all(&header)?;
        out.flush()?;
        Ok(Self {
            out,
            encoder: Encoder::new(options.time_shift()),
            columns,
            options,
            index: IndexBuilder::default(),
            sequence: 0,
            written: header.len() as u64,
            failed: false,
            look_at: 0,
            payload: Vec::new(),
        })
    }

    /// Makes everything taken so far visible to readers, as one whole block. Without anything new it does nothing.
    ///
    /// # Errors
    ///
    /// Those of the output.
    pub fn publish(&mut self) -> Result<(), WriteError> {
        if self.failed {
            return Err(WriteError::Ended);
        }
        if self.encoder.is_empty() {
            return Ok(());
        }
        let start = self.encoder.start();
        let (first_ns, last_ns) = self.encoder.times().unwrap_or((start.base_ns, start.base_ns));
        let preface = Preface {
            start,
            first_ns,
            last_ns,
            records: self.encoder.records(),
            samples: self.encoder.samples(),
        };
        let mut payload = std::mem::take(&mut self.payload);
        payload.clear();
        preface.encode(&mut payload);
        self.columns.encode(self.encoder.columns(), &mut payload);
        self.index.push(&IndexEntry {
            offset: self.written,
            epoch: start.epoch,
            first_ns,
            last_ns,
            samples: preface.samples,
        });
        let written = self.write_block(BlockKind::RECORDS, &payload);
        self.payload = payload;
        self.encoder.restart();
        self.look_at = 0;
        written
    }

    /// Returns the bytes written so far.
    #[must_use]
    pub fn bytes_written(&self) -> u64 {
        self.written
    }

    /// Returns the number of the current epoch.
    #[must_use]
    pub fn epoch(&self) -> u32 {
        self.encoder.epoch()
    }

    /// Publishes, and ends the spool as finished. Returns the output and the bytes written to it.
    ///
    /// # Errors
    ///
    /// Those of the output; [`Unfinished`] gives it back.
    pub fn finish(self) -> Result<(W, u64), Unfinished<W>> {
        self.end(Outcome::Finished)
    }

    /// As [`finish`](Self::finish), but ends the spool as aborted: readable, but not what was asked for.
    ///
    /// # Errors
    ///
    /// Those of the output; [`Unfinished`] gives it back.
    pub fn abort(self) -> Result<(W, u64), Unfinished<W>> {
        self.end(Outcome::Aborted)
    }

    /// Returns the output as it is; the spool on it is torn.
    pub fn into_inner(self) -> W {
        self.out
    }

    fn end(mut self, outcome: Outcome) -> Result<(W, u64), Unfinished<W>> {
        match self.write_end(outcome) {
            Ok(()) => Ok((self.out, self.written)),
            Err(error) => Err(Unfinished { error, out: self.out }),
        }
    }

    fn write_end(&mut self, outcome: Outcome) -> Result<(), WriteError> {
        self.publish()?;
        let mut index_offset = 0;
        if let Some(index) = self.index.encode() {
            index_offset = self.written;
            self.write_block(BlockKind::INDEX, &index)?;
        }
        let end = End { outcome, index_offset, names_offset: 0 };
        self.write_block(BlockKind::END, &end.encode())
    }

    fn write_block(&mut self, kind: BlockKind, payload: &[u8]) -> Result<(), WriteError> {
        let header =
            BlockHeader::of(kind, self.sequence, payload).map_err(WriteError::Invalid)?.encode();
        let written = self
            .out
            .write_all(&header)
            .and_then(|()| self.out.write_all(payload))
            .and_then(|()| self.out.flush());
        if let Err(error) = written {
            self.failed = true;
            return Err(WriteError::Io(error));
        }
        self.sequence += 1;
        self.written += (header.len() + payload.len()) as u64;
        Ok(())
    }
}

/// A spool that could not be ended as asked, and what it was written to.
pub struct Unfinished<W> {
    /// Why.
    pub error: WriteError,
    /// The output.
    pub out: W,
}

impl<W> fmt::Debug for Unfinished<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Unfinished").field("error", &self.error).finish_non_exhaustive()
    }
}

impl<W> fmt::Display for Unfinished<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl<W> std::error::Error for Unfinished<W> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}

impl<W> fmt::Debug for Writer<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer").field("written", &self.written).finish_non_exhaustive()
    }
}

impl<W: Write> RecordSink for Writer<W> {
    type Error = WriteError;

    fn record(&mut self, record: &Record<'_>) -> Result<(), WriteError> {
        if self.failed {
            return Err(WriteError::Ended);
        }
        self.encoder.encode(record).map_err(WriteError::Invalid)?;
        if matches!(record, Record::Sample(_)) && self.encoder.records() < self.look_at {
            return Ok(());
        }
        let limit = self.options.block_bytes.min(LARGEST_BLOCK);
        let room = limit.saturating_sub(self.encoder.len());
        self.look_at = self.encoder.records() + (room / LONGEST_SAMPLE) as u64;
        if room == 0 {
            self.publish()?;
        }
        Ok(())
    }
}

/// More bytes than any sample takes in its columns.
const LONGEST_SAMPLE: usize = 64;

/// Blocks are published at this size at the latest: with the longest record after it, within the limits.
const LARGEST_BLOCK: usize = 2 << 20;
