//! Flipped bits of sound files: what is read was written, or the damage is told.
#![no_main]

use libfuzzer_sys::fuzz_target;
use stackpulse_fuzz::{check_readers, header, replay, sequence};
use stackpulse_spool::{RecordSink, State, Writer, WriterOptions, text};

fuzz_target!(|input: (Vec<(u8, u64, u64)>, [(u32, u8); 2])| {
    let (choices, flips) = input;
    let options = WriterOptions::default().compression_level(0).block_bytes(60);
    let mut writer = Writer::new(Vec::new(), options).expect("memory takes all");
    let mut written = Vec::new();
    for record in sequence(&choices) {
        writer.record(&record).expect("the sequence keeps the rules");
        written.push(text::line(&record).to_string());
    }
    let mut file = writer.finish().expect("memory takes all").0;
    let blocks = file.len() - header().len();
    for (at, bit) in flips {
        file[header().len() + at as usize % blocks] ^= 1 << (bit % 8);
    }
    check_readers(&file);
    let reading = replay(&file).expect("its header is sound");
    let is_told = reading.is_damaged || reading.state != State::Finished;
    assert!(is_told || reading.lines == written);
    // Nothing is invented, and nothing comes out of order. A process may have lost its parent.
    let but_parent = |line: &str| line.split(" parent=").next().map(str::to_owned);
    let mut left = written.iter();
    for line in &reading.lines {
        let is_same = |written: &String| {
            written == line
                || line.starts_with("process") && but_parent(written) == but_parent(line)
        };
        assert!(left.any(is_same), "{line} was not written there");
    }
});
