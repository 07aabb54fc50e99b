//! A section's bytes: read piece by piece where they lie in the file, unpacked where they are compressed.

use crate::input::{Input, Position};
use std::borrow::Cow;
use std::io::Read;
use std::sync::Arc;

/// A section, or nothing: then its length is zero.
#[derive(Clone, Debug)]
pub(crate) struct Section {
    input: Arc<Input>,
    offset: u64,
    len: u64,
}

/// How a section is packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Packing {
    Zlib,
    Zstd,
}

impl Section {
    /// A part of an input; `None` if it is not all there.
    pub(crate) fn new(input: Arc<Input>, offset: u64, len: u64) -> Option<Self> {
        (offset.checked_add(len)? <= input.len()).then_some(Self { input, offset, len })
    }

    /// Bytes in memory.
    pub(crate) fn of(bytes: Vec<u8>) -> Self {
        let len = bytes.len() as u64;
        Self { input: Arc::new(Input::Memory(bytes)), offset: 0, len }
    }

    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Whether it takes memory as it is.
    pub(crate) fn is_in_memory(&self) -> bool {
        matches!(*self.input, Input::Memory(_))
    }

    /// Returns exactly these bytes.
    pub(crate) fn read(&self, offset: u64, len: u64) -> Option<Cow<'_, [u8]>> {
        if offset.checked_add(len)? > self.len {
            return None;
        }
        self.input.read(self.offset.checked_add(offset)?, len)
    }

    /// Returns up to `len` bytes from `offset`, fewer at the section's end.
    pub(crate) fn read_up_to(&self, offset: u64, len: u64) -> Option<Cow<'_, [u8]>> {
        self.read(offset, len.min(self.len.checked_sub(offset)?))
    }

    /// Reads it all.
    pub(crate) fn all(&self) -> Option<Cow<'_, [u8]>> {
        self.read(0, self.len)
    }

    /// A part of it.
    pub(crate) fn part(&self, offset: u64, len: u64) -> Option<Self> {
        let end = offset.checked_add(len)?;
        let start = self.offset.checked_add(offset)?;
        (end <= self.len).then(|| Self { input: Arc::clone(&self.input), offset: start, len })
    }

    /// Fills as much of `out` as there is from `offset`.
    pub(crate) fn read_into(&self, offset: u64, out: &mut [u8]) -> Option<usize> {
        let left = usize::try_from(self.len.checked_sub(offset)?).unwrap_or(usize::MAX);
        let wanted = out.len().min(left);
        self.input.read_into(self.offset.checked_add(offset)?, &mut out[..wanted]).ok()
    }

    /// Unpacks it into memory; `None` if it is not exactly `len` bytes then.
    pub(crate) fn unpack(&self, packing: Packing, len: u64) -> Option<Self> {
        let packed = Position::new(Arc::clone(&self.input), self.offset, self.len);
        let mut bytes = Vec::new();
        let expected = usize::try_from(len).ok()?;
        // A size that the packed bytes cannot have is a lie; room is made for it as far as it is credible.
        bytes.try_reserve_exact(expected.min(self.len.saturating_mul(32).try_into().ok()?)).ok()?;
        // One byte more than stated shows that there is more.
        let limit = len.checked_add(1)?;
        match packing {
            Packing::Zlib => {
                flate2::read::ZlibDecoder::new(packed).take(limit).read_to_end(&mut bytes).ok()?
            }
            Packing::Zstd => zstd::stream::read::Decoder::new(packed)
                .ok()?
                .take(limit)
                .read_to_end(&mut bytes)
                .ok()?,
        };
        (bytes.len() == expected).then(|| Self::of(bytes))
    }
}

impl Default for Section {
    fn default() -> Self {
        Self::of(Vec::new())
    }
}
