//! The header every block begins with.

use crate::error::Damage;
use crate::limits::MAX_PAYLOAD;

/// Length of a block header in bytes.
pub(crate) const BLOCK_HEADER_LEN: usize = 24;

/// The first bytes of every block, for finding the next one after damage.
pub(crate) const MARKER: [u8; 4] = [0xb1, b'S', b'P', b'B'];

/// What a block holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct BlockKind(pub(crate) u8);

impl BlockKind {
    /// Records.
    pub(crate) const RECORDS: Self = Self(1);
    /// Where the blocks of the file are, by time.
    pub(crate) const INDEX: Self = Self(2);
    /// Names for addresses.
    pub(crate) const NAMES: Self = Self(3);
    /// The end: how the recording ended, where index and names are. Always the file's last 48 bytes.
    pub(crate) const END: Self = Self(4);
}

/// A reader that does not know the block's kind may pass over it.
const SKIPPABLE: u8 = 1;

/// A block header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockHeader {
    pub(crate) kind: BlockKind,
    pub(crate) skippable: bool,
    /// How many blocks came before this one.
    pub(crate) sequence: u32,
    pub(crate) payload_len: u32,
    pub(crate) payload_crc: u32,
}

impl BlockHeader {
    /// The header for a payload. Payloads are kept within the limit by those who make them.
    pub(crate) fn of(kind: BlockKind, sequence: u32, payload: &[u8]) -> Result<Self, Damage> {
        let payload_len = u32::try_from(payload.len())
            .ok()
            .filter(|&len| len <= MAX_PAYLOAD)
            .ok_or(Damage::OverLimit)?;
        Ok(Self {
            kind,
            skippable: kind != BlockKind::RECORDS,
            sequence,
            payload_len,
            payload_crc: crc32c::crc32c(payload),
        })
    }

    pub(crate) fn encode(&self) -> [u8; BLOCK_HEADER_LEN] {
        let mut bytes = [0; BLOCK_HEADER_LEN];
        bytes[..4].copy_from_slice(&MARKER);
        bytes[4] = self.kind.0;
        bytes[5] = if self.skippable { SKIPPABLE } else { 0 };
        bytes[8..12].copy_from_slice(&self.sequence.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.payload_len.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.payload_crc.to_le_bytes());
        let checksum = crc32c::crc32c(&bytes[..20]);
        bytes[20..].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// Reads a header; anything that is not exactly one is damage.
    pub(crate) fn decode(bytes: &[u8; BLOCK_HEADER_LEN]) -> Result<Self, Damage> {
        let word = |at: usize| {
            u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        if bytes[..4] != MARKER || crc32c::crc32c(&bytes[..20]) != word(20) {
            return Err(Damage::BadBlockHeader);
        }
        let header = Self {
            kind: BlockKind(bytes[4]),
            skippable: bytes[5] & SKIPPABLE != 0,
            sequence: word(8),
            payload_len: word(12),
            payload_crc: word(16),
        };
        if header.payload_len > MAX_PAYLOAD {
            return Err(Damage::OverLimit);
        }
        Ok(header)
    }

    /// Length of the whole block.
    pub(crate) fn block_len(&self) -> u64 {
        BLOCK_HEADER_LEN as u64 + u64::from(self.payload_len)
    }
}
