//! How a recording ends: names are stored, what there is is told, and shown if that is wanted.

use super::own_failure;
use crate::args::{Args, Command, Format, RecordArgs};
use crate::commands::{export, report};
use crate::failure::Failure;
use crate::output::Output;
use crate::render::progress::Audience;
use crate::render::summary::{Closing, own_cpu_seconds, print_summary};
use crate::{names, open};
use clap::{Parser, ValueEnum};
use stackpulse_record::{Settings, Summary};
use stackpulse_spool::append_symbols;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;

/// Stores names, says what was recorded, and shows the report if that is wanted.
pub(super) fn conclude(
    args: &RecordArgs,
    settings: Settings,
    summary: &Summary,
    output: Output,
) -> Result<(), Failure> {
    let own_cpu_seconds = own_cpu_seconds();
    let say = |unnamed, lost_span_ns| {
        if args.quiet {
            return;
        }
        let bytes = std::fs::metadata(&args.output)
            .map_or(summary.bytes_written, |metadata| metadata.len());
        let closing = Closing {
            path: &args.output,
            bytes,
            settings,
            summary,
            unnamed,
            lost_span_ns,
            own_cpu_seconds,
            is_verbose: args.verbose > 0,
        };
        // Standard error may be closed; the recording is complete all the same.
        let _ = print_summary(&closing, &mut io::stderr().lock());
    };
    let Some(mut file) = output.into_file() else {
        say(None, None);
        return Ok(());
    };
    let lost_span_ns =
        if summary.events_lost > 0 { open::lost_span_ns(&args.output)? } else { None };
    let mut unnamed = None;
    if !args.no_symbols {
        let loaded = open::load(&args.output)?;
        let audience = if args.quiet { Audience::Nobody } else { Audience::Terminal };
        let table = names::table(&loaded.stacks, loaded.boot_id, None, audience);
        unnamed = names::unnamed(&loaded.stacks, &table);
        append_symbols(&mut file, &table).map_err(|error| {
            own_failure(format!(
                "store names in {}: {error}; the samples are complete",
                args.output.display()
            ))
        })?;
    }
    say(unnamed, lost_span_ns);
    drop::<File>(file);
    if let Some(format) = args.format {
        export_as(args, format)?;
    }
    if args.report { show_report(args) } else { Ok(()) }
}

/// Shows the report, as `stackpulse report FILE` would.
fn show_report(args: &RecordArgs) -> Result<(), Failure> {
    io::stdout().flush()?;
    match words(&["report".into(), args.output.clone().into_os_string()])? {
        Command::Report(report) => report::run(&report),
        _ => Ok(()),
    }
}

/// Writes another form beside the spool, as `stackpulse export -f FORMAT -o FILE.ENDING FILE` would.
fn export_as(args: &RecordArgs, format: Format) -> Result<(), Failure> {
    let name = format.to_possible_value().map(|value| value.get_name().to_owned());
    let name = name.unwrap_or_default();
    let ending = match name.as_str() {
        "pprof" => "pb.gz",
        "firefox" => "json.gz",
        "speedscope" => "speedscope.json",
        "chrome" => "trace.json",
        "perf-script" => "perf.txt",
        "collapsed" => "folded",
        other => other,
    };
    let mut output = PathBuf::from(&args.output);
    output.set_extension(ending);
    let line = [
        "export".into(),
        "--format".into(),
        name.into(),
        "--output".into(),
        output.clone().into_os_string(),
        args.output.clone().into_os_string(),
    ];
    match words(&line)? {
        Command::Export(export) => export::run(&export)?,
        _ => return Ok(()),
    }
    if !args.quiet {
        let _ = writeln!(io::stderr().lock(), "  written: {}", output.display());
    }
    Ok(())
}

/// What a command line means, in which everything left out has its default.
fn words(line: &[OsString]) -> Result<Command, Failure> {
    let line = std::iter::once("stackpulse".into()).chain(line.iter().cloned());
    Ok(Args::try_parse_from(line).map_err(|error| own_failure(error.to_string()))?.command)
}
