//! Bytes that are read where they lie: a file, or memory.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

/// Where bytes are. Files are read and never mapped: one that shrinks gives short reads, not signals.
#[derive(Debug)]
pub(crate) enum Input {
    /// A file and its length when it was opened.
    File(File, u64),
    /// Bytes that were unpacked.
    Memory(Vec<u8>),
}

impl Input {
    /// A file, as long as it is now.
    pub(crate) fn file(file: File) -> io::Result<Self> {
        let len = file.metadata()?.len();
        Ok(Self::File(file, len))
    }

    pub(crate) fn len(&self) -> u64 {
        match self {
            Self::File(_, len) => *len,
            Self::Memory(bytes) => bytes.len() as u64,
        }
    }

    /// Returns exactly these bytes; `None` if they are not all there.
    pub(crate) fn read(&self, offset: u64, len: u64) -> Option<Cow<'_, [u8]>> {
        if offset.checked_add(len)? > self.len() {
            return None;
        }
        let len = usize::try_from(len).ok()?;
        match self {
            Self::Memory(bytes) => {
                let start = usize::try_from(offset).ok()?;
                Some(Cow::Borrowed(bytes.get(start..start.checked_add(len)?)?))
            }
            Self::File(file, _) => {
                let mut bytes = vec![0; len];
                file.read_exact_at(&mut bytes, offset).ok()?;
                Some(Cow::Owned(bytes))
            }
        }
    }

    /// The CRC-32 of all bytes, as `.gnu_debuglink` states it.
    pub(crate) fn crc32(&self) -> Option<u32> {
        let mut hasher = crc32fast::Hasher::new();
        let mut chunk = vec![0; 256 << 10];
        let mut at = 0;
        while at < self.len() {
            let wanted = usize::try_from(self.len() - at).unwrap_or(usize::MAX).min(chunk.len());
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

    /// Fills as much of `out` as there is.
    pub(crate) fn read_into(&self, offset: u64, out: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::File(file, _) => file.read_at(out, offset),
            Self::Memory(bytes) => {
                let start = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
                let len = out.len().min(bytes.len() - start);
                out[..len].copy_from_slice(&bytes[start..start + len]);
                Ok(len)
            }
        }
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
