//! What the fuzz targets share with the tests of the crates, and blocks put together by hand.

pub mod elf;

use stackpulse_spool::{MAGIC, Record, VERSION};

#[path = "../../crates/stackpulse-spool/tests/it/agree.rs"]
mod agree;
#[path = "../../crates/stackpulse-spool/tests/it/sequence.rs"]
mod sequence;

pub use agree::{Reading, follow, replay, snapshot};

/// A sequence of records that keeps the rules, from random numbers.
#[must_use]
pub fn sequence(choices: &[(u8, u64, u64)]) -> Vec<Record<'static>> {
    sequence::sequence(choices)
}

/// A record's line with its times rounded down to multiples of 2^shift.
#[must_use]
pub fn rounded(line: &str, shift: u32) -> String {
    sequence::rounded(line, shift)
}

/// All readers over the same bytes: none panics, and they tell the same.
///
/// With `SPOOL_OUT` in the environment the bytes are written to that path first: the file to keep of a crash.
pub fn check_readers(bytes: &[u8]) {
    if let Some(path) = std::env::var_os("SPOOL_OUT") {
        std::fs::write(path, bytes).expect("write SPOOL_OUT");
    }
    agree::check_readers(bytes);
}

/// A file's header.
#[must_use]
pub fn header() -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend(VERSION.to_le_bytes());
    bytes.extend([0, 0]);
    bytes.extend(crc32c::crc32c(&bytes).to_le_bytes());
    bytes
}

/// A block with the right checksums.
pub fn block(kind: u8, flags: u8, sequence: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0xb1, b'S', b'P', b'B', kind, flags, 0, 0];
    bytes.extend(sequence.to_le_bytes());
    bytes.extend(u32::try_from(payload.len()).unwrap_or(u32::MAX).to_le_bytes());
    bytes.extend(crc32c::crc32c(payload).to_le_bytes());
    bytes.extend(crc32c::crc32c(&bytes).to_le_bytes());
    bytes.extend(payload);
    bytes
}
