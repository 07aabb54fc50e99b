//! The arguments of `record`.

use super::Format;
use clap::{ArgAction, Args, ValueEnum, ValueHint};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// Records a program, or a running process, into a spool.
#[derive(Debug, Args)]
#[command(
    override_usage = "stackpulse record [OPTIONS] [--] [VAR=VALUE]... COMMAND [ARGUMENT]...\n       \
                            stackpulse record [OPTIONS] -p PID[,PID]...\n       \
                            stackpulse record [OPTIONS] -a | -G GROUP [[--] COMMAND [ARGUMENT]...]"
)]
pub(crate) struct RecordArgs {
    /// Record these running processes and their children
    #[arg(
        short,
        long,
        value_name = "PID",
        value_delimiter = ',',
        conflicts_with = "command",
        help_heading = "What to record"
    )]
    pub(crate) pid: Vec<u32>,

    /// Record everything that runs on the machine; a COMMAND says how long
    #[arg(short, long, conflicts_with_all = ["pid", "cgroup"], help_heading = "What to record")]
    pub(crate) all_cpus: bool,

    /// Record what this control group (version 2) and those below it run; a COMMAND says how long
    #[arg(short = 'G', long, value_name = "GROUP", value_hint = ValueHint::DirPath, conflicts_with = "pid", help_heading = "What to record")]
    pub(crate) cgroup: Option<PathBuf>,

    /// Sample these CPUs only (`0-3,6`); alone, everything that runs on them
    #[arg(short = 'C', long, value_name = "LIST", value_parser = parse_cpus, help_heading = "What to record")]
    pub(crate) cpu: Option<CpuList>,

    /// Stop after this long (`10`, `1.5s`, `250ms`, `2m`)
    #[arg(short, long, value_name = "TIME", value_parser = super::duration::parse, help_heading = "What to record")]
    pub(crate) duration: Option<Duration>,

    /// Begin sampling this long after the start
    #[arg(short = 'D', long, value_name = "TIME", value_parser = super::duration::parse, help_heading = "What to record")]
    pub(crate) delay: Option<Duration>,

    /// The spool to write; `-` is standard output. A file that is there is kept as FILE.old
    #[arg(short, long, value_name = "FILE", default_value = "stackpulse.spool", value_hint = ValueHint::FilePath, help_heading = "Output")]
    pub(crate) output: PathBuf,

    /// Samples per second and CPU, or `max`
    #[arg(short = 'F', long = "freq", short_alias = 'r', alias = "rate", value_name = "HZ|max", default_value = "997", value_parser = parse_rate, help_heading = "Sampling")]
    pub(crate) freq: Rate,

    /// The event to sample [default: cycles where the machine counts them, else cpu-clock]
    #[arg(short, long, value_name = "EVENT", help_heading = "Sampling")]
    pub(crate) event: Option<EventName>,

    /// How callers are found, and how many bytes of stack are copied for it
    #[arg(short = 'g', long, value_name = "dwarf[,BYTES]", num_args = 0..=1, default_missing_value = "dwarf,32768", value_parser = parse_call_graph, default_value = "dwarf,32768", help_heading = "Sampling")]
    pub(crate) call_graph: CallGraph,

    /// Pages of ring memory per CPU
    #[arg(short, long, value_name = "PAGES", help_heading = "Sampling")]
    pub(crate) mmap_pages: Option<u32>,

    /// Do not follow children
    #[arg(short = 'i', long, help_heading = "What to record")]
    pub(crate) no_inherit: bool,

    /// Record kernel frames, or fail [default: record them where it is permitted]
    #[arg(long, overrides_with = "no_kernel", help_heading = "Sampling")]
    pub(crate) kernel: bool,

    /// Do not record kernel frames
    #[arg(long, help_heading = "Sampling")]
    pub(crate) no_kernel: bool,

    /// Pause a running process while attaching, for some microseconds (the default)
    #[arg(long, overrides_with = "no_stop", help_heading = "What to record")]
    pub(crate) stop: bool,

    /// Do not pause a running process while attaching
    #[arg(long, help_heading = "What to record")]
    pub(crate) no_stop: bool,

    /// Do not store names in the spool
    #[arg(long, help_heading = "Output")]
    pub(crate) no_symbols: bool,

    /// Show the report when the recording has ended
    #[arg(long, help_heading = "Output")]
    pub(crate) report: bool,

    /// Write this form too, beside the spool, when the recording has ended
    #[arg(short = 'f', long, value_name = "FORMAT", help_heading = "Output")]
    pub(crate) format: Option<Format>,

    /// Stop when the spool has grown to this many bytes (`500M`, `2G`)
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes, help_heading = "Output")]
    pub(crate) max_size: Option<u64>,

    /// Say nothing but errors
    #[arg(short, long, help_heading = "Output")]
    pub(crate) quiet: bool,

    /// Say more
    #[arg(short, long, action = ArgAction::Count, help_heading = "Output")]
    pub(crate) verbose: u8,

    /// The program to record and its arguments; `VAR=VALUE` before it as with env(1)
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "COMMAND", value_hint = ValueHint::CommandWithArguments)]
    pub(crate) command: Vec<OsString>,
}

