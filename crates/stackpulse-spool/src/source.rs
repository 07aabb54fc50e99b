//! Bytes of a file, block by block, with damage stepped over.

use crate::block::frame::{BLOCK_HEADER_LEN, BlockHeader, MARKER};
use crate::error::{Damage, ReadError};
use crate::header::{self, HEADER_LEN};
use std::io::{self, Read};

/// Reads blocks one after the other from a stream.
#[derive(Debug)]
pub(crate) struct BlockSource<R> {
    input: R,
    /// Bytes read and not yet used: `buffer[used..end]`. What lies behind is kept for its memory.
    buffer: Vec<u8>,
    used: usize,
    end: usize,
    /// Offset in the file of `buffer[used]`.
    offset: u64,
}

/// What was found at the next place of a file.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Found<'a> {
    /// A block whose payload has the right checksum.
    Block { offset: u64, header: BlockHeader, payload: &'a [u8] },
    /// Bytes that are no sound block, up to the next place that begins as one.
    Damaged {
        offset: u64,
        len: u64,
        damage: Damage,
        header: Option<BlockHeader>,
        payload: &'a [u8],
    },
    /// A block begins here that is not whole: the file is torn, or still grows.
    Partial,
    /// The file ends here, between blocks.
    End,
}

impl<'a> Found<'a> {
    /// Where a block should be there is none.
    pub(crate) fn nothing_at(offset: u64) -> Self {
        let damage = Damage::BadBlockHeader;
        Self::Damaged { offset, len: 0, damage, header: None, payload: &[] }
    }

    /// A block whose payload has the right length, by whether it has the right checksum.
    pub(crate) fn checked(offset: u64, header: BlockHeader, payload: &'a [u8]) -> Self {
        if crc32c::crc32c(payload) == header.payload_crc {
            return Self::Block { offset, header, payload };
        }
        let damage = Damage::BadChecksum;
        Self::Damaged { offset, len: header.block_len(), damage, header: Some(header), payload }
    }
}

/// How much is read at once: this at first, then ever more.
const LEAST_CHUNK: usize = 8 << 10;
const CHUNK: usize = 256 << 10;

impl<R: Read> BlockSource<R> {
    /// Reads and checks the file header.
    pub(crate) fn open(input: R) -> Result<Self, ReadError> {
        let mut source = Self { input, buffer: Vec::new(), used: 0, end: 0, offset: 0 };
        source.fill(HEADER_LEN)?;
        header::decode(source.rest())?;
        source.use_up(HEADER_LEN);
        Ok(source)
    }

    /// How far the input has been read.
    pub(crate) fn position(&self) -> u64 {
        self.offset + self.rest().len() as u64
    }

    pub(crate) fn input_mut(&mut self) -> &mut R {
        &mut self.input
    }

    fn rest(&self) -> &[u8] {
        &self.buffer[self.used..self.end]
    }

    fn use_up(&mut self, len: usize) {
        self.used += len;
        self.offset += len as u64;
    }

    /// Reads until `len` bytes are there, or the input ends; returns whether they are.
    fn fill(&mut self, len: usize) -> Result<bool, ReadError> {
        if self.rest().len() >= len {
            return Ok(true);
        }
        self.buffer.copy_within(self.used..self.end, 0);
        self.end -= self.used;
        self.used = 0;
        while self.end < len {
            // Grow by what is really there: a length in a damaged header allocates nothing by itself.
            if self.buffer.len() == self.end {
                let more = self.end.clamp(LEAST_CHUNK, CHUNK);
                self.buffer.resize(self.end + more, 0);
            }
            let read = loop {
                match self.input.read(&mut self.buffer[self.end..]) {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    other => break other,
                }
            };
            let offset = self.offset + self.end as u64;
            let read = read.map_err(|source| ReadError::Io { offset, source })?;
            if read == 0 {
                return Ok(false);
            }
            // A reader that tells more than it was given room for is not believed.
            self.end = self.buffer.len().min(self.end + read);
        }
        Ok(true)
    }

    /// Reads the next block, or what is in its place.
    ///
    /// After `Partial` and `End` a later call looks again: the file may have grown.
    pub(crate) fn next(&mut self) -> Result<Found<'_>, ReadError> {
        let offset = self.offset;
        if !self.fill(BLOCK_HEADER_LEN)? {
            return self.at_end();
        }
        let header = match self.rest().first_chunk().map(BlockHeader::decode) {
            Some(Ok(header)) => header,
            Some(Err(damage)) => return self.resynchronize(damage),
            None => return self.at_end(),
        };
        let payload_len = header.payload_len as usize;
        if !self.fill(BLOCK_HEADER_LEN + payload_len)? {
            return Ok(Found::Partial);
        }
        let start = self.used + BLOCK_HEADER_LEN;
        self.use_up(BLOCK_HEADER_LEN + payload_len);
        let payload = &self.buffer[start..start + payload_len];
        Ok(Found::checked(offset, header, payload))
    }

    /// Fewer bytes are left than a block header has.
    fn at_end(&self) -> Result<Found<'_>, ReadError> {
        Ok(if self.rest().is_empty() { Found::End } else { Found::Partial })
    }

    /// Looks for the next place that begins with a sound block header.
    fn resynchronize(&mut self, damage: Damage) -> Result<Found<'_>, ReadError> {
        let offset = self.offset;
        self.use_up(1);
        loop {
            let more = self.fill(BLOCK_HEADER_LEN)?;
            let rest = self.rest();
            let at = rest.windows(MARKER.len()).position(|window| window == MARKER);
            match at {
                Some(at) => {
                    self.use_up(at);
                    let whole = self.fill(BLOCK_HEADER_LEN)?;
                    let sound = self
                        .rest()
                        .first_chunk()
                        .is_some_and(|header| BlockHeader::decode(header).is_ok());
                    if sound || !whole {
                        break;
                    }
                    self.use_up(1);
                }
                None if more => {
                    // A marker may begin in the last three bytes.
                    let passed = rest.len() - (MARKER.len() - 1);
                    self.use_up(passed);
                }
                None => {
                    // What may be the beginning of a marker is left: the file may grow.
                    let kept = (1..MARKER.len())
                        .rev()
                        .find(|&len| rest.ends_with(&MARKER[..len]))
                        .unwrap_or_default();
                    let passed = rest.len() - kept;
                    self.use_up(passed);
                    break;
                }
            }
        }
        let len = self.offset - offset;
        Ok(Found::Damaged { offset, len, damage, header: None, payload: &[] })
    }
}
