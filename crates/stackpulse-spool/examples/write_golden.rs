//! Writes the golden files of the current version into a directory: once for a version, before it is released.
//!
//! Usage: `cargo run -p stackpulse-spool --example write_golden -- DIRECTORY`

#[path = "../tests/it/every_kind.rs"]
mod every_kind;

use every_kind::every_kind;
use stackpulse_spool::{
    ImageId, ImageKey, NamedCall, Record, RecordSink, Replay, Sample, Snapshot, StackId,
    SymbolTableBuilder, ThreadId, Writer, WriterOptions, append_symbols, text,
};
use std::error::Error;
use std::fmt::Write as _;
use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::{env, fs, mem};

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<()> {
    let directory = env::args_os().nth(1).map(PathBuf::from).ok_or("a directory is needed")?;
    let records = every_kind();
    for (at, record) in records.iter().enumerate() {
        let line = text::line(record).to_string();
        let kind = line.split(' ').next().unwrap_or_default();
        let kind = if kind == "frame" { format!("frame-{at}") } else { kind.to_owned() };
        store(&directory, &kind, &spool(&needed(&records, record), raw())?)?;
    }
    let blocks = spool(&records, raw().block_bytes(1))?;
    store(&directory, "blocks", &blocks)?;
    store(&directory, "torn", &blocks[..blocks.len() - 100])?;
    store(&directory, "aborted", &aborted(&records)?)?;
    store(&directory, "names", &named(&records)?)?;
    store(&directory, "samples", &spool(&samples(&records), raw())?)?;
    store(&directory, "compressed", &spool(&samples(&records), WriterOptions::default())?)
}

fn raw() -> WriterOptions {
    WriterOptions::default().compression_level(0)
}

/// A record with the definitions it may need.
fn needed<'a>(records: &[Record<'a>], record: &Record<'a>) -> Vec<Record<'a>> {
    let end = records.iter().position(|one| matches!(one, Record::Epoch)).unwrap_or(records.len());
    let defines = |one: &&Record<'_>| {
        matches!(
            one,
            Record::Image(_)
                | Record::Process(_)
                | Record::Thread(_)
                | Record::Frame(_)
                | Record::Stack(_)
        )
    };
    let mut needed: Vec<_> = records[..end].iter().filter(defines).copied().collect();
    if !defines(&record) {
        needed.push(*record);
    }
    needed
}

/// Many samples: late ones, pauses, several CPUs, changing threads and stacks, extreme numbers.
fn samples(records: &[Record<'static>]) -> Vec<Record<'static>> {
    let mut found = needed(records, &Record::End { time_ns: 5 });
    found.pop();
    let mut time_ns = 1_000_000_000u64;
    for at in 0..400u64 {
        time_ns = match at % 50 {
            49 => time_ns.wrapping_add(3_000_000_000),
            48 => u64::MAX - at,
            47 => 7,
            _ => time_ns.wrapping_add(1_000_000 + at * at % 977),
        };
        let pick = |count: u64| u32::try_from(at * at % count).unwrap_or_default();
        found.push(Record::Sample(Sample {
            time_ns,
            thread: ThreadId(0),
            cpu: [0, 1, 64, 65, u32::MAX][pick(5) as usize],
            weight: if at % 9 == 0 { u64::MAX - at } else { 1_003_009 },
            leaf: stackpulse_spool::FrameId(pick(3)),
            callers: StackId(pick(4)),
        }));
    }
    found.push(Record::End { time_ns });
    found
}

fn spool(records: &[Record<'_>], options: WriterOptions) -> Outcome<Vec<u8>> {
    let mut writer = Writer::new(Vec::new(), options)?;
    records.iter().try_for_each(|record| writer.record(record))?;
    Ok(writer.finish()?.0)
}

fn aborted(records: &[Record<'_>]) -> Outcome<Vec<u8>> {
    let mut writer = Writer::new(Vec::new(), raw())?;
    records[..20].iter().try_for_each(|record| writer.record(record))?;
    Ok(writer.abort()?.0)
}

fn named(records: &[Record<'_>]) -> Outcome<Vec<u8>> {
    let mut file = Cursor::new(spool(records, raw())?);
    for round in 0..2 {
        let mut names = SymbolTableBuilder::new();
        let inner = NamedCall { function: b"inlined", file: b"src/a.rs", line: 7, column: 3 };
        let outer = NamedCall { function: b"_ZN1a1bE", line: 9 + round, ..inner };
        let bare = NamedCall { function: b"caf\xc3\xa9 \"q\"", ..NamedCall::default() };
        let key = |epoch, image| ImageKey { epoch, image: ImageId(image) };
        names.insert(key(0, 0), 0x1234, 0x1200, 1, &[inner, outer]);
        names.insert(key(0, 0), 0x1290, 0x1290, 4, &[bare]);
        names.insert(key(1, 3), u64::MAX, 0, 2, &[]);
        append_symbols(&mut file, &names.build())?;
    }
    Ok(file.into_inner())
}

/// Stores a spool and what it decodes to.
fn store(directory: &Path, name: &str, bytes: &[u8]) -> Outcome<()> {
    let mut replay = Replay::open(bytes)?;
    let mut lines = String::new();
    while let Some(record) = replay.next()? {
        writeln!(lines, "{}", text::line(&record))?;
    }
    if let Some(names) = Snapshot::open(Cursor::new(bytes))?.names()? {
        for (key, address, answer) in names.iter() {
            writeln!(lines, "{}", text::name(key, address, answer))?;
        }
    }
    writeln!(lines, "{}", text::state(replay.state()))?;
    fs::write(directory.join(format!("{name}.spool")), bytes)?;
    fs::write(directory.join(format!("{name}.txt")), mem::take(&mut lines))?;
    Ok(())
}