/// Linux numbers CPUs up to this.
const LAST_CPU: u32 = 8191;

/// A sample rate as typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rate {
    /// That many a second.
    Hz(u32),
    /// As many as the kernel allows.
    Maximum,
}

/// Numbers of CPUs, ascending, each once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CpuList(pub(crate) Vec<u32>);

/// `-g dwarf,BYTES`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CallGraph {
    /// Bytes of stack copied with each sample.
    pub(crate) stack_size: u32,
}

/// The events that can be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum EventName {
    /// The processor's cycle counter
    #[value(alias = "cpu-cycles")]
    Cycles,
    /// A timer of CPU time, for machines without counters
    CpuClock,
}

pub(super) fn parse_rate(text: &str) -> Result<Rate, String> {
    match text {
        "max" => Ok(Rate::Maximum),
        _ => match text.parse() {
            Ok(0) => Err("0 Hz takes no samples; use 1 or more".to_owned()),
            Ok(hz) => Ok(Rate::Hz(hz)),
            Err(_) => Err("not a number of samples per second, nor `max`".to_owned()),
        },
    }
}

/// Reads `0-3,6` as the kernel writes lists of CPUs.
fn parse_cpus(text: &str) -> Result<CpuList, String> {
    let mut cpus = BTreeSet::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let number = |text: &str| -> Result<u32, String> {
            let cpu = text.trim().parse().ok().filter(|&cpu| cpu <= LAST_CPU);
            cpu.ok_or_else(|| format!("`{part}` is not a CPU, nor a range such as 0-3"))
        };
        let (first, last) = (number(first)?, number(last)?);
        if first > last {
            return Err(format!("`{part}` ends before it begins"));
        }
        cpus.extend(first..=last);
    }
    Ok(CpuList(cpus.into_iter().collect()))
}

fn parse_call_graph(text: &str) -> Result<CallGraph, String> {
    let (method, size) = text.split_once(',').unwrap_or((text, "32768"));
    if method != "dwarf" {
        return Err(format!("`{method}` is not a way to find callers here; use dwarf[,BYTES]"));
    }
    let stack_size: u32 = size.parse().map_err(|_| format!("`{size}` is not a number of bytes"))?;
    if stack_size > stackpulse_record::MAX_STACK_SIZE {
        return Err(format!(
            "the kernel copies at most {} bytes",
            stackpulse_record::MAX_STACK_SIZE
        ));
    }
    Ok(CallGraph { stack_size })
}

/// Reads a number of bytes with an optional `K`, `M` or `G` (powers of 1,024).
fn parse_bytes(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let shift = match &text[digits.len()..] {
        "" | "B" => 0,
        "K" | "KB" | "KiB" | "k" => 10,
        "M" | "MB" | "MiB" => 20,
        "G" | "GB" | "GiB" => 30,
        unit => return Err(format!("unknown unit `{unit}`; use K, M or G")),
    };
    let number: u64 = digits.parse().map_err(|_| "not a number of bytes".to_owned())?;
    number.checked_mul(1 << shift).ok_or_else(|| "too large".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn call_graphs_are_perfs_dwarf_with_a_bounded_size() {
        assert_eq!(parse_call_graph("dwarf").unwrap().stack_size, 32_768);
        assert_eq!(parse_call_graph("dwarf,8192").unwrap().stack_size, 8192);
        for text in ["fp", "lbr", "dwarf,", "dwarf,x", "dwarf,65529", "dwarf,-1"] {
            assert!(parse_call_graph(text).is_err(), "{text}");
        }
    }

    #[test]
    fn sizes_take_binary_units() {
        assert_eq!(parse_bytes("500"), Ok(500));
        assert_eq!(parse_bytes("2K"), Ok(2048));
        assert_eq!(parse_bytes("1GiB"), Ok(1 << 30));
        assert!(parse_bytes("99999999999G").is_err());
        assert!(parse_bytes("K").is_err());
    }

    #[test]
    fn lists_of_cpus_are_numbers_and_ranges() {
        assert_eq!(parse_cpus("6,0-2,1"), Ok(CpuList(vec![0, 1, 2, 6])));
        for text in ["", "a", "3-1", "0-", "-1", "1,,2", "0-4294967295"] {
            assert!(parse_cpus(text).is_err(), "{text}");
        }
    }

    #[test]
    fn rates_are_positive_or_max() {
        assert_eq!(parse_rate("max"), Ok(Rate::Maximum));
        assert_eq!(parse_rate("997"), Ok(Rate::Hz(997)));
        assert!(parse_rate("0").is_err());
        assert!(parse_rate("fast").is_err());
    }
}
