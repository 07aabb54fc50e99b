//! The `stackpulse` command: what was typed, what it means, a run, an exit status.

#![forbid(unsafe_code)]

mod analysis;
mod args;
mod commands;
mod failure;
mod names;
mod open;
mod output;
mod render;
mod select;
mod signals;

use args::{Args, Command};
use clap::Parser;
use failure::Failure;
use std::io::Write;
use std::process::ExitCode;

fn main() -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => {
            // Nothing is left to tell a caller whose output is closed.
            let _ = error.print();
            let recording = std::env::args_os().nth(1).is_some_and(|command| command == "record");
            return ExitCode::from(match (error.use_stderr(), recording) {
                (false, _) => 0,
                (true, true) => failure::RECORDER_FAILED,
                (true, false) => 2,
            });
        }
    };
    match run(args.command) {
        Ok(status) => ExitCode::from(status),
        Err(failure) => {
            // It may hold the name of any file.
            let lines: Vec<String> = failure.to_string().lines().map(render::printable).collect();
            let _ = writeln!(std::io::stderr(), "stackpulse: {}", lines.join("\n"));
            ExitCode::from(failure.status())
        }
    }
}

fn run(command: Command) -> Result<u8, Failure> {
    match command {
        Command::Record(args) => commands::record::run(&args),
        Command::Report(args) => commands::report::run(&args).map(|()| 0),
        Command::Info(args) => commands::info::run(&args).map(|()| 0),
        Command::Verify(args) => commands::verify::run(&args),
        Command::Export(args) => commands::export::run(&args).map(|()| 0),
        Command::Symbolize(args) => commands::symbolize::run(&args).map(|()| 0),
        Command::View(args) => commands::view::run(&args).map(|()| 0),
        Command::Import(args) => commands::import::run(&args).map(|()| 0),
        Command::Demo(args) => commands::demo::run(&args),
        Command::Top(args) => commands::top::run(&args).map(|()| 0),
        Command::Doctor(args) => commands::doctor::run(&args),
        Command::Cargo(args) => commands::cargo::run(&args),
        Command::Diff(args) => commands::diff::run(&args),
        Command::Completions(args) => commands::completions::run(&args).map(|()| 0),
        Command::Man(args) => commands::man::run(&args).map(|()| 0),
        Command::DemoWorkload(args) => commands::demo::burn(&args).map(|()| 0),
    }
}
