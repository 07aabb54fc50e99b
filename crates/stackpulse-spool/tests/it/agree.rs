//! All readers over the same bytes, compared; the fuzz targets use it too.

use stackpulse_spool::{DamagedBlock, Replay, Snapshot, State, Tail, text};
use std::io::{Cursor, Read, Seek};

/// What a reader made of a file.
#[derive(Debug, PartialEq, Eq)]
pub struct Reading {
    /// Its records, as text.
    pub lines: Vec<String>,
    /// How far it goes.
    pub state: State,
    /// Whether anything in it is damaged or was left out.
    pub is_damaged: bool,
}

/// Reads a file to its end or to the first error; `None` if it is refused.
pub fn replay(bytes: &[u8]) -> Option<Reading> {
    let mut replay = Replay::open(bytes).ok()?;
    let mut lines = Vec::new();
    let refused = loop {
        match replay.next() {
            Ok(Some(record)) => lines.push(text::line(&record).to_string()),
            Ok(None) => break false,
            Err(_) => break true,
        }
    };
    replay.take_names();
    check_lost(replay.damage(), bytes.len());
    let is_damaged = refused || !replay.damage().is_empty() || replay.left_out() > 0;
    Some(Reading { lines, state: replay.state(), is_damaged })
}

/// Follows a file as far as it has been published; `None` at an error.
pub fn follow<F: Read + Seek>(tail: &mut Tail<F>, lines: &mut Vec<String>) -> Option<()> {
    while let Some(record) = tail.next().ok()? {
        lines.push(text::line(&record).to_string());
    }
    Some(())
}

/// Reads a file by its blocks; `None` if it is refused or holds what may not be passed over.
pub fn snapshot(bytes: &[u8]) -> Option<(Vec<String>, bool)> {
    let mut snapshot = Snapshot::open(Cursor::new(bytes)).ok()?;
    let mut lines = Vec::new();
    while let Some(record) = snapshot.next().ok()? {
        lines.push(text::line(&record).to_string());
    }
    check_lost(snapshot.damage(), bytes.len());
    let (first, last) = snapshot.span_ns().unwrap_or_default();
    for time_ns in [0, first, first / 2 + last / 2, last, u64::MAX] {
        snapshot.seek(time_ns).ok()?;
        for _ in 0..3 {
            snapshot.next().ok()?;
        }
    }
    if let Some(names) = snapshot.names().ok()? {
        for (key, address, answer) in names.iter() {
            text::name(key, address, answer).to_string();
        }
    }
    Some((lines, snapshot.is_indexed()))
}

/// All readers over the same bytes: none panics, and they tell the same.
pub fn check_readers(bytes: &[u8]) {
    let Some(reading) = replay(bytes) else {
        assert!(Snapshot::open(Cursor::new(bytes)).is_err());
        assert!(Tail::open(Cursor::new(bytes)).is_err());
        return;
    };
    let mut tail = Tail::open(Cursor::new(bytes)).expect("another reader opened it");
    let mut lines = Vec::new();
    let followed = follow(&mut tail, &mut lines);
    assert_eq!(lines, reading.lines, "following differs from reading once");
    if followed.is_some() {
        assert_eq!(tail.state(), reading.state);
    }
    // An index that lies leads to other blocks: what it leads to is only checked for panics.
    if let Some((lines, false)) = snapshot(bytes) {
        assert_eq!(lines, reading.lines, "reading by blocks differs from reading once");
    }
}

/// Damage is told in order, within the file.
fn check_lost(damage: &[DamagedBlock], len: usize) {
    assert!(damage.is_sorted_by_key(|block| block.offset), "{damage:?}");
    for block in damage {
        assert!(block.offset <= len as u64, "{block:?} lies outside {len} bytes");
    }
}
