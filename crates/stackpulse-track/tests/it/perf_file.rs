//! Recordings of perf's, made by hand byte by byte: what is read of them, and what is refused.

use crate::script::{Lines, World};
use stackpulse_perf::{Event, EventKind};
use stackpulse_track::perf_data::{PerfData, PerfDataError, Statistics};
use stackpulse_track::{Engine, EngineOptions};
use std::io::{Cursor, Read, Seek, SeekFrom};

/// `sample_type`: identifier, ip, task, time, user registers and stack.
const SAMPLE_TYPE: u64 = 1 << 16 | 1 | 2 | 4 | 1 << 12 | 1 << 13;
/// rbp, rsp and rip.
const REGISTERS: u64 = 0b1_1100_0000;

/// `struct perf_event_attr` of 128 bytes.
fn attr(sample_type: u64) -> Vec<u8> {
    let mut attr = Vec::new();
    attr.extend(1u32.to_le_bytes()); // software
    attr.extend(128u32.to_le_bytes());
    attr.extend(0u64.to_le_bytes()); // cpu-clock
    attr.extend(499u64.to_le_bytes());
    attr.extend(sample_type.to_le_bytes());
    attr.extend(0u64.to_le_bytes());
    attr.extend((1u64 << 18 | 1 << 10).to_le_bytes()); // sample_id_all, freq
    attr.resize(80, 0);
    attr.extend(REGISTERS.to_le_bytes());
    attr.extend(64u32.to_le_bytes());
    attr.resize(128, 0);
    attr
}

fn record(kind: u32, misc: u16, body: &[u8]) -> Vec<u8> {
    let mut record = kind.to_le_bytes().to_vec();
    record.extend(misc.to_le_bytes());
    record.extend(u16::try_from(body.len() + 8).unwrap().to_le_bytes());
    record.extend(body);
    record
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// A record of the kernel's, with the identity that `sample_id_all` puts at its end.
fn event(kind: u32, misc: u16, body: &[u8], (time_ns, id): (u64, u64)) -> Vec<u8> {
    let mut body = body.to_vec();
    body.extend(words(&[10, 10]));
    body.extend(time_ns.to_le_bytes());
    body.extend(id.to_le_bytes());
    record(kind, misc, &body)
}

fn comm(time_ns: u64, name: &[u8; 8]) -> Vec<u8> {
    let mut body = words(&[10, 10]);
    body.extend(name);
    event(3, 0, &body, (time_ns, 1))
}

/// `PERF_RECORD_MMAP2` of a page at 0x1000, from the start of `/prog`.
fn mmap(time_ns: u64) -> Vec<u8> {
    let mut body = words(&[10, 10]);
    for number in [0x1000u64, 0x1000, 0] {
        body.extend(number.to_le_bytes());
    }
    body.extend([0; 24]);
    body.extend(words(&[5, 2]));
    body.extend(b"/prog\0\0\0");
    event(10, 2, &body, (time_ns, 1))
}

fn sample(time_ns: u64, id: u64, pc: u64) -> Vec<u8> {
    let mut body = id.to_le_bytes().to_vec();
    body.extend(pc.to_le_bytes());
    body.extend(words(&[10, 10]));
    body.extend(time_ns.to_le_bytes());
    body.extend(2u64.to_le_bytes()); // 64 bits
    for register in [0, 0x7000, pc] {
        body.extend(register.to_le_bytes());
    }
    body.extend(8u64.to_le_bytes());
    body.extend([0; 8]);
    body.extend(8u64.to_le_bytes());
    record(9, 2, &body)
}

fn lost(kind: u32, events: u64) -> Vec<u8> {
    let body: Vec<u8> = [events.to_le_bytes(), events.to_le_bytes()].concat();
    event(kind, 0, if kind == 2 { &body } else { &body[8..] }, (50, 1))
}

const ROUND: u32 = 68;

/// A file with these attributes, each with its index plus one as id, and these records.
fn file(attrs: &[Vec<u8>], records: &[Vec<u8>]) -> Vec<u8> {
    let ids_at = 104;
    let attrs_at = ids_at + attrs.len() * 8;
    let data_at = attrs_at + attrs.len() * (128 + 16);
    let data = records.concat();
    let mut file = b"PERFILE2".to_vec();
    for number in
        [104, 128 + 16, attrs_at, attrs.len() * 144, data_at, data.len(), 0, 0, 0, 0, 0, 0]
    {
        file.extend((number as u64).to_le_bytes());
    }
    for id in 1..=attrs.len() {
        file.extend((id as u64).to_le_bytes());
    }
    for (index, attr) in attrs.iter().enumerate() {
        file.extend(attr);
        file.extend(((ids_at + index * 8) as u64).to_le_bytes());
        file.extend(8u64.to_le_bytes());
    }
    file.extend(data);
    file
}

/// The same as a stream.
fn stream(records: &[Vec<u8>]) -> Vec<u8> {
    let mut stream = b"PERFILE2".to_vec();
    stream.extend(16u64.to_le_bytes());
    let ids = 1u64.to_le_bytes();
    stream.extend(record(64, 0, &[attr(SAMPLE_TYPE), ids.to_vec()].concat()));
    stream.extend(records.concat());
    stream
}

/// Bytes that can only be read, as those of a pipe.
struct Pipe(Cursor<Vec<u8>>);

impl Read for Pipe {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        // A pipe often gives less than is asked for.
        let len = into.len().min(100);
        self.0.read(&mut into[..len])
    }
}

