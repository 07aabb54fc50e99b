//! Writing and reading as the tests do it.

pub(crate) use crate::every_kind::every_kind;
pub(crate) use crate::sequence::sequence;
use proptest::prelude::*;
use stackpulse_spool::{Record, RecordSink, Replay, State, Writer, WriterOptions, text};

/// Writes the records as one finished spool.
pub(crate) fn write(records: &[Record<'_>], options: WriterOptions) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), options).unwrap();
    for record in records {
        writer.record(record).unwrap();
    }
    writer.finish().unwrap().0
}

/// Reads all records of a spool as lines of text.
pub(crate) fn read(bytes: &[u8]) -> (Vec<String>, State) {
    let mut replay = Replay::open(bytes).unwrap();
    let mut lines = Vec::new();
    while let Some(record) = replay.next().unwrap() {
        lines.push(text::line(&record).to_string());
    }
    (lines, replay.state())
}

/// The records as lines of text.
pub(crate) fn lines(records: &[Record<'_>]) -> Vec<String> {
    records.iter().map(|record| text::line(record).to_string()).collect()
}

/// Random choices for [`sequence`], with small and extreme numbers among them.
pub(crate) fn choices() -> impl Strategy<Value = Vec<(u8, u64, u64)>> {
    let number = prop_oneof![0..20u64, any::<u64>(), Just(u64::MAX), 1_000_000..1_010_000u64];
    prop::collection::vec((any::<u8>(), number.clone(), number), 0..200)
}
