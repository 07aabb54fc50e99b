//! What was typed.

mod cargo;
mod diff;
mod doctor;
mod duration;
mod examples;
mod export;
mod import;
mod pages;
mod record;
mod report;
mod select;
mod symbolize;
mod top;
mod view;

pub(crate) use cargo::CargoArgs;
pub(crate) use diff::{Condition, DiffArgs, DiffFormat, Measure};
pub(crate) use doctor::DoctorArgs;
pub(crate) use export::{ExportArgs, Format};
pub(crate) use import::ImportArgs;
pub(crate) use pages::{CompletionsArgs, ManArgs};
pub(crate) use record::{EventName, Rate, RecordArgs};
pub(crate) use report::{DemoArgs, FileArgs, GroupBy, ReportArgs, SymbolArgs, TreeKind};
pub(crate) use select::{Moment, SelectArgs, TimeRange};
pub(crate) use symbolize::SymbolizeArgs;
pub(crate) use top::TopArgs;
pub(crate) use view::ViewArgs;

use clap::{Parser, Subcommand};

/// Samples a program many times a second and shows where its time goes.
#[derive(Debug, Parser)]
#[command(name = "stackpulse", version, max_term_width = 100, infer_subcommands = false, after_help = examples::ALL)]
pub(crate) struct Args {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Record a program, or a running process, into a spool
    #[command(after_help = examples::RECORD)]
    Record(RecordArgs),
    /// Show the hottest functions and the call tree of a spool
    #[command(after_help = examples::REPORT)]
    Report(ReportArgs),
    /// Say what a spool says of itself: settings, loss, truncation, processes
    #[command(after_help = examples::INFO)]
    Info(FileArgs),
    /// Check every block of a spool: exit status 0 sound, 1 torn but readable, 2 damaged
    #[command(after_help = examples::VERIFY)]
    Verify(FileArgs),
    /// Write a spool's stacks in another form
    #[command(after_help = examples::EXPORT)]
    Export(ExportArgs),
    /// Say which functions take more or less of the time in B than in A, and how sure that is
    #[command(after_help = examples::DIFF)]
    Diff(DiffArgs),
    /// Watch the hottest functions of a process, or of a spool that is being written
    #[command(after_help = examples::TOP)]
    Top(Box<TopArgs>),
    /// Say whether recording works here, and what stands in its way
    #[command(after_help = examples::DOCTOR)]
    Doctor(DoctorArgs),
    /// Build a target of a Cargo package, and record it
    #[command(after_help = examples::CARGO)]
    Cargo(Box<CargoArgs>),
    /// Look for better names than a spool has stored, and store them in it
    #[command(after_help = examples::SYMBOLIZE)]
    Symbolize(SymbolizeArgs),
    /// Show a spool in the browser: a page served to this machine only
    #[command(after_help = examples::VIEW)]
    View(ViewArgs),
    /// Turn a perf.data file with user stacks into a spool
    Import(ImportArgs),
    /// Record a small built-in workload and show its report
    Demo(DemoArgs),
    /// Print a shell's completions for this command
    #[command(after_help = examples::COMPLETIONS)]
    Completions(CompletionsArgs),
    /// Write man pages, or one page of Markdown, into a directory
    Man(ManArgs),
    /// The workload that `demo` records
    #[command(hide = true)]
    DemoWorkload(DemoArgs),
}
