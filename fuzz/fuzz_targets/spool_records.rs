//! Sequences of records that keep the rules: all readers give back what was written.
#![no_main]

use libfuzzer_sys::fuzz_target;
use stackpulse_fuzz::{check_readers, replay, rounded, sequence, snapshot};
use stackpulse_spool::{RecordSink, State, Writer, WriterOptions, text};

fuzz_target!(|input: (Vec<(u8, u64, u64)>, u16, bool, u8)| {
    let (choices, block_bytes, compresses, shift) = input;
    let level = i32::from(compresses);
    let shift = u32::from(shift % 21);
    let options = WriterOptions::default().compression_level(level).block_bytes(block_bytes.into());
    let options = options.time_unit_ns(1 << shift);
    let mut writer = Writer::new(Vec::new(), options).expect("memory takes all");
    let mut expected = Vec::new();
    for record in sequence(&choices) {
        writer.record(&record).expect("the sequence keeps the rules");
        expected.push(rounded(&text::line(&record).to_string(), shift));
    }
    let (file, len) = writer.finish().expect("memory takes all");
    assert_eq!(file.len() as u64, len);
    check_readers(&file);
    let reading = replay(&file).expect("a sound spool");
    assert_eq!(reading.lines, expected);
    assert_eq!((reading.state, reading.is_damaged), (State::Finished, false));
    assert_eq!(snapshot(&file), Some((expected, true)));
});
