//! The arguments of the commands that read a spool.

use super::SelectArgs;
use clap::{Args, ValueEnum, ValueHint};
use std::path::PathBuf;
use std::time::Duration;

/// Which spool, and in what form to speak of it.
#[derive(Debug, Args)]
pub(crate) struct FileArgs {
    /// The spool
    #[arg(value_name = "FILE", default_value = "stackpulse.spool", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,

    /// Print every record as text
    #[arg(long, conflicts_with = "json")]
    pub(crate) dump: bool,
}

/// Where names are looked for.
#[derive(Debug, Args)]
#[command(next_help_heading = "Names")]
pub(crate) struct SymbolArgs {
    /// Look for separate debug files here too (may be given again)
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) debug_dir: Vec<PathBuf>,

    /// Look for the recorded files below this directory
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) symfs: Option<PathBuf>,

    /// Do not show inlined calls
    #[arg(long)]
    pub(crate) no_inline: bool,
}

/// How the call tree is grown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TreeKind {
    /// From the outermost function down to what it calls
    Callees,
    /// From the hottest function up to who calls it
    Callers,
    /// No tree
    None,
}

/// What the first level of a report's rows is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum GroupBy {
    /// Functions
    Function,
    /// Modules
    Module,
    /// Threads
    Thread,
    /// Processes
    Process,
}

/// Shows the hottest functions and the call tree of a spool.
#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// The spool
    #[arg(value_name = "FILE", default_value = "stackpulse.spool", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,

    /// Print JSON: functions with self and total sample counts
    #[arg(long)]
    pub(crate) json: bool,

    /// Which call tree to print
    #[arg(long, value_name = "KIND", default_value = "callees")]
    pub(crate) tree: TreeKind,

    /// What the rows of the table are
    #[arg(long, value_name = "WHAT", default_value = "function")]
    pub(crate) by: GroupBy,

    /// Tell source lines apart in the table of functions, and show file and line
    #[arg(long)]
    pub(crate) lines: bool,

    /// Do not page the report on a terminal (pager: STACKPULSE_PAGER, else PAGER, else less)
    #[arg(long)]
    pub(crate) no_pager: bool,

    /// Which samples.
    #[command(flatten)]
    pub(crate) select: SelectArgs,
}

/// Records a small built-in workload.
#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// How long the workload runs
    #[arg(long, value_name = "TIME", default_value = "3s", value_parser = super::duration::parse)]
    pub(crate) duration: Duration,
}
