//! The arguments of `import`.

use clap::{Args, ValueHint};
use std::path::PathBuf;

/// Turns what `perf record --call-graph dwarf` wrote into a spool.
#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// The perf.data file; `-`: a stream that `perf record -o -` writes, on standard input
    #[arg(value_name = "FILE", default_value = "perf.data", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,

    /// The spool to write; `-`: standard output
    #[arg(
        short,
        long,
        value_name = "FILE",
        default_value = "stackpulse.spool",
        value_hint = ValueHint::FilePath
    )]
    pub(crate) output: PathBuf,

    /// Look for the recorded files below this directory: those of another machine
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) symfs: Option<PathBuf>,

    /// Do not store names in the spool
    #[arg(long)]
    pub(crate) no_symbols: bool,

    /// Leave stacks deeper than what was recorded of them cut, instead of joining them to callers known from before
    #[arg(long)]
    pub(crate) no_join: bool,

    /// Say nothing about what was imported
    #[arg(short, long)]
    pub(crate) quiet: bool,

    /// Say every counter
    #[arg(short, long, conflicts_with = "quiet")]
    pub(crate) verbose: bool,
}
