//! Names for many addresses of one program, beside three other libraries: time, memory, and whether the answers agree.
//!
//! Usage: `symbols_peers PROGRAM [ADDRESSES]` measures each library in a process of its own, which has read nothing of the
//! program before; `symbols_peers --agree PROGRAM [ADDRESSES]` compares the answers with llvm-symbolizer's and addr2line's.
//! The addresses are spread over `.text`.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program that prints a table")]

mod agree;
mod peers;

use object::read::elf::{ElfFile64, FileHeader, SectionHeader};
use object::{Endianness, ReadCache};
use peers::{Frame, PEERS};
use rustix::time::{ClockId, clock_gettime};
use std::error::Error;
use std::fs::File;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

/// How often each library is measured; the medians are shown.
const ROUNDS: usize = 5;

/// Addresses where no number is given.
const ADDRESSES: u64 = 10_000;

/// What one process took.
#[derive(Clone, Copy)]
struct Cost {
    wall_us: u64,
    cpu_us: u64,
    peak_kib: u64,
    named: u64,
}

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let count = |word: Option<&&str>| word.map_or(Ok(ADDRESSES), |word| word.parse());
    match words[..] {
        ["--one", peer, program, start, len, count] => {
            one(peer, Path::new(program), &spread(start.parse()?, len.parse()?, count.parse()?))
        }
        ["--agree", program, ..] => {
            let (start, len) = text(program)?;
            agree::run(Path::new(program), &spread(start, len, count(words.get(2))?))
        }
        [program, ..] if !program.starts_with('-') => table(program, count(words.get(1))?),
        _ => {
            eprintln!("usage: symbols_peers [--agree] PROGRAM [ADDRESSES]");
            std::process::exit(2);
        }
    }
}

/// Address and length of `.text`.
fn text(program: &str) -> Result<(u64, u64), Box<dyn Error>> {
    let file = ReadCache::new(File::open(program)?);
    let elf = ElfFile64::<Endianness, _>::parse(&file)?;
    let endian = elf.endian();
    let sections = elf.elf_header().sections(endian, &file)?;
    let (_, text) = sections.section_by_name(endian, b".text").ok_or("there is no .text")?;
    Ok((text.sh_addr(endian), text.sh_size(endian)))
}

/// Distinct addresses all over a range, in ascending order.
fn spread(start: u64, len: u64, count: u64) -> Vec<u64> {
    let step = (len / count.max(1)).max(1);
    // Not all at the same place in what is aligned.
    (0..count.min(len)).map(|at| start + at * step + at * 7 % step).collect()
}

/// Names the addresses with one library, and prints what that took.
fn one(peer: &str, program: &Path, addresses: &[u64]) -> Result<(), Box<dyn Error>> {
    let (_, ask) = PEERS.iter().find(|(name, _)| *name == peer).ok_or("no such library")?;
    let cpu = || clock_gettime(ClockId::ProcessCPUTime);
    let (wall, before) = (Instant::now(), cpu());
    let answers = ask(program, addresses)?;
    let (wall, after) = (wall.elapsed(), cpu());
    let cpu_us =
        (after.tv_sec - before.tv_sec) * 1_000_000 + (after.tv_nsec - before.tv_nsec) / 1000;
    let status = std::fs::read_to_string("/proc/self/status")?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
    let peak = peak.split_whitespace().next().unwrap_or_default();
    let is_named = |frames: &&Vec<Frame>| frames.iter().any(|frame| frame.function.is_some());
    let named = answers.iter().filter(is_named).count();
    println!("{} {cpu_us} {peak} {named}", wall.as_micros());
    Ok(())
}

fn measure(
    peer: &str,
    program: &str,
    range: (u64, u64),
    count: u64,
) -> Result<Cost, Box<dyn Error>> {
    let output = Command::new(std::env::current_exe()?)
        .args(["--one", peer, program])
        .args([range.0, range.1, count].map(|number| number.to_string()))
        .output()?;
    let text = String::from_utf8(output.stdout)?;
    let numbers: Vec<u64> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    match numbers[..] {
        [wall_us, cpu_us, peak_kib, named] => Ok(Cost { wall_us, cpu_us, peak_kib, named }),
        _ => Err(format!("{peer}: {}", String::from_utf8_lossy(&output.stderr)).into()),
    }
}

fn table(program: &str, count: u64) -> Result<(), Box<dyn Error>> {
    let range = text(program)?;
    let mut rows: Vec<Vec<Cost>> = vec![Vec::new(); PEERS.len()];
    // In turns, so that what disturbs disturbs all.
    for _ in 0..ROUNDS {
        for (row, (peer, _)) in rows.iter_mut().zip(PEERS) {
            row.push(measure(peer, program, range, count)?);
        }
    }
    println!("| library | time | CPU | memory | named of {count} |\n|---|---|---|---|---|");
    for ((name, _), row) in PEERS.iter().zip(&rows) {
        let median = |of: fn(&Cost) -> u64| {
            let mut values: Vec<u64> = row.iter().map(of).collect();
            values.sort_unstable();
            values[values.len() / 2]
        };
        println!(
            "| {name} | {} ms | {} ms | {} MB | {} |",
            median(|cost| cost.wall_us) / 1000,
            median(|cost| cost.cpu_us) / 1000,
            median(|cost| cost.peak_kib) / 1024,
            median(|cost| cost.named),
        );
    }
    Ok(())
}
