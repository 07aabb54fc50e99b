//! The same bytes in pieces to a tail: it tells what one reading at once tells.
#![no_main]

use libfuzzer_sys::fuzz_target;
use stackpulse_fuzz::{follow, header, replay, sequence};
use stackpulse_spool::{RecordSink, Tail, Writer, WriterOptions};
use std::cell::RefCell;
use std::io::{self, Cursor, Read, Seek, SeekFrom};
use std::rc::Rc;

/// A file in memory that grows while it is read.
#[derive(Clone, Default)]
struct Growing(Rc<RefCell<Cursor<Vec<u8>>>>);

impl Read for Growing {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.0.borrow_mut().read(into)
    }
}

impl Seek for Growing {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.0.borrow_mut().seek(to)
    }
}

impl Growing {
    fn grow(&self, bytes: &[u8]) {
        self.0.borrow_mut().get_mut().extend_from_slice(bytes);
    }
}

fuzz_target!(|input: (Vec<(u8, u64, u64)>, Vec<u8>, Vec<(u16, u8)>, &[u8])| {
    let (choices, pieces, changes, end) = input;
    let options = WriterOptions::default().compression_level(0).block_bytes(60);
    let mut writer = Writer::new(Vec::new(), options).expect("memory takes all");
    for record in sequence(&choices) {
        writer.record(&record).expect("the sequence keeps the rules");
    }
    let mut file = writer.finish().expect("memory takes all").0;
    file.extend_from_slice(end);
    let len = file.len();
    for (at, change) in changes {
        let at = header().len() + usize::from(at) % len;
        if let Some(byte) = file.get_mut(at) {
            *byte ^= change;
        }
    }
    let growing = Growing::default();
    let (first, mut rest) = file.split_at(header().len());
    growing.grow(first);
    let mut tail = Tail::open(growing.clone()).expect("its header is there");
    let mut lines = Vec::new();
    let mut pieces = pieces.into_iter();
    while !rest.is_empty() {
        let piece = pieces.next().map_or(rest.len(), |len| usize::from(len).clamp(1, rest.len()));
        let (now, later) = rest.split_at(piece);
        growing.grow(now);
        rest = later;
        if follow(&mut tail, &mut lines).is_none() {
            break;
        }
    }
    let reading = replay(&file).expect("its header is sound");
    assert_eq!(lines, reading.lines);
    assert_eq!(tail.state(), reading.state);
});
