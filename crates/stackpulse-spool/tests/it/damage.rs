//! What readers do with bytes that are not as they were written.

use crate::records::{choices, every_kind, lines, read, sequence, write};
use proptest::prelude::*;
use stackpulse_spool::{Damage, MAGIC, ReadError, Replay, WriterOptions, text};

/// Opens bytes that are no spool.
fn refusal(bytes: &[u8]) -> ReadError {
    Replay::open(bytes).map(|_| ()).unwrap_err()
}

#[test]
fn what_is_no_spool_is_refused_by_its_kind() {
    assert!(matches!(refusal(b""), ReadError::Empty));
    assert!(matches!(refusal(b"\x89"), ReadError::NotASpool { .. }));
    assert!(matches!(
        refusal(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\0"),
        ReadError::NotASpool { .. }
    ));
    assert!(matches!(refusal(&MAGIC), ReadError::DamagedHeader));
}

#[test]
fn a_newer_version_is_named() {
    let mut bytes = write(&every_kind(), WriterOptions::default());
    bytes[8] = 2;
    let checksum = crc32c::crc32c(&bytes[..12]);
    bytes[12..16].copy_from_slice(&checksum.to_le_bytes());
    assert!(matches!(refusal(&bytes), ReadError::NewerVersion { found: 2, supported: 1 }));
}

#[test]
fn a_transfer_in_text_mode_is_recognised() {
    let bytes = write(&every_kind(), WriterOptions::default());
    let mut unix = bytes.clone();
    unix.remove(4); // CR LF became LF
    assert!(matches!(refusal(&unix), ReadError::TextMode));
    let mut seven_bits = bytes;
    seven_bits[0] &= 0x7f;
    assert!(matches!(refusal(&seven_bits), ReadError::TextMode));
}

#[test]
fn a_damaged_block_is_named_and_the_rest_is_read() {
    let records = every_kind();
    let bytes = write(&records, WriterOptions::default().compression_level(0).block_bytes(1));
    // The block of the first Lost record: nothing depends on it.
    let mut damaged = bytes.clone();
    let at = find_block(&bytes, 21);
    damaged[at + 30] ^= 1;
    let mut replay = Replay::open(&damaged[..]).unwrap();
    let mut found = Vec::new();
    while let Some(record) = replay.next().unwrap() {
        found.push(text::line(&record).to_string());
    }
    let mut expected = lines(&records);
    expected.remove(21);
    assert_eq!(found, expected);
    assert_eq!(replay.damage().len(), 1);
    assert_eq!(replay.damage()[0].offset, at as u64);
    assert_eq!(replay.damage()[0].damage, Damage::BadChecksum);
}

#[test]
fn what_depends_on_a_damaged_block_is_left_out_and_counted() {
    let records = every_kind();
    let bytes = write(&records, WriterOptions::default().compression_level(0).block_bytes(1));
    let mut damaged = bytes.clone();
    // The block that defines the first frame, which the stack and the sample use.
    let at = find_block(&bytes, 16);
    damaged[at + 30] ^= 1;
    let mut replay = Replay::open(&damaged[..]).unwrap();
    let mut found = Vec::new();
    while let Some(record) = replay.next().unwrap() {
        found.push(text::line(&record).to_string());
    }
    assert!(!found.iter().any(|line| line.starts_with("sample") || line.starts_with("stack")));
    assert!(found.iter().any(|line| line.starts_with("lost")));
    assert_eq!(replay.left_out(), 2);
    assert_eq!(replay.damage()[0].lost.definitions, 1);
}

/// Where the `number`th block begins.
fn find_block(bytes: &[u8], number: usize) -> usize {
    let mut at = 16;
    for _ in 0..number {
        let len = u32::from_le_bytes(bytes[at + 12..at + 16].try_into().unwrap());
        at += 24 + len as usize;
    }
    at
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn any_flipped_bit_is_detected_or_harmless(choices in choices(), at in any::<prop::sample::Index>(), bit in 0..8u8) {
        let records = sequence(&choices);
        let mut bytes = write(&records, WriterOptions::default().block_bytes(60));
        let at = 16 + at.index(bytes.len() - 16);
        bytes[at] ^= 1 << bit;
        let mut replay = Replay::open(&bytes[..]).unwrap();
        let mut found = Vec::new();
        while let Ok(Some(record)) = replay.next() {
            found.push(text::line(&record).to_string());
        }
        let all = lines(&records);
        let is_told = !replay.damage().is_empty() || replay.state() != stackpulse_spool::State::Finished;
        prop_assert!(found == all || is_told);
        // Nothing is invented.
        prop_assert!(found.len() <= all.len());
    }

    #[test]
    fn any_bytes_after_the_header_end_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
        let mut file = write(&[], WriterOptions::default())[..16].to_vec();
        file.extend_from_slice(&bytes);
        let (found, _) = read(&file);
        prop_assert!(found.is_empty());
    }
}