impl Seek for Pipe {
    fn seek(&mut self, _: SeekFrom) -> std::io::Result<u64> {
        Err(std::io::Error::other("a pipe"))
    }
}

fn events_of(input: impl Read + Seek) -> (Vec<Event>, Statistics) {
    let mut data = PerfData::open(input).unwrap();
    let mut events = Vec::new();
    while let Some(event) = data.next_event().unwrap() {
        events.push(event);
    }
    (events, data.statistics())
}

fn names(events: &[Event]) -> Vec<(u64, &'static str)> {
    let name = |event: &Event| match event.kind {
        EventKind::Sample(_) => "sample",
        EventKind::Mmap(_) => "mmap",
        EventKind::Comm { .. } => "comm",
        EventKind::Lost { .. } => "lost",
        EventKind::Exit { .. } => "exit",
        EventKind::ProcessExit { .. } => "process-exit",
        EventKind::Attached(_) => "attached",
        EventKind::Fork { .. } => "fork",
        _ => "other",
    };
    events.iter().map(|event| (event.time_ns, name(event))).collect()
}

fn ordinary() -> Vec<Vec<u8>> {
    // The sample's ring is read before that of the mapping.
    vec![
        comm(0, b"prog\0\0\0\0"),
        sample(30, 1, 0x1010),
        record(ROUND, 0, &[]),
        mmap(20),
        record(ROUND, 0, &[]),
        sample(40, 1, 0x1020),
    ]
}

#[test]
fn records_come_in_the_order_of_time_and_those_without_one_first() {
    let (events, _) = events_of(Cursor::new(file(&[attr(SAMPLE_TYPE)], &ordinary())));
    assert_eq!(names(&events), [(20, "comm"), (20, "mmap"), (30, "sample"), (40, "sample")]);
}

#[test]
fn files_streams_and_compressed_files_say_the_same() {
    let plain = events_of(Cursor::new(file(&[attr(SAMPLE_TYPE)], &ordinary()))).0;
    let piped = events_of(Pipe(Cursor::new(stream(&ordinary())))).0;
    assert_eq!(names(&piped), names(&plain));
    let packed = zstd::encode_all(&*ordinary().concat(), 3).unwrap();
    let (head, tail) = packed.split_at(packed.len() / 2);
    let sized = [&(tail.len() as u64).to_le_bytes()[..], tail, &[0; 5]].concat();
    let records = [record(81, 0, head), record(83, 0, &sized)];
    let packed = events_of(Cursor::new(file(&[attr(SAMPLE_TYPE)], &records))).0;
    assert_eq!(names(&packed), names(&plain));
}

#[test]
fn samples_carry_their_registers_and_stacks_to_the_engine() {
    let (events, _) = events_of(Cursor::new(file(&[attr(SAMPLE_TYPE)], &ordinary())));
    let mut engine = Engine::new(World::default(), Lines::default(), EngineOptions::default());
    for event in events {
        engine.handle(event).unwrap();
    }
    let lines = engine.into_sink();
    assert_eq!(lines.stacks, ["/prog+0x10 [no_unwind_info]", "/prog+0x20 [no_unwind_info]"]);
}

#[test]
fn a_process_ends_with_its_last_thread() {
    let task = |kind, pid, tid, time| event(kind, 0, &words(&[pid, 10, tid, 10]), (time, 1));
    let records =
        [comm(1, b"prog\0\0\0\0"), task(7, 10, 11, 2), task(4, 10, 10, 3), task(4, 10, 11, 4)];
    let (events, _) = events_of(Cursor::new(file(&[attr(SAMPLE_TYPE)], &records)));
    let expected = [(1, "comm"), (2, "fork"), (3, "exit"), (4, "exit"), (4, "process-exit")];
    assert_eq!(names(&events), expected);
}

