//! The arguments of `export`.

use super::SelectArgs;
use clap::{Args, ValueEnum, ValueHint};
use std::path::{Path, PathBuf};

/// The forms a profile can be written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For `go tool pprof` and others that read its protocol buffers (.pb.gz)
    Pprof,
    /// For profiler.firefox.com: processes, threads, time (.json.gz)
    Firefox,
    /// For speedscope.app: the calls of each thread (.speedscope.json)
    Speedscope,
    /// One line a distinct stack: `comm;root;...;leaf COUNT` (.folded)
    Collapsed,
    /// A flame graph; see --icicle and --reverse (.svg)
    Svg,
    /// One page that needs nothing else: flame graph, search, threads, time (.html)
    Html,
    /// The text of `perf script`, for its many readers (.perf.txt)
    PerfScript,
    /// Trace events, for Perfetto (.trace.json)
    Chrome,
}

/// Endings of file names, and the form that each stands for; longer ones first.
const ENDINGS: &[(&str, Format)] = &[
    (".pb.gz", Format::Pprof),
    (".pprof", Format::Pprof),
    (".speedscope.json", Format::Speedscope),
    (".trace.json", Format::Chrome),
    (".json.gz", Format::Firefox),
    (".folded", Format::Collapsed),
    (".collapsed", Format::Collapsed),
    (".svg", Format::Svg),
    (".html", Format::Html),
    (".perf.txt", Format::PerfScript),
    (".perf", Format::PerfScript),
];

impl Format {
    /// Returns the form that a file's name asks for.
    pub(crate) fn of_path(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_string_lossy().to_ascii_lowercase();
        ENDINGS.iter().find(|(ending, _)| name.ends_with(ending)).map(|&(_, format)| format)
    }

    /// Says which endings are known.
    pub(crate) fn known_endings() -> String {
        let endings: Vec<&str> = ENDINGS.iter().map(|&(ending, _)| ending).collect();
        endings.join(", ")
    }
}

/// Writes a spool's stacks in another form.
#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// The form [default: by the ending of the output's name]
    #[arg(short, long, value_name = "FORMAT")]
    pub(crate) format: Option<Format>,

    /// The spool
    #[arg(value_name = "FILE", default_value = "stackpulse.spool", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,

    /// The file to write; what was there is kept as FILE.old [default: standard output]
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,

    /// svg: callers above, what they call below
    #[arg(long)]
    pub(crate) icicle: bool,

    /// svg: from the hottest functions to who calls them
    #[arg(long)]
    pub(crate) reverse: bool,

    /// firefox: write no more bytes than this (such as 500K, 20M); one sample then stands for several
    #[arg(long, value_name = "BYTES", value_parser = parse_size)]
    pub(crate) max_size: Option<u64>,

    /// Which samples.
    #[command(flatten)]
    pub(crate) select: SelectArgs,
}

fn parse_size(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let unit = match text[digits.len()..].trim().to_ascii_uppercase().as_str() {
        "" | "B" => 1,
        "K" | "KB" | "KIB" => 1 << 10,
        "M" | "MB" | "MIB" => 1 << 20,
        "G" | "GB" | "GIB" => 1 << 30,
        _ => return Err("give a size such as 500K, 20M or 1G".to_owned()),
    };
    let number: u64 =
        digits.parse().map_err(|_| "give a size such as 500K, 20M or 1G".to_owned())?;
    number.checked_mul(unit).ok_or_else(|| "this size is too large".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_ending_decides() {
        let cases = [
            ("a.pb.gz", Format::Pprof),
            ("a.json.gz", Format::Firefox),
            ("a.speedscope.json", Format::Speedscope),
            ("A.SVG", Format::Svg),
            ("/tmp/a.trace.json", Format::Chrome),
        ];
        for (name, format) in cases {
            assert_eq!(Format::of_path(Path::new(name)), Some(format), "{name}");
        }
        assert_eq!(Format::of_path(Path::new("a.json")), None);
    }

    #[test]
    fn sizes_have_units() {
        assert_eq!(parse_size("500K"), Ok(512_000));
        assert_eq!(parse_size("20 MiB"), Ok(20 << 20));
        assert_eq!(parse_size("7"), Ok(7));
        for text in ["", "x", "-1", "99999999999G", "1.5M"] {
            assert!(parse_size(text).is_err(), "{text}");
        }
    }
}
