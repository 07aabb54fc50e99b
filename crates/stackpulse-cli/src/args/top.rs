//! The arguments of `top`.

use super::SelectArgs;
use clap::{Args, ValueHint};
use std::path::PathBuf;

/// Shows the hottest functions as they run.
#[derive(Debug, Args)]
#[command(override_usage = "stackpulse top [OPTIONS] -p PID\n       stackpulse top [OPTIONS] FILE")]
pub(crate) struct TopArgs {
    /// A spool, which may still be written
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath, required_unless_present = "process", conflicts_with = "process")]
    pub(crate) file: Option<PathBuf>,

    /// Record this process meanwhile, and its children
    #[arg(short = 'p', long, value_name = "PID")]
    pub(crate) process: Option<u32>,

    /// Samples per second and CPU, or `max`
    #[arg(short = 'F', long, value_name = "HZ|max", default_value = "997", value_parser = super::record::parse_rate)]
    pub(crate) freq: super::Rate,

    /// Which samples.
    #[command(flatten)]
    pub(crate) select: SelectArgs,
}
