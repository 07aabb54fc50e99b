//! What is written is what is read.

use crate::records::{choices, every_kind, lines, read, sequence, write};
use crate::sequence::rounded;
use proptest::prelude::*;
use stackpulse_spool::{
    Frame, FrameId, Interner, Record, RecordSink, Replay, Sample, StackId, State, ThreadId,
    Truncation, Writer, WriterOptions,
};

#[test]
fn every_kind_of_record_is_read_as_it_was_written() {
    let records = every_kind();
    for level in [0, 1, 3] {
        let bytes = write(&records, WriterOptions::default().compression_level(level));
        assert_eq!(read(&bytes), (lines(&records), State::Finished), "level {level}");
    }
}

#[test]
fn a_unit_of_time_is_a_power_of_two_of_nanoseconds_up_to_2_to_the_20() {
    let pause = Record::Pause { time_ns: u64::MAX, paused: true };
    for (unit, rounded) in [(0, 0), (1, 0), (63, 31), (64, 63), (u32::MAX, (1 << 20) - 1)] {
        let bytes = write(&[pause], WriterOptions::default().time_unit_ns(unit));
        assert_eq!(read(&bytes).0, [format!("pause time={} paused=true", u64::MAX - rounded)]);
    }
}

#[test]
fn an_aborted_spool_says_so() {
    let mut writer = Writer::new(Vec::new(), WriterOptions::default()).unwrap();
    writer.record(&Record::Pause { time_ns: 1, paused: true }).unwrap();
    let (bytes, len) = writer.abort().unwrap();
    assert_eq!(bytes.len() as u64, len);
    assert_eq!(read(&bytes).1, State::Aborted);
}

#[test]
fn references_to_what_is_not_defined_are_refused_and_change_nothing() {
    let sample = Sample {
        time_ns: 1,
        thread: ThreadId(0),
        cpu: 0,
        weight: 1,
        leaf: FrameId(0),
        callers: StackId(0),
    };
    let mut writer = Writer::new(Vec::new(), WriterOptions::default()).unwrap();
    writer.record(&Record::Sample(sample)).unwrap_err();
    writer
        .record(&Record::Exec { process: stackpulse_spool::ProcessId(0), time_ns: 1 })
        .unwrap_err();
    writer.record(&Record::Pause { time_ns: 1, paused: false }).unwrap();
    assert_eq!(read(&writer.finish().unwrap().0).0, ["pause time=1 paused=false"]);
}

#[test]
fn the_interner_defines_each_frame_and_node_once() {
    let mut writer = Writer::new(Vec::new(), WriterOptions::default()).unwrap();
    let mut interner = Interner::new();
    let root = Frame::Truncated(Truncation::Loop);
    let first = interner.stack(StackId::EMPTY, [root, Frame::Joined], &mut writer).unwrap();
    let again = interner.stack(StackId::EMPTY, [root, Frame::Joined], &mut writer).unwrap();
    let longer = interner.stack(StackId::EMPTY, [root, Frame::Joined, root], &mut writer).unwrap();
    assert_eq!((first, again, longer), (StackId(2), StackId(2), StackId(3)));
    let bytes = writer.finish().unwrap().0;
    let expected = [
        "frame truncated=loop",
        "frame joined",
        "stack parent=0 frames=0,1",
        "stack parent=2 frames=0",
    ];
    assert_eq!(read(&bytes).0, expected);
    let mut replay = Replay::open(&bytes[..]).unwrap();
    while replay.next().unwrap().is_some() {}
    let frames: Vec<u32> = replay.tables().frames_of(longer).map(|frame| frame.0).collect();
    assert_eq!(frames, [0, 1, 0]);
}

/// An output that fails after some bytes.
struct Full(Vec<u8>, usize);

impl std::io::Write for Full {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let room = self.1 - self.0.len();
        if room == 0 {
            return Err(std::io::ErrorKind::StorageFull.into());
        }
        let len = bytes.len().min(room).min(7);
        self.0.extend_from_slice(&bytes[..len]);
        Ok(len)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_disk_is_told_once_and_leaves_the_published_blocks() {
    let mut writer = Writer::new(Full(Vec::new(), 200), WriterOptions::default()).unwrap();
    let record = Record::Pause { time_ns: 1, paused: true };
    let mut published = 0;
    let error = loop {
        writer.record(&record).unwrap();
        match writer.publish() {
            Ok(()) => published += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(error, stackpulse_spool::WriteError::Io(_)));
    assert!(matches!(writer.record(&record), Err(stackpulse_spool::WriteError::Ended)));
    assert!(matches!(writer.publish(), Err(stackpulse_spool::WriteError::Ended)));
    let (lines, state) = read(&writer.into_inner().0);
    assert_eq!(lines.len(), published);
    assert!(published > 0 && matches!(state, State::Torn { .. }));
}

/// An output that is interrupted before every write, and takes little at once.
#[derive(Default)]
struct Busy(Vec<u8>, bool);

impl std::io::Write for Busy {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.1 = !self.1;
        if self.1 {
            return Err(std::io::ErrorKind::Interrupted.into());
        }
        let len = bytes.len().min(5);
        self.0.extend_from_slice(&bytes[..len]);
        Ok(len)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn interruptions_and_short_writes_change_nothing() {
    let mut writer = Writer::new(Busy::default(), WriterOptions::default()).unwrap();
    every_kind().iter().for_each(|record| writer.record(record).unwrap());
    let bytes = writer.finish().unwrap().0.0;
    assert_eq!(bytes, write(&every_kind(), WriterOptions::default()));
}

#[test]
fn a_reader_that_went_away_is_told_and_the_pipe_comes_back() {
    let (read, write) = std::io::pipe().unwrap();
    let mut writer = Writer::new(write, WriterOptions::default()).unwrap();
    drop(read);
    writer.record(&Record::Pause { time_ns: 1, paused: true }).unwrap();
    let unfinished = writer.finish().unwrap_err();
    let stackpulse_spool::WriteError::Io(error) = &unfinished.error else { panic!("{unfinished}") };
    assert_eq!(error.kind(), std::io::ErrorKind::BrokenPipe);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_sequence_of_records_is_read_as_it_was_written(
        choices in choices(),
        level in 0..4i32,
        block_bytes in prop_oneof![Just(1usize), Just(100), Just(1 << 20)],
    ) {
        let records = sequence(&choices);
        let options = WriterOptions::default().compression_level(level).block_bytes(block_bytes);
        prop_assert_eq!(read(&write(&records, options)), (lines(&records), State::Finished));
    }

    #[test]
    fn times_are_rounded_down_to_their_unit_and_nothing_else_is(choices in choices(), shift in 0..=20u32) {
        let records = sequence(&choices);
        let bytes = write(&records, WriterOptions::default().time_unit_ns(1 << shift));
        let expected = lines(&records).iter().map(|line| rounded(line, shift)).collect();
        prop_assert_eq!(read(&bytes), (expected, State::Finished));
    }

    #[test]
    fn every_prefix_of_a_file_gives_a_prefix_of_its_records(choices in choices(), cut in any::<prop::sample::Index>()) {
        let records = sequence(&choices);
        let bytes = write(&records, WriterOptions::default().block_bytes(50));
        let cut = 16 + cut.index(bytes.len() - 16);
        let (found, state) = read(&bytes[..cut]);
        prop_assert!(lines(&records).starts_with(&found));
        let is_torn = matches!(state, State::Torn { .. });
        prop_assert!(is_torn);
    }
}
