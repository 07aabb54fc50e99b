//! Names added to a spool that has ended.

use crate::block::frame::{BLOCK_HEADER_LEN, BlockHeader, BlockKind};
use crate::end::{END_LEN, End};
use crate::error::{Damage, ReadError, WriteError};
use crate::header::{self, HEADER_LEN};
use crate::scan::read_at;
use crate::symbols::SymbolTable;
use std::io::{Read, Seek, SeekFrom, Write};
use thiserror::Error;

/// Why names could not be added.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum AppendError {
    /// The file is no spool, or cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The file cannot be written, or the table is larger than a block may be.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The spool has no end block: it is torn, or still being written.
    #[error("the spool has no end: it is torn, or still being written")]
    NotEnded,
}

/// Length of an end block.
const END_BLOCK_LEN: usize = BLOCK_HEADER_LEN + END_LEN;

/// Adds names at the end of a spool that has ended. Readers use the newest.
///
/// Nothing that is there is changed: if this is interrupted, the spool is as it was before.
///
/// # Errors
///
/// When the file is no ended spool, or cannot be read or written.
pub fn append_symbols<F: Read + Write + Seek>(
    file: &mut F,
    names: &SymbolTable,
) -> Result<(), AppendError> {
    let mut first = [0; HEADER_LEN];
    let read = read_at(file, 0, &mut first)?;
    header::decode(&first[..read])?;
    let len = file.seek(SeekFrom::End(0)).map_err(|source| ReadError::Io { offset: 0, source })?;
    let (sequence, end) = read_end(file, len)?.ok_or(AppendError::NotEnded)?;
    let payload = names.encode().map_err(WriteError::Invalid)?;
    let names_block = block(BlockKind::NAMES, sequence.wrapping_add(1), &payload)?;
    let end = End { names_offset: len, ..end };
    let end_block = block(BlockKind::END, sequence.wrapping_add(2), &end.encode())?;
    let written = file
        .seek(SeekFrom::Start(len))
        .and_then(|_| file.write_all(&names_block))
        .and_then(|()| file.write_all(&end_block))
        .and_then(|()| file.flush());
    Ok(written.map_err(WriteError::Io)?)
}

/// Reads the block a sound spool ends with; `None` if it does not.
pub(crate) fn read_end<F: Read + Seek>(
    file: &mut F,
    len: u64,
) -> Result<Option<(u32, End)>, ReadError> {
    let Some(offset) = len.checked_sub(END_BLOCK_LEN as u64) else { return Ok(None) };
    let mut bytes = [0; END_BLOCK_LEN];
    if read_at(file, offset, &mut bytes)? < bytes.len() {
        return Ok(None);
    }
    let Some((header, payload)) = bytes.split_first_chunk::<BLOCK_HEADER_LEN>() else {
        return Ok(None);
    };
    let sound = BlockHeader::decode(header).ok().filter(|header| {
        header.kind == BlockKind::END
            && header.payload_len as usize == END_LEN
            && header.payload_crc == crc32c::crc32c(payload)
    });
    Ok(sound.and_then(|header| Some((header.sequence, End::decode(payload).ok()?))))
}

fn block(kind: BlockKind, sequence: u32, payload: &[u8]) -> Result<Vec<u8>, WriteError> {
    let header = BlockHeader::of(kind, sequence, payload).map_err(|_| Damage::OverLimit)?;
    let mut bytes = header.encode().to_vec();
    bytes.extend_from_slice(payload);
    Ok(bytes)
}
