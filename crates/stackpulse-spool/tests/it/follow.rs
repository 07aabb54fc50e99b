//! Reading a file that is being written.

use crate::records::{choices, lines, sequence, write};
use crate::shared::{Reader, Shared};
use proptest::prelude::*;
use stackpulse_spool::{ReadError, Record, RecordSink, State, Tail, Writer, WriterOptions, text};
use std::io::{Read, Seek};

/// Everything published so far, as lines of text.
fn published<F: Read + Seek>(tail: &mut Tail<F>) -> Vec<String> {
    let mut lines = Vec::new();
    while let Some(record) = tail.next().unwrap() {
        lines.push(text::line(&record).to_string());
    }
    lines
}

fn pause(time_ns: u64) -> Record<'static> {
    Record::Pause { time_ns, paused: true }
}

#[test]
fn what_is_published_is_seen_and_nothing_before() {
    let file = Shared::default();
    assert!(matches!(Tail::open(Reader::of(&file)), Err(ReadError::Empty)));
    let mut writer = Writer::new(file.clone(), WriterOptions::default()).unwrap();
    let mut tail = Tail::open(Reader::of(&file)).unwrap();
    for time_ns in 0..5 {
        writer.record(&pause(time_ns)).unwrap();
        assert_eq!(published(&mut tail), [""; 0]);
        writer.publish().unwrap();
        assert_eq!(published(&mut tail), [format!("pause time={time_ns} paused=true")]);
        assert!(matches!(tail.state(), State::Torn { .. }));
    }
    writer.finish().unwrap();
    assert_eq!(published(&mut tail), [""; 0]);
    assert_eq!(tail.state(), State::Finished);
}

#[test]
fn a_file_that_shrank_is_told() {
    let file = Shared::default();
    let mut writer = Writer::new(file.clone(), WriterOptions::default()).unwrap();
    writer.record(&pause(1)).unwrap();
    writer.publish().unwrap();
    let mut tail = Tail::open(Reader::of(&file)).unwrap();
    assert_eq!(published(&mut tail).len(), 1);
    file.bytes_mut().truncate(20);
    assert!(matches!(tail.next(), Err(ReadError::Replaced { .. })));
}

#[test]
fn a_file_written_anew_is_told_even_if_it_is_longer() {
    let file = Shared::default();
    *file.bytes_mut() = write(&[pause(1)], WriterOptions::default());
    let mut tail = Tail::open(Reader::of(&file)).unwrap();
    assert_eq!(published(&mut tail).len(), 1);
    let many: Vec<_> = (0..1000).map(|at| pause(at * at * 7919)).collect();
    *file.bytes_mut() = write(&many, WriterOptions::default());
    assert!(matches!(tail.next(), Err(ReadError::Replaced { .. })));
}

#[test]
fn damage_in_the_middle_does_not_end_following() {
    let file = Shared::default();
    let mut writer = Writer::new(file.clone(), WriterOptions::default()).unwrap();
    let mut offsets = Vec::new();
    for time_ns in 0..3 {
        offsets.push(file.bytes().len());
        writer.record(&pause(time_ns)).unwrap();
        writer.publish().unwrap();
    }
    file.bytes_mut()[offsets[1] + 5] ^= 0x10;
    let mut tail = Tail::open(Reader::of(&file)).unwrap();
    assert_eq!(published(&mut tail).len(), 2);
    assert_eq!(tail.damage().len(), 1);
    assert_eq!(tail.damage()[0].offset, offsets[1] as u64);
    writer.record(&pause(9)).unwrap();
    writer.finish().unwrap();
    assert_eq!(published(&mut tail).len(), 1);
    assert_eq!(tail.state(), State::Finished);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn a_file_that_arrives_in_any_pieces_is_followed_to_its_end(
        choices in choices(),
        pieces in prop::collection::vec(1..80usize, 1..20),
    ) {
        let records = sequence(&choices);
        let bytes = write(&records, WriterOptions::default().block_bytes(60));
        let file = Shared::default();
        let (first, mut rest) = bytes.split_at(16);
        file.bytes_mut().extend_from_slice(first);
        let mut tail = Tail::open(Reader::of(&file)).unwrap();
        let mut found = Vec::new();
        for &piece in pieces.iter().cycle() {
            let (now, later) = rest.split_at(piece.min(rest.len()));
            file.bytes_mut().extend_from_slice(now);
            found.extend(published(&mut tail));
            rest = later;
            if rest.is_empty() {
                break;
            }
        }
        prop_assert_eq!(found, lines(&records));
        prop_assert_eq!(tail.state(), State::Finished);
        prop_assert_eq!(tail.damage(), &[]);
    }
}
