//! What was typed.

mod duration;
mod import;
mod record;
mod report;

pub(crate) use import::ImportArgs;
pub(crate) use record::{EventName, Rate, RecordArgs};
pub(crate) use report::{
    DemoArgs, ExportArgs, FileArgs, Format, GroupBy, ReportArgs, SymbolArgs, TreeKind,
};

use clap::{Parser, Subcommand};

/// Samples a program many times a second and shows where its time goes.
#[derive(Debug, Parser)]
#[command(name = "stackpulse", version, about, max_term_width = 100, infer_subcommands = false)]
pub(crate) struct Args {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Record a program, or a running process, into a spool
    Record(RecordArgs),
    /// Show the hottest functions and the call tree of a spool
    Report(ReportArgs),
    /// Say what a spool says of itself: settings, loss, truncation, processes
    Info(FileArgs),
    /// Check every block of a spool: exit status 0 sound, 1 torn but readable, 2 damaged
    Verify(FileArgs),
    /// Write a spool's stacks in another form
    Export(ExportArgs),
    /// Turn a perf.data file with user stacks into a spool
    Import(ImportArgs),
    /// Record a small built-in workload and show its report
    Demo(DemoArgs),
    /// The workload that `demo` records
    #[command(hide = true)]
    DemoWorkload(DemoArgs),
}
