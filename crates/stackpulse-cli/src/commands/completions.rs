//! `completions`: what a shell is to know of this command.

use super::report::closed_pipe_is_fine;
use crate::args::{Args, CompletionsArgs};
use crate::failure::Failure;
use clap::CommandFactory;
use std::io::Write;

pub(crate) fn run(args: &CompletionsArgs) -> Result<(), Failure> {
    // Its writer panics where output fails, so it writes to memory.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Args::command(), "stackpulse", &mut script);
    closed_pipe_is_fine(std::io::stdout().lock().write_all(&script))
}
