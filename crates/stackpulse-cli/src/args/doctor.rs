//! The arguments of `doctor`.

use clap::Args;

/// Says whether recording works here.
#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Look at this process too: permissions, and what its modules bring for names and stacks
    #[arg(short, long, value_name = "PID")]
    pub(crate) pid: Option<u32>,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
