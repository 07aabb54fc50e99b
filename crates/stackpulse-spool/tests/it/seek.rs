//! Reading from any moment on.

use crate::records::{choices, every_kind, lines, sequence, write};
use crate::shared::{Reader, Shared};
use proptest::prelude::*;
use stackpulse_spool::{
    Frame, FrameId, Process, ProcessId, ReadError, Record, RecordSink, Replay, Sample, Snapshot,
    StackId, StackRun, State, Thread, ThreadId, Truncation, Writer, WriterOptions, limits, text,
};
use std::io::{Cursor, Read, Seek, Write};

/// Reads on to the end, as lines of text.
fn rest<F: Read + Seek>(snapshot: &mut Snapshot<F>) -> Vec<String> {
    let mut lines = Vec::new();
    while let Some(record) = snapshot.next().unwrap() {
        lines.push(text::line(&record).to_string());
    }
    lines
}

/// A recording of `count` samples at times 10, 20, ..., with definitions spread over it and an epoch in its middle.
fn recording(count: u64) -> (Vec<u8>, Vec<String>) {
    let mut writer = Writer::new(Vec::new(), WriterOptions::default().block_bytes(200)).unwrap();
    let mut lines = Vec::new();
    let mut put = |record: Record<'_>| {
        writer.record(&record).unwrap();
        lines.push(text::line(&record).to_string());
    };
    let mut nodes = 0;
    for at in 0..count {
        let time_ns = 10 * (at + 1);
        if at == 0 || at == count / 2 {
            if at > 0 {
                put(Record::Epoch);
                nodes = 0;
            }
            put(Record::Process(Process { pid: 7, generation: 0, parent: None, time_ns }));
            put(Record::Thread(Thread { process: ProcessId(0), tid: 7, time_ns }));
            put(Record::Frame(Frame::Truncated(Truncation::Loop)));
        }
        if at % 3 == 0 {
            put(Record::Stack(StackRun { parent: StackId(nodes), frames: &[FrameId(0)] }));
            nodes += 1;
        }
        put(Record::Sample(Sample {
            time_ns,
            thread: ThreadId(0),
            cpu: 0,
            weight: 1,
            leaf: FrameId(0),
            callers: StackId(nodes),
        }));
    }
    (writer.finish().unwrap().0, lines)
}

/// The lines from the first one on that has a time not before `time_ns`.
fn from(lines: &[String], time_ns: u64) -> &[String] {
    let time = |line: &String| {
        let time = line.split("time=").nth(1)?;
        time.split(' ').next()?.parse::<u64>().ok()
    };
    let first = lines.iter().position(|line| time(line).is_some_and(|time| time >= time_ns));
    &lines[first.unwrap_or(lines.len())..]
}

#[test]
fn a_seek_delivers_everything_from_its_moment_on() {
    let (bytes, lines) = recording(200);
    let mut snapshot = Snapshot::open(Cursor::new(&bytes)).unwrap();
    assert!(snapshot.is_indexed());
    assert_eq!(snapshot.state(), State::Finished);
    assert_eq!((snapshot.samples(), snapshot.span_ns()), (200, Some((10, 2000))));
    assert_eq!(rest(&mut snapshot), lines);
    // Forwards, backwards, within one block, across the epoch's beginning, beyond both ends.
    for time_ns in [500, 510, 1500, 1000, 1001, 990, 20, 0, 2000, 2001, 1995, u64::MAX, 700] {
        snapshot.seek(time_ns).unwrap();
        assert_eq!(rest(&mut snapshot), from(&lines, time_ns), "from {time_ns}");
        assert_eq!(snapshot.left_out(), 0);
        assert_eq!(snapshot.damage(), []);
    }
}

#[test]
fn after_a_seek_stacks_can_be_followed_to_their_roots() {
    let (bytes, _) = recording(200);
    let mut snapshot = Snapshot::open(Cursor::new(&bytes)).unwrap();
    for (time_ns, depth) in [(900, 30), (1500, 16), (600, 20)] {
        snapshot.seek(time_ns).unwrap();
        let Some(Record::Sample(sample)) = snapshot.next().unwrap() else { panic!("no sample") };
        assert_eq!(snapshot.tables().frames_of(sample.callers).count(), depth, "at {time_ns}");
    }
}

#[test]
fn without_its_end_a_file_is_indexed_by_looking_through_it() {
    let (bytes, lines) = recording(200);
    let cut = bytes.len() - 1;
    let mut snapshot = Snapshot::open(Cursor::new(&bytes[..cut])).unwrap();
    assert!(!snapshot.is_indexed());
    assert!(matches!(snapshot.state(), State::Torn { .. }));
    assert_eq!((snapshot.samples(), snapshot.span_ns()), (200, Some((10, 2000))));
    for time_ns in [1500, 30, 1000] {
        snapshot.seek(time_ns).unwrap();
        assert_eq!(rest(&mut snapshot), from(&lines, time_ns), "from {time_ns}");
    }
}

#[test]
fn a_file_cut_after_it_was_opened_is_an_error() {
    let (bytes, _) = recording(200);
    let file = Shared::default();
    *file.bytes_mut() = bytes;
    let mut snapshot = Snapshot::open(Reader::of(&file)).unwrap();
    snapshot.next().unwrap();
    let half = file.bytes().len() / 2;
    file.bytes_mut().truncate(half);
    let error = loop {
        match snapshot.next() {
            Ok(Some(_)) => {}
            Ok(None) => panic!("the cut went unnoticed"),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, ReadError::Replaced { .. }));
}

