//! The first bytes of a spool.

use crate::error::ReadError;

/// The first eight bytes. A byte with its high bit set, both line ends and an end-of-file character: a transfer
/// that changes text changes them.
pub const MAGIC: [u8; 8] = *b"\x89SPK\r\n\x1a\n";

/// The version this crate writes, and the latest it reads.
pub const VERSION: u16 = 1;

/// Length of the file header in bytes.
pub(crate) const HEADER_LEN: usize = 16;

/// Returns a file header of the current version.
pub(crate) fn encode() -> [u8; HEADER_LEN] {
    let mut header = [0; HEADER_LEN];
    header[..8].copy_from_slice(&MAGIC);
    header[8..10].copy_from_slice(&VERSION.to_le_bytes());
    let checksum = crc32c::crc32c(&header[..12]);
    header[12..].copy_from_slice(&checksum.to_le_bytes());
    header
}

/// Checks the first bytes of a file; returns its version.
pub(crate) fn decode(bytes: &[u8]) -> Result<u16, ReadError> {
    if bytes.is_empty() {
        return Err(ReadError::Empty);
    }
    let Some(header) =
        bytes.first_chunk::<HEADER_LEN>().filter(|header| header.starts_with(&MAGIC))
    else {
        return Err(not_a_spool(bytes));
    };
    let version = u16::from_le_bytes([header[8], header[9]]);
    let checksum = u32::from_le_bytes([header[12], header[13], header[14], header[15]]);
    if crc32c::crc32c(&header[..12]) != checksum {
        return Err(ReadError::DamagedHeader);
    }
    if version > VERSION {
        return Err(ReadError::NewerVersion { found: version, supported: VERSION });
    }
    if version == 0 {
        return Err(ReadError::DamagedHeader);
    }
    Ok(version)
}

fn not_a_spool(bytes: &[u8]) -> ReadError {
    // What a text-mode transfer makes of the magic: CR LF to LF, LF to CR LF, the high bit cleared.
    let changed: [&[u8]; 3] = [b"\x89SPK\n\x1a\n", b"\x89SPK\r\r\n\x1a\r\n", b"\x09SPK\r\n\x1a\n"];
    if changed.iter().any(|changed| bytes.starts_with(changed)) {
        return ReadError::TextMode;
    }
    if bytes.get(1..4) == Some(b"SPK") {
        return ReadError::DamagedHeader;
    }
    ReadError::NotASpool { found: bytes.iter().copied().take(8).collect() }
}
