//! `man`: pages made from the definitions of the options.

use crate::args::{Args, ManArgs};
use crate::failure::Failure;
use clap::{Command, CommandFactory};
use clap_mangen::Man;
use std::fmt::Write as _;
use std::fs;

pub(crate) fn run(args: &ManArgs) -> Result<(), Failure> {
    let shown = args.directory.display();
    let failed = |error| Failure::new(format!("write pages into {shown}: {error}"));
    fs::create_dir_all(&args.directory).map_err(failed)?;
    if args.markdown {
        return fs::write(args.directory.join("cli.md"), markdown()).map_err(failed);
    }
    let mut command = Args::command();
    command.build();
    page(args, &command).map_err(failed)?;
    visible(&command).try_for_each(|command| page(args, command)).map_err(failed)
}

fn page(args: &ManArgs, command: &Command) -> std::io::Result<()> {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name());
    let mut roff = Vec::new();
    Man::new(command.clone()).render(&mut roff)?;
    fs::write(args.directory.join(format!("{name}.1")), roff)
}

/// The commands that people are to know of.
fn visible(command: &Command) -> impl Iterator<Item = &Command> {
    command
        .get_subcommands()
        .filter(|command| !command.is_hide_set() && command.get_name() != "help")
}

/// One page with the help of every command.
fn markdown() -> String {
    let mut command = Args::command().term_width(100);
    command.build();
    let mut text = String::from(
        "# The `stackpulse` command\n\nMade from the definitions of the options by `stackpulse man --markdown docs`.\n",
    );
    section(&mut text, &command);
    visible(&command).for_each(|command| section(&mut text, command));
    text
}

fn section(text: &mut String, command: &Command) {
    let name = command.get_bin_name().unwrap_or_else(|| command.get_name());
    let help = command.clone().term_width(100).render_long_help().to_string();
    let lines: Vec<&str> = help.lines().map(str::trim_end).collect();
    // Writing to a string cannot fail.
    let _ = writeln!(text, "\n## `{name}`\n\n```text\n{}\n```", lines.join("\n").trim_end());
}
