//! The arguments of the commands that tell of the command itself.

use clap::{Args, ValueHint};
use clap_complete::Shell;
use std::path::PathBuf;

/// Prints a shell's completions for this command.
#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_name = "SHELL")]
    pub(crate) shell: Shell,
}

/// Writes man pages, or one page of Markdown.
#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// The directory, made if it is not there
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) directory: PathBuf,

    /// Write `cli.md` instead, with the help of every command
    #[arg(long)]
    pub(crate) markdown: bool,
}
