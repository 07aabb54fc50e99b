//! A block's columns: bytes of one sort kept together, each compressed if that makes it smaller.

use crate::error::Damage;
use crate::limits::MAX_NAMES_RAW;
use crate::varint::{self, Cursor};
use std::io;
use zstd::bulk::{Compressor, Decompressor};

/// How a column's bytes are stored.
const RAW: u8 = 0;
const ZSTD: u8 = 1;

/// Columns shorter than this are not worth a compressed frame's own header.
const LEAST_COMPRESSED: usize = 24;

/// Puts the columns of block after block together; its buffers are used again for each.
pub(crate) struct ColumnEncoder {
    /// None stores columns as they are.
    compressor: Option<Compressor<'static>>,
    /// One column, compressed.
    compressed: Vec<u8>,
    /// The bytes of all columns so far.
    data: Vec<u8>,
}

impl ColumnEncoder {
    /// Makes one for a zstd level; zero stores columns as they are.
    pub(crate) fn new(level: i32) -> io::Result<Self> {
        let compressor = match level {
            0 => None,
            level => Some(Compressor::new(level)?),
        };
        Ok(Self { compressor, compressed: Vec::new(), data: Vec::new() })
    }

    /// Appends a table of the columns, then their bytes.
    pub(crate) fn encode(&mut self, columns: &[Vec<u8>], out: &mut Vec<u8>) {
        self.data.clear();
        varint::put(out, columns.len() as u64);
        for column in columns {
            if self.compress(column) {
                out.push(ZSTD);
                varint::put(out, column.len() as u64);
                varint::put(out, self.compressed.len() as u64);
                self.data.extend_from_slice(&self.compressed);
            } else {
                out.push(RAW);
                varint::put(out, column.len() as u64);
                self.data.extend_from_slice(column);
            }
        }
        out.extend_from_slice(&self.data);
    }

    /// Compresses a column; whether that makes it smaller.
    fn compress(&mut self, column: &[u8]) -> bool {
        let Some(compressor) = &mut self.compressor else { return false };
        if column.len() < LEAST_COMPRESSED {
            return false;
        }
        self.compressed.clear();
        self.compressed.reserve(zstd::zstd_safe::compress_bound(column.len()));
        let len = compressor.compress_to_buffer(column, &mut self.compressed);
        len.is_ok_and(|len| len < column.len())
    }
}

/// What is wanted of a block's columns.
pub(crate) struct Selection<P> {
    /// Largest sum of all columns, decompressed, in bytes.
    pub(crate) limit: usize,
    /// Whether a column is wanted; others are left empty.
    pub(crate) is_wanted: P,
}

/// Reads what [`ColumnEncoder::encode`] wrote into as many buffers as there must be columns, as far as they are selected.
///
/// The buffers keep their memory for the next block, up to about the limit in all.
pub(crate) fn decode(
    cursor: &mut Cursor<'_>,
    decompressor: &mut Option<Decompressor<'static>>,
    columns: &mut [Vec<u8>],
    selection: &Selection<impl Fn(usize) -> bool>,
) -> Result<(), Damage> {
    if cursor.number()? != columns.len() as u64 {
        return Err(Damage::BadRecord);
    }
    let mut table = [(RAW, 0usize, 0usize); MOST_COLUMNS];
    let table = table.get_mut(..columns.len()).ok_or(Damage::OverLimit)?;
    let mut sum = 0usize;
    for entry in &mut *table {
        let encoding = cursor.byte()?;
        let raw_len = length(cursor.number()?)?;
        let stored_len = match encoding {
            RAW => raw_len,
            ZSTD => length(cursor.number()?)?,
            _ => return Err(Damage::BadTag),
        };
        sum += raw_len;
        *entry = (encoding, raw_len, stored_len);
    }
    if sum > selection.limit {
        return Err(Damage::OverLimit);
    }
    if columns.iter().map(Vec::capacity).sum::<usize>() > selection.limit {
        columns.fill(Vec::new());
    }
    for (at, (column, &(encoding, raw_len, stored_len))) in
        columns.iter_mut().zip(&*table).enumerate()
    {
        let stored = cursor.take(stored_len)?;
        column.clear();
        if !(selection.is_wanted)(at) {
            continue;
        }
        if encoding == RAW {
            column.extend_from_slice(stored);
            continue;
        }
        column.reserve(raw_len);
        let decompressor = match decompressor {
            Some(decompressor) => decompressor,
            None => decompressor.insert(Decompressor::new().map_err(|_| Damage::BadCompression)?),
        };
        // Written are at most `capacity` bytes, and that may be more than was reserved for.
        let len = decompressor
            .decompress_to_buffer(stored, column)
            .map_err(|_| Damage::BadCompression)?;
        if len != raw_len {
            return Err(Damage::BadCompression);
        }
    }
    if cursor.is_at_end() { Ok(()) } else { Err(Damage::TrailingBytes) }
}

/// More columns than any block has.
const MOST_COLUMNS: usize = 32;

fn length(number: u64) -> Result<usize, Damage> {
    match u32::try_from(number) {
        Ok(len) if len as usize <= MAX_NAMES_RAW => Ok(len as usize),
        _ => Err(Damage::OverLimit),
    }
}
