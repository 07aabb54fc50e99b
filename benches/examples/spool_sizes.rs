//! What recordings take: the spool as it is, written anew with other settings, and in a plain encoding.
//!
//! Usage: `spool_sizes FILE...`. The plain encoding is one varint record after another, uncompressed: a node
//! for each frame of a stack (parent, image, address), and a sample as (time delta, thread, node). All have times in the
//! recorder's unit, and once the spool has them exact. The last columns compare compressors on the same uncompressed spool.

#![allow(clippy::print_stdout, reason = "a program that prints a table")]

use stackpulse_spool::{Frame, Record, RecordSink, Replay, StackId, Tables, Writer, WriterOptions};
use std::collections::HashMap;
use std::error::Error;
use std::fs;

/// The recorder's unit of time.
const UNIT_NS: u32 = 64;

/// Counts the bytes of the plain encoding.
#[derive(Default)]
struct Plain {
    bytes: u64,
    nodes: HashMap<(u32, Frame), u32>,
    /// The latest sample's time, in units.
    last: u64,
}

impl Plain {
    fn number(&mut self, value: u64) {
        let bits = u64::from(64 - value.max(1).leading_zeros());
        self.bytes += bits.div_ceil(7);
    }

    /// The node of a stack, written if new.
    fn node(&mut self, tables: &Tables, stack: StackId, known: &mut HashMap<StackId, u32>) -> u32 {
        if let Some(&node) = known.get(&stack) {
            return node;
        }
        let Some((frame, parent)) = tables.node(stack) else { return 0 };
        let parent = self.node(tables, parent, known);
        let node = tables.frame(frame).map_or(0, |frame| self.child(parent, frame));
        known.insert(stack, node);
        node
    }

    fn child(&mut self, parent: u32, frame: Frame) -> u32 {
        if let Some(&node) = self.nodes.get(&(parent, frame)) {
            return node;
        }
        let node = u32::try_from(self.nodes.len() + 1).unwrap_or(u32::MAX);
        self.nodes.insert((parent, frame), node);
        self.bytes += 1;
        self.number(u64::from(parent));
        let (image, address) = match frame {
            Frame::Code { image, address } => (image.0, address),
            _ => (0, 0),
        };
        self.number(u64::from(image));
        self.number(address);
        node
    }
}

fn plain(bytes: &[u8]) -> Result<(u64, u64), Box<dyn Error>> {
    let mut replay = Replay::open(bytes)?;
    let (mut plain, mut samples, mut known) = (Plain::default(), 0, HashMap::new());
    loop {
        let sample = match replay.next()? {
            None => return Ok((samples, plain.bytes)),
            Some(Record::Sample(sample)) => sample,
            Some(Record::Epoch) => {
                known.clear();
                continue;
            }
            Some(_) => continue,
        };
        samples += 1;
        let tables = replay.tables();
        let callers = plain.node(tables, sample.callers, &mut known);
        let node = tables.frame(sample.leaf).map_or(0, |leaf| plain.child(callers, leaf));
        plain.bytes += 1;
        let time = sample.time_ns / u64::from(UNIT_NS);
        plain.number(time.wrapping_sub(plain.last));
        plain.number(u64::from(sample.thread.0));
        plain.number(u64::from(node));
        plain.last = time;
    }
}

/// The same records with other settings.
fn rewritten(bytes: &[u8], options: WriterOptions) -> Result<Vec<u8>, Box<dyn Error>> {
    let mut writer = Writer::new(Vec::new(), options)?;
    let mut replay = Replay::open(bytes)?;
    while let Some(record) = replay.next()? {
        writer.record(&record)?;
    }
    Ok(writer.finish().map_err(|unfinished| unfinished.error)?.0)
}

fn main() -> Result<(), Box<dyn Error>> {
    let options = WriterOptions::default().time_unit_ns(UNIT_NS);
    println!(
        "file | samples | plain | file | level 0 | 1 | 2 | 3 | 3, 64 KiB blocks | 3, 2 MiB | 3, exact times | level 0 as a whole: lz4 | zstd 1 | zstd 3"
    );
    for path in std::env::args().skip(1) {
        let bytes = fs::read(&path)?;
        let (samples, plain) = plain(&bytes)?;
        print!("{path} | {samples} | {plain} | {}", bytes.len());
        for level in 0..4 {
            print!(" | {}", rewritten(&bytes, options.compression_level(level))?.len());
        }
        for block_bytes in [64 << 10, 2 << 20] {
            print!(" | {}", rewritten(&bytes, options.block_bytes(block_bytes))?.len());
        }
        print!(" | {}", rewritten(&bytes, WriterOptions::default())?.len());
        let stored = rewritten(&bytes, options.compression_level(0))?;
        print!(" | {}", lz4_flex::compress(&stored).len());
        for level in [1, 3] {
            print!(" | {}", zstd::bulk::compress(&stored, level)?.len());
        }
        println!();
    }
    Ok(())
}
