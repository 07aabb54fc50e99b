//! The arguments of `view`.

use super::SelectArgs;
use clap::{Args, ValueHint};
use std::path::PathBuf;

/// Shows a spool in the browser.
#[derive(Debug, Args)]
pub(crate) struct ViewArgs {
    /// The spool
    #[arg(value_name = "FILE", default_value = "stackpulse.spool", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,

    /// Only print the address; do not open a browser
    #[arg(long)]
    pub(crate) no_open: bool,

    /// The port to listen on, on this machine only; 0: any that is free
    #[arg(long, default_value = "0")]
    pub(crate) port: u16,

    /// Which samples.
    #[command(flatten)]
    pub(crate) select: SelectArgs,
}
