//! Blocks put together by hand: what no writer writes.

use crate::records::read;
use stackpulse_spool::{
    Damage, Process, ReadError, Record, RecordSink, Replay, State, Writer, WriterOptions, limits,
};

const RECORDS: u8 = 1;
const NAMES: u8 = 3;

/// A block with the right checksums.
fn block(kind: u8, flags: u8, sequence: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0xb1, b'S', b'P', b'B', kind, flags, 0, 0];
    bytes.extend(sequence.to_le_bytes());
    bytes.extend(u32::try_from(payload.len()).unwrap().to_le_bytes());
    bytes.extend(crc32c::crc32c(payload).to_le_bytes());
    bytes.extend(crc32c::crc32c(&bytes).to_le_bytes());
    bytes.extend(payload);
    bytes
}

/// A file of these blocks.
fn file(blocks: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = Writer::new(Vec::new(), WriterOptions::default()).unwrap().into_inner();
    assert_eq!(bytes.len(), 16);
    bytes.extend(blocks.concat());
    bytes
}

/// The payload of a block of records from its columns, uncompressed; nothing was defined before.
fn records(columns: &[(usize, &[u8])]) -> Vec<u8> {
    let mut payload = vec![0; 9]; // epoch, five counts, time shift, base, interval
    payload.extend([0, 0]); // first, last
    payload.extend([1, 0]); // records, samples
    let mut data = Vec::new();
    payload.push(13);
    for at in 0..13 {
        let column =
            columns.iter().find(|column| column.0 == at).map_or(&[][..], |column| column.1);
        payload.push(0);
        payload.push(u8::try_from(column.len()).unwrap());
        data.extend_from_slice(column);
    }
    payload.extend(data);
    payload
}

const TAGS: usize = 0;
const NUMBERS: usize = 1;
const STRINGS: usize = 2;

/// The only damage of a file with this one block of records.
fn damage_of(payload: &[u8]) -> Damage {
    let bytes = file(&[block(RECORDS, 0, 0, payload)]);
    let mut replay = Replay::open(&bytes[..]).unwrap();
    while replay.next().unwrap().is_some() {}
    assert_eq!(replay.damage().len(), 1, "{:?}", replay.damage());
    assert_eq!(replay.damage()[0].offset, 16);
    replay.damage()[0].damage
}

#[test]
fn records_and_blocks_of_later_versions_are_passed_over_where_they_allow_it() {
    let pause = records(&[(TAGS, &[200, 22]), (NUMBERS, &[3, 4, 1]), (STRINGS, b"new")]);
    let bytes = file(&[block(99, 1, 0, b"something new"), block(RECORDS, 0, 1, &pause)]);
    let expected =
        (vec!["pause time=2 paused=true".to_owned()], State::Torn { offset: bytes.len() as u64 });
    assert_eq!(read(&bytes), expected);
    let bytes = file(&[block(99, 0, 0, b"something new")]);
    let refused = Replay::open(&bytes[..]).unwrap().next().map(|_| ());
    assert!(matches!(refused, Err(ReadError::UnknownBlock { offset: 16, kind: 99 })));
}

#[test]
fn forward_references_are_damage() {
    let exec = records(&[(TAGS, &[14]), (NUMBERS, &[0, 0])]);
    assert_eq!(damage_of(&exec), Damage::ForwardReference);
    let stack = records(&[(TAGS, &[3 + 5]), (5, &[0, 1]), (6, &[0])]);
    assert_eq!(damage_of(&stack), Damage::ForwardReference);
    // A frame is there, but the parent is a node to come: stacks cannot become rings.
    let ring = records(&[(TAGS, &[7, 8]), (3, &[0]), (5, &[1, 1]), (6, &[0])]);
    assert_eq!(damage_of(&ring), Damage::ForwardReference);
    let sample = records(&[
        (TAGS, &[9]),
        (7, &[0]),
        (8, &[0]),
        (9, &[0]),
        (10, &[0]),
        (11, &[2]),
        (12, &[0]),
    ]);
    assert_eq!(damage_of(&sample), Damage::ForwardReference);
}

#[test]
fn what_is_malformed_in_a_block_is_named() {
    assert_eq!(damage_of(&records(&[(TAGS, &[28])])), Damage::BadTag);
    assert_eq!(damage_of(&records(&[(TAGS, &[127]), (NUMBERS, &[0, 0])])), Damage::BadTag);
    assert_eq!(damage_of(&records(&[(TAGS, &[22]), (NUMBERS, &[0])])), Damage::EndOfColumn);
    assert_eq!(damage_of(&records(&[(TAGS, &[22]), (NUMBERS, &[0, 2])])), Damage::BadTag);
    assert_eq!(damage_of(&records(&[(TAGS, &[1]), (NUMBERS, &[0])])), Damage::TrailingBytes);
    assert_eq!(damage_of(&records(&[(TAGS, &[22]), (NUMBERS, &[0x80, 0])])), Damage::BadNumber);
    let long_string = records(&[(TAGS, &[26]), (NUMBERS, &[0xff, 0xff, 0xff, 0x7f, 0])]);
    assert_eq!(damage_of(&long_string), Damage::OverLimit);
    assert_eq!(damage_of(&[]), Damage::EndOfColumn);
    let mut more = records(&[(TAGS, &[1])]);
    more.push(0);
    assert_eq!(damage_of(&more), Damage::TrailingBytes);
}

