//! The arguments of `symbolize`.

use clap::{Args, ValueHint};
use std::path::PathBuf;

/// Looks for better names than a spool has stored, and stores them in it.
#[derive(Debug, Args)]
pub(crate) struct SymbolizeArgs {
    /// The spool
    #[arg(value_name = "FILE", default_value = "stackpulse.spool", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,

    /// Look for separate debug files here too (may be given again)
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) debug_dir: Vec<PathBuf>,

    /// Look for the recorded files below this directory
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) symfs: Option<PathBuf>,
}