#[test]
fn a_directory_is_an_error_of_the_file() {
    let directory = std::fs::File::open(std::env::temp_dir());
    // Some systems refuse already here.
    if let Ok(directory) = directory {
        assert!(matches!(Snapshot::open(directory), Err(ReadError::Io { .. })));
    }
}

/// Keeps the last bytes that were written to it.
#[derive(Default)]
struct End(Vec<u8>);

impl std::io::Write for End {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.drain(..self.0.len().saturating_sub(24));
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn an_index_that_would_be_too_long_is_left_out() {
    let options = WriterOptions::default().compression_level(0).block_bytes(1);
    let mut writer = Writer::new(End::default(), options).unwrap();
    // Entries of 14 bytes or more each.
    for at in 0..limits::MAX_INDEX as u64 / 13 {
        let start_ns = (at % 2) << 62;
        writer.record(&Record::Gap { start_ns, end_ns: start_ns + (1 << 62) }).unwrap();
    }
    let end = writer.finish().unwrap().0.0;
    // The end block's offset of the index.
    assert_eq!(end[end.len() - 16..end.len() - 8], [0; 8]);
}

#[test]
fn a_pipe_can_be_read_once_and_not_sought_in() {
    let (bytes, lines) = recording(200);
    let pipe = |bytes: Vec<u8>| {
        let (read, mut write) = std::io::pipe().unwrap();
        std::thread::spawn(move || write.write_all(&bytes));
        read
    };
    let mut replay = Replay::open(pipe(bytes.clone())).unwrap();
    let mut found = Vec::new();
    while let Some(record) = replay.next().unwrap() {
        found.push(text::line(&record).to_string());
    }
    assert_eq!(found, lines);
    // A pipe as a file, for it cannot be sought in.
    let file = std::fs::File::from(std::os::fd::OwnedFd::from(pipe(bytes)));
    assert!(matches!(Snapshot::open(file), Err(ReadError::Io { .. })));
}

#[test]
fn a_file_that_has_grown_since_it_was_opened_is_read_as_it_was() {
    let (bytes, _) = recording(200);
    let half = bytes.len() / 2;
    let file = Shared::default();
    file.bytes_mut().extend_from_slice(&bytes[..half]);
    let mut snapshot = Snapshot::open(Reader::of(&file)).unwrap();
    file.bytes_mut().extend_from_slice(&bytes[half..]);
    let found = rest(&mut snapshot);
    let mut expected = Snapshot::open(Cursor::new(&bytes[..half])).unwrap();
    assert_eq!(found, rest(&mut expected));
    assert!(!found.is_empty() && matches!(snapshot.state(), State::Torn { .. }));
}

#[test]
fn damage_is_named_and_seeking_goes_round_it() {
    let (mut bytes, lines) = recording(200);
    let third = (0..2).fold(16, |at, _| {
        at + 24 + u32::from_le_bytes(bytes[at + 12..at + 16].try_into().unwrap()) as usize
    });
    bytes[third + 2] ^= 1;
    for cut in [bytes.len(), bytes.len() - 1] {
        let mut snapshot = Snapshot::open(Cursor::new(&bytes[..cut])).unwrap();
        let found = rest(&mut snapshot);
        assert!(found.len() < lines.len() && found.iter().all(|line| lines.contains(line)));
        assert_eq!(snapshot.damage().len(), 1);
        assert_eq!(snapshot.damage()[0].offset, third as u64);
        // The second epoch needs nothing of the first.
        snapshot.seek(1500).unwrap();
        assert_eq!(rest(&mut snapshot), from(&lines, 1500));
        assert_eq!(snapshot.damage().len(), 1, "noted once");
    }
}

#[test]
fn names_are_read_when_asked_for() {
    let bytes = write(&every_kind(), WriterOptions::default());
    let mut snapshot = Snapshot::open(Cursor::new(bytes.clone())).unwrap();
    assert!(snapshot.names().unwrap().is_none());
    let mut file = Cursor::new(bytes);
    let mut names = stackpulse_spool::SymbolTableBuilder::new();
    let key = stackpulse_spool::ImageKey { epoch: 0, image: stackpulse_spool::ImageId(0) };
    names.insert(key, 5, 5, 1, &[]);
    stackpulse_spool::append_symbols(&mut file, &names.build()).unwrap();
    let mut snapshot = Snapshot::open(file).unwrap();
    assert_eq!(snapshot.names().unwrap().unwrap().len(), 1);
    assert_eq!(rest(&mut snapshot), lines(&every_kind()));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn seeking_in_any_file_agrees_with_reading_it_all(
        choices in choices(),
        times in prop::collection::vec(prop_oneof![0..25u64, any::<u64>(), 1_000_000..1_010_000u64], 1..6),
        is_torn in any::<bool>(),
    ) {
        let records = sequence(&choices);
        let bytes = write(&records, WriterOptions::default().block_bytes(60));
        let cut = bytes.len() - usize::from(is_torn);
        let mut snapshot = Snapshot::open(Cursor::new(&bytes[..cut])).unwrap();
        let all = lines(&records);
        for time_ns in times {
            snapshot.seek(time_ns).unwrap();
            let found = rest(&mut snapshot);
            prop_assert_eq!(&found[..], from(&all, time_ns));
        }
    }
}