#[test]
fn a_process_of_before_is_attached_to_and_not_a_copy_of_its_parent() {
    let fork = event(7, 1 << 13, &words(&[20, 10, 20, 10]), (0, 1));
    let records = [fork, sample(5, 1, 0x1010)];
    let (events, _) = events_of(Cursor::new(file(&[attr(SAMPLE_TYPE)], &records)));
    assert_eq!(names(&events), [(5, "attached"), (5, "sample")]);
}

#[test]
fn samples_of_other_events_are_left_out_and_counted() {
    let attrs = [attr(1 << 16 | 1 | 2 | 4), attr(SAMPLE_TYPE)];
    let other = record(9, 2, &[1u64.to_le_bytes(); 4].concat());
    let records = [other, sample(5, 2, 0x1010)];
    let (events, statistics) = events_of(Cursor::new(file(&attrs, &records)));
    assert_eq!(names(&events), [(5, "sample")]);
    assert_eq!(statistics.samples_of_other_events, 1);
}

#[test]
fn what_the_kernel_lost_is_counted_once() {
    // The total at the end has in it what was told on the way.
    let records = [sample(5, 1, 0x1010), lost(2, 7), lost(13, 10)];
    let (events, statistics) = events_of(Cursor::new(file(&[attr(SAMPLE_TYPE)], &records)));
    let lost: Vec<_> = events
        .iter()
        .filter_map(|event| match event.kind {
            EventKind::Lost { events, .. } => Some(events),
            _ => None,
        })
        .collect();
    assert_eq!(lost, [7, 3]);
    assert_eq!(statistics.lost, 10);
}

#[test]
fn a_file_that_perf_did_not_finish_is_read_to_its_end() {
    let mut unfinished = file(&[attr(SAMPLE_TYPE)], &ordinary());
    // perf writes the size of the records last.
    unfinished[48..56].fill(0);
    let (events, statistics) = events_of(Cursor::new(unfinished));
    assert_eq!((events.len(), statistics.is_cut), (4, true));
    let mut cut = file(&[attr(SAMPLE_TYPE)], &ordinary());
    cut.truncate(cut.len() - 1);
    let (events, statistics) = events_of(Cursor::new(cut));
    assert_eq!((events.len(), statistics.is_cut), (3, true));
}

#[test]
fn data_behind_a_record_is_passed_over() {
    let mut trace = record(71, 0, &[&500_000u64.to_le_bytes()[..], &[0; 32]].concat());
    trace.extend(vec![0xff; 500_000]);
    let records = [sample(5, 1, 0x1010), trace, sample(6, 1, 0x1010)];
    let (events, _) = events_of(Cursor::new(file(&[attr(SAMPLE_TYPE)], &records)));
    assert_eq!(names(&events), [(5, "sample"), (6, "sample")]);
}

#[test]
fn what_cannot_be_imported_is_refused_with_its_reason() {
    let refused = |bytes: Vec<u8>| PerfData::open(Cursor::new(bytes)).unwrap_err();
    assert!(matches!(refused(Vec::new()), PerfDataError::NotPerfData));
    assert!(matches!(refused(b"\x7fELF0123456789abcdef".to_vec()), PerfDataError::NotPerfData));
    let swapped = [&b"2ELIFREP"[..], &[0; 100]].concat();
    assert!(matches!(refused(swapped), PerfDataError::BigEndian));
    let without_stacks = file(&[attr(1 << 16 | 1 | 2 | 4)], &ordinary());
    let error = refused(without_stacks);
    assert!(matches!(&error, PerfDataError::NoStacks(event) if event == "cpu-clock"), "{error}");
    let two = [attr(SAMPLE_TYPE & !(1 << 16)), attr(1 | 2 | 4)];
    assert!(matches!(refused(file(&two, &[])), PerfDataError::NoIdentifier));
    assert!(matches!(refused(file(&[], &[])), PerfDataError::Damaged(_)));
}

#[test]
fn sizes_that_the_file_does_not_have_are_not_believed() {
    let good = file(&[attr(SAMPLE_TYPE)], &ordinary());
    // Each number of the header in turn: sizes, offsets and features.
    for at in (16..104).step_by(8) {
        for value in [0, 1, 17, u64::MAX, u64::MAX / 2, 1 << 40] {
            let mut bytes = good.clone();
            bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
            let Ok(mut data) = PerfData::open(Cursor::new(bytes)) else { continue };
            while let Ok(Some(_)) = data.next_event() {}
        }
    }
}

#[test]
fn compressed_data_that_is_none_ends_the_import_with_its_reason() {
    let records = [sample(5, 1, 0x1010), record(81, 0, &[0x55; 100])];
    let mut data = PerfData::open(Cursor::new(file(&[attr(SAMPLE_TYPE)], &records))).unwrap();
    let error = loop {
        match data.next_event() {
            Ok(event) => assert!(event.is_some(), "the damage was not seen"),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, PerfDataError::Damaged("compressed data")));
}
