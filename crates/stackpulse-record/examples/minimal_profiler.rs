//! A live profile of a running process: `minimal_profiler PID` prints its hottest functions every second until it ends.
#![allow(clippy::print_stdout, reason = "a program that prints")]

use stackpulse_record::{AttachMode, Recorder, RecorderOptions};
use stackpulse_spool::{Frame, Record};
use stackpulse_symbolize::{ImageQuery, Lookup, Symbolizer, SymbolizerOptions, demangle};
use std::collections::HashMap;
use std::error::Error;
use std::path::PathBuf;
use std::time::Duration;

/// The name of an address in a file, or the file's.
fn name(symbolizer: &mut Symbolizer, path: &str, address: u64) -> String {
    let found = symbolizer.symbolize(&ImageQuery::file(path), &[address]);
    let function = match found.first() {
        Some(Lookup::Resolved { calls, .. }) => calls.last().and_then(|call| call.function.clone()),
        _ => None,
    };
    function.map_or_else(|| path.to_owned(), |function| demangle(&function).into_owned())
}

fn main() -> Result<(), Box<dyn Error>> {
    let pid = std::env::args().nth(1).ok_or("usage: minimal_profiler PID")?.parse()?;
    let path: PathBuf = format!("minimal-{pid}.spool").into();
    let mode = AttachMode::StopWhileAttaching;
    let mut recorder = Recorder::attach(pid, &path, mode, &RecorderOptions::default())?;
    let mut tail = recorder.tail()?;
    let mut symbolizer = Symbolizer::new(SymbolizerOptions::default());
    let mut names: HashMap<(String, u64), String> = HashMap::new();
    while recorder.process_is_active(pid)? {
        std::thread::sleep(Duration::from_secs(1));
        recorder.poll(Duration::ZERO)?;
        let mut leaves: HashMap<(String, u64), u64> = HashMap::new();
        while let Some(record) = tail.next()? {
            let Record::Sample(sample) = record else { continue };
            let Some(Frame::Code { image, address }) = tail.tables().frame(sample.leaf) else {
                continue;
            };
            let path =
                tail.tables().image(image).map(|image| image.path.to_vec()).unwrap_or_default();
            *leaves.entry((String::from_utf8_lossy(&path).into_owned(), address)).or_default() += 1;
        }
        let mut hottest: HashMap<&str, u64> = HashMap::new();
        for place in leaves.keys() {
            let named = || name(&mut symbolizer, &place.0, place.1);
            names.entry(place.clone()).or_insert_with(named);
        }
        for (place, count) in &leaves {
            *hottest.entry(&names[place]).or_default() += count;
        }
        let mut hottest: Vec<_> = hottest.into_iter().collect();
        hottest.sort_by_key(|&(name, count)| (std::cmp::Reverse(count), name));
        hottest.iter().take(10).for_each(|(name, count)| println!("{count:8}  {name}"));
        println!();
    }
    let (summary, _) = recorder.finish()?;
    println!("{} samples in {}", summary.samples_written, path.display());
    Ok(())
}