#[test]
fn a_column_that_says_it_is_huge_is_not_believed() {
    // The table's first entry: raw and far too long; then compressed and a bomb.
    for (encoding, len) in [(0u8, u64::MAX), (1, 1 << 40), (1, limits::MAX_RECORDS_RAW as u64 + 1)]
    {
        let mut payload = vec![0; 11];
        payload.extend([1, 0, 13, encoding]);
        number(&mut payload, len);
        if encoding == 1 {
            payload.push(5);
        }
        payload.extend([0; 2 * 12]);
        assert_eq!(damage_of(&payload), Damage::OverLimit);
    }
}

#[test]
fn a_decompression_bomb_stops_at_what_the_table_says() {
    let bomb = zstd::bulk::compress(&vec![0; 100 << 20], 1).unwrap();
    assert!(bomb.len() < 20_000);
    let mut payload = vec![0; 11];
    payload.extend([1, 0, 13, 1]);
    number(&mut payload, 1000);
    number(&mut payload, bomb.len() as u64);
    payload.extend([0; 2 * 12]);
    payload.extend(&bomb);
    assert_eq!(damage_of(&payload), Damage::BadCompression);
}

#[test]
fn a_length_past_the_end_is_a_torn_file_and_a_huge_one_is_damage() {
    let mut bytes = file(&[block(RECORDS, 0, 0, &records(&[(TAGS, &[1])]))]);
    bytes.pop();
    assert_eq!(read(&bytes), (vec![], State::Torn { offset: 16 }));
    let mut header = block(RECORDS, 0, 0, &[]);
    header[12..16].copy_from_slice(&u32::MAX.to_le_bytes());
    let checksum = crc32c::crc32c(&header[..20]);
    header[20..24].copy_from_slice(&checksum.to_le_bytes());
    let bytes = file(&[header]);
    let mut replay = Replay::open(&bytes[..]).unwrap();
    assert!(replay.next().unwrap().is_none());
    assert_eq!(replay.damage()[0].damage, Damage::OverLimit);
}

#[test]
fn copies_and_gaps_in_the_sequence_of_blocks_are_told() {
    let one =
        |sequence| block(RECORDS, 0, sequence, &records(&[(TAGS, &[22]), (NUMBERS, &[4, 1])]));
    let line = "pause time=2 paused=true".to_owned();
    let of = |blocks: &[Vec<u8>]| {
        let bytes = file(blocks);
        let mut replay = Replay::open(&bytes[..]).unwrap();
        let mut count = 0;
        while replay.next().unwrap().is_some() {
            count += 1;
        }
        (count, replay.damage().iter().map(|damage| damage.damage).collect::<Vec<_>>())
    };
    assert_eq!(read(&file(&[one(0)])).0, [line]);
    assert_eq!(of(&[one(0), one(1)]), (2, vec![]));
    assert_eq!(of(&[one(0), one(0), one(1)]), (2, vec![Damage::BadSequence]));
    assert_eq!(of(&[one(0), one(2)]), (2, vec![Damage::MissingBlocks]));
}

#[test]
fn names_that_are_malformed_cost_only_themselves() {
    let payload = [4, 0, 1, 0, 0, 0, 1, 0, 0, 0xff, 0];
    let bytes = file(&[
        block(NAMES, 1, 0, &payload),
        block(RECORDS, 0, 1, &records(&[(TAGS, &[22]), (NUMBERS, &[4, 1])])),
    ]);
    assert_eq!(read(&bytes).0, ["pause time=2 paused=true"]);
}

#[test]
fn times_may_go_back() {
    let mut writer = Writer::new(Vec::new(), WriterOptions::default()).unwrap();
    for time_ns in [u64::MAX, 0, 1 << 63, 5] {
        let process = Process { pid: 1, generation: 0, parent: None, time_ns };
        writer.record(&Record::Process(process)).unwrap();
    }
    let lines = read(&writer.finish().unwrap().0).0;
    let times = lines.iter().map(|line| line.split(' ').nth(1).unwrap());
    let expected = ["time=18446744073709551615", "time=0", "time=9223372036854775808", "time=5"];
    assert!(times.eq(expected));
}

fn number(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    out.push(value.to_le_bytes()[0]);
}
