//! Writes a spool of a million made-up samples: `million FILE [hot|walk]`. What reading commands cost is measured on it.

#![expect(clippy::print_stderr, reason = "a program for people")]

use stackpulse_benches::recording::{Shape, Source};
use stackpulse_spool::{Record, RecordSink, Writer, WriterOptions};
use std::fs::File;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut words = std::env::args().skip(1);
    let Some(path) = words.next() else {
        eprintln!("usage: million FILE [hot|walk]");
        std::process::exit(2);
    };
    let shape =
        if words.next().as_deref() == Some("walk") { Shape::RandomWalk } else { Shape::HotLoop };
    let mut writer = Writer::new(File::create(path)?, WriterOptions::default())?;
    let mut source = Source::start(shape, &mut writer)?;
    for _ in 0..1_000_000 {
        let sample = source.next(&mut writer)?;
        writer.record(&Record::Sample(sample))?;
    }
    writer.finish().map_err(|unfinished| unfinished.error)?;
    Ok(())
}
