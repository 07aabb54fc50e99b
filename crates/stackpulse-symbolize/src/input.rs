//! Bytes that are read where they lie: a file, or memory.

use crate::allowance::{Allowance, Grant};
use std::fs::{File, Metadata};
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Deref;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::Arc;

/// A call of the system is worth so many steps, however little it reads.
const STEPS_PER_READ: u64 = 512;

/// Smaller pieces are soon gone: no memory is taken for them.
const SMALL: u64 = 64 << 10;

/// So much is read at a time of what is not kept.
const CHUNK: usize = 256 << 10;

/// A file may be packed by its file system, but not more than so many times: else it has holes.
const DENSEST: u64 = 8;

/// Bytes, and what reading them may cost. Files are read and never mapped: one that shrinks gives short reads, not signals.
#[derive(Debug)]
pub(crate) struct Input {
    source: Source,
    len: u64,
    allowance: Allowance,
}

#[derive(Debug)]
enum Source {
    File(File),
    Memory(Vec<u8>, #[expect(dead_code, reason = "it is held as long as the bytes")] Grant),
}

/// A piece of an input.
#[derive(Debug)]
pub(crate) enum Piece<'a> {
    Borrowed(&'a [u8]),
    /// Read from a file; with the memory for it, unless it is small.
    Owned(Vec<u8>, #[expect(dead_code, reason = "it is held as long as the bytes")] Option<Grant>),
}

impl Deref for Piece<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Borrowed(bytes) => bytes,
            Self::Owned(bytes, _) => bytes,
        }
    }
}

impl Input {
    /// A file, as long as it is now.
    pub(crate) fn file(file: File, metadata: &Metadata, allowance: &Allowance) -> Self {
        let len = metadata.len();
        // What a hole holds is not worth a step.
        let disk_bytes = metadata.blocks().saturating_mul(512);
        allowance.earn(len.min(disk_bytes.saturating_mul(DENSEST)));
        Self { source: Source::File(file), len, allowance: allowance.clone() }
    }

    /// Bytes that were unpacked, and the memory for them.
    pub(crate) fn memory(bytes: Vec<u8>, grant: Grant) -> Self {
        let (len, allowance) = (bytes.len() as u64, grant.allowance().clone());
        Self { source: Source::Memory(bytes, grant), len, allowance }
    }

    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    pub(crate) fn allowance(&self) -> &Allowance {
        &self.allowance
    }

    /// All bytes, if they are in memory.
    pub(crate) fn in_memory(&self) -> Option<&[u8]> {
        match &self.source {
            Source::File(_) => None,
            Source::Memory(bytes, _) => Some(bytes),
        }
    }

    /// Returns exactly these bytes; `None` if they are not all there, or cost too much.
    pub(crate) fn read(&self, offset: u64, len: u64) -> Option<Piece<'_>> {
        if offset.checked_add(len)? > self.len {
            return None;
        }
        match &self.source {
            Source::Memory(bytes, _) => {
                let (start, len) = (usize::try_from(offset).ok()?, usize::try_from(len).ok()?);
                Some(Piece::Borrowed(bytes.get(start..start.checked_add(len)?)?))
            }
            Source::File(file) => {
                let grant = if len > SMALL { Some(self.allowance.grant(len)?) } else { None };
                Some(Piece::Owned(self.read_file(file, offset, len)?, grant))
            }
        }
    }

    /// Returns these bytes of a file in memory that lasts.
    pub(crate) fn load(&self, offset: u64, len: u64) -> Option<Self> {
        let grant = self.allowance.grant(len)?;
        let is_there = offset.checked_add(len)? <= self.len;
        match &self.source {
            Source::File(file) if is_there => {
                Some(Self::memory(self.read_file(file, offset, len)?, grant))
            }
            _ => None,
        }
    }

    /// Reads a large piece chunk by chunk, so that a stop is heard.
    fn read_file(&self, file: &File, offset: u64, len: u64) -> Option<Vec<u8>> {
        let mut bytes = vec![0; usize::try_from(len).ok()?];
        let mut at = offset;
        for chunk in bytes.chunks_mut(CHUNK) {
            self.allowance.take(STEPS_PER_READ + chunk.len() as u64)?;
            file.read_exact_at(chunk, at).ok()?;
            at += chunk.len() as u64;
        }
        Some(bytes)
    }

    /// Fills as much of `out` as there is.
    pub(crate) fn read_into(&self, offset: u64, out: &mut [u8]) -> io::Result<usize> {
        let too_much = || io::Error::from(io::ErrorKind::QuotaExceeded);
        self.allowance.take(out.len() as u64).ok_or_else(too_much)?;
        match &self.source {
            Source::File(file) => {
                self.allowance.take(STEPS_PER_READ).ok_or_else(too_much)?;
                file.read_at(out, offset)
            }
            Source::Memory(bytes, _) => {
                let start = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
                let len = out.len().min(bytes.len() - start);
                out[..len].copy_from_slice(&bytes[start..start + len]);
                Ok(len)
            }
        }
    }

    /// The CRC-32 of all bytes, as `.gnu_debuglink` states it; `None` if they cost too much.
    pub(crate) fn crc32(&self) -> Option<u32> {
        let mut hasher = crc32fast::Hasher::new();
        let mut chunk = vec![0; CHUNK];
        let mut at = 0;
        while at < self.len {
            let wanted = usize::try_from(self.len - at).unwrap_or(usize::MAX).min(chunk.len());
            match self.read_into(at, &mut chunk[..wanted]).ok()? {
                0 => return None,
                read => {
                    hasher.update(&chunk[..read]);
                    at += read as u64;
                }
            }
        }
        Some(hasher.finalize())
    }
}

/// A reading position of its own in an input.
#[derive(Debug)]
pub(crate) struct Position {
    input: Arc<Input>,
    at: u64,
    end: u64,
}

impl Position {
    /// Reads `len` bytes from `start`.
    pub(crate) fn new(input: Arc<Input>, start: u64, len: u64) -> Self {
        Self { input, at: start, end: start.saturating_add(len) }
    }
}

impl Read for Position {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.end.saturating_sub(self.at)).unwrap_or(usize::MAX);
        let wanted = out.len().min(left);
        let read = self.input.read_into(self.at, &mut out[..wanted])?;
        self.at += read as u64;
        Ok(read)
    }
}

impl Seek for Position {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let target = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::End(by) => self.end.checked_add_signed(by),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
        };
        self.at = target.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.at)
    }
}
