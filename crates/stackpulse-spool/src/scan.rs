//! An index found anew, block by block, for a file that has none.

use crate::block::frame::{BLOCK_HEADER_LEN, BlockHeader, BlockKind, MARKER};
use crate::end::{End, Outcome};
use crate::error::{Damage, ReadError};
use crate::header::HEADER_LEN;
use crate::index::IndexEntry;
use crate::order::{Order, Place};
use crate::preface::Preface;
use crate::varint::Cursor;
use std::io::{self, Read, Seek, SeekFrom};

/// What a file holds, as its block headers say.
#[derive(Debug, Default)]
pub(crate) struct Scan {
    pub(crate) entries: Vec<IndexEntry>,
    /// What is no block, or stands where it must not.
    pub(crate) damaged: Vec<Unread>,
    pub(crate) outcome: Option<Outcome>,
    /// The newest names; zero: none.
    pub(crate) names_offset: u64,
    pub(crate) whole_until: u64,
}

/// A stretch of the file that is not read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unread {
    pub(crate) offset: u64,
    pub(crate) len: u64,
    pub(crate) damage: Damage,
    /// The block's, where it is one.
    pub(crate) header: Option<BlockHeader>,
}

/// As much of a payload as holds any preface or end.
const HINT_LEN: usize = 128;

/// How much is looked through at once for the next block.
const CHUNK: usize = 64 << 10;

/// Goes from block header to block header through a file of `len` bytes. Payloads are not checked: who reads them does.
pub(crate) fn scan<F: Read + Seek>(file: &mut F, len: u64) -> Result<Scan, ReadError> {
    let mut scan = Scan { whole_until: HEADER_LEN as u64, ..Scan::default() };
    let mut offset = HEADER_LEN as u64;
    let mut order = Order::Next(0);
    while len.saturating_sub(offset) >= BLOCK_HEADER_LEN as u64 {
        let mut first = [0; BLOCK_HEADER_LEN + HINT_LEN];
        let have = read_at(file, offset, &mut first)?;
        let Some((header, hint)) = first[..have].split_first_chunk() else { break };
        match BlockHeader::decode(header) {
            Ok(header) => {
                if len - offset < header.block_len() {
                    break;
                }
                match order.place(header.sequence) {
                    Place::Here => scan.block(offset, &header, hint)?,
                    Place::AfterMissing => {
                        scan.unread(offset, 0, Damage::MissingBlocks, None);
                        scan.block(offset, &header, hint)?;
                    }
                    Place::Again => {
                        scan.unread_block(offset, header, Damage::BadSequence);
                    }
                }
                offset += header.block_len();
                scan.whole_until = offset;
            }
            Err(damage) => {
                let next = next_block(file, offset + 1, len)?;
                scan.unread(offset, next - offset, damage, None);
                order.pass_unknown();
                offset = next;
            }
        }
    }
    Ok(scan)
}

impl Scan {
    fn unread(&mut self, offset: u64, len: u64, damage: Damage, header: Option<BlockHeader>) {
        self.damaged.push(Unread { offset, len, damage, header });
    }

    fn unread_block(&mut self, offset: u64, header: BlockHeader, damage: Damage) {
        self.unread(offset, header.block_len(), damage, Some(header));
    }

    fn block(&mut self, offset: u64, header: &BlockHeader, hint: &[u8]) -> Result<(), ReadError> {
        match header.kind {
            BlockKind::RECORDS if self.outcome.is_some() => {
                self.unread_block(offset, *header, Damage::AfterEnd);
            }
            BlockKind::RECORDS => {
                // One that is damaged here is met again by its checksum; until then it comes after the one before.
                let last = self.entries.last().map_or((0, 0), |last| (last.epoch, last.last_ns));
                let preface = Preface::decode(&mut Cursor::new(hint)).ok();
                self.entries.push(preface.map_or(
                    IndexEntry {
                        offset,
                        epoch: last.0,
                        first_ns: last.1,
                        last_ns: last.1,
                        samples: 0,
                    },
                    |preface| IndexEntry {
                        offset,
                        epoch: preface.start.epoch,
                        first_ns: preface.first_ns,
                        last_ns: preface.last_ns,
                        samples: preface.samples,
                    },
                ));
            }
            BlockKind::NAMES => self.names_offset = offset,
            BlockKind::END => {
                let payload = hint.get(..header.payload_len as usize).unwrap_or_default();
                let is_sound = crc32c::crc32c(payload) == header.payload_crc;
                match End::decode(payload) {
                    Ok(end) if is_sound => self.outcome = Some(end.outcome),
                    _ => self.unread_block(offset, *header, Damage::BadChecksum),
                }
            }
            kind if !header.skippable => {
                return Err(ReadError::UnknownBlock { offset, kind: kind.0 });
            }
            _ => {}
        }
        Ok(())
    }
}

/// Looks from `offset` on for the next place that begins as a block; the end of the file if there is none.
fn next_block<F: Read + Seek>(file: &mut F, mut offset: u64, len: u64) -> Result<u64, ReadError> {
    let mut chunk = vec![0; CHUNK];
    while len.saturating_sub(offset) >= BLOCK_HEADER_LEN as u64 {
        let have = read_at(file, offset, &mut chunk)?;
        let found = chunk[..have].windows(BLOCK_HEADER_LEN).position(|window| {
            window.starts_with(&MARKER)
                && window.first_chunk().is_some_and(|header| BlockHeader::decode(header).is_ok())
        });
        if let Some(at) = found {
            return Ok(offset + at as u64);
        }
        if have < BLOCK_HEADER_LEN {
            break;
        }
        offset += (have - (BLOCK_HEADER_LEN - 1)) as u64;
    }
    Ok(len)
}

/// Reads from an offset as much of `bytes` as the file has; returns how much.
pub(crate) fn read_at<F: Read + Seek>(
    file: &mut F,
    offset: u64,
    bytes: &mut [u8],
) -> Result<usize, ReadError> {
    let failed = |source| ReadError::Io { offset, source };
    file.seek(SeekFrom::Start(offset)).map_err(failed)?;
    let mut have = 0;
    while have < bytes.len() {
        match file.read(&mut bytes[have..]) {
            Ok(0) => break,
            Ok(read) => have += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(failed(error)),
        }
    }
    Ok(have)
}
