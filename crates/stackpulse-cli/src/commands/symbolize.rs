//! `symbolize`: names that were not to be had when a spool was recorded.

use crate::args::SymbolizeArgs;
use crate::commands::report::closed_pipe_is_fine;
use crate::failure::Failure;
use crate::names::{self, Refreshed};
use crate::open;
use stackpulse_spool::append_symbols;
use stackpulse_symbolize::{Origin, SymbolizerOptions};
use std::fs::OpenOptions;
use std::io::{self, Write};

pub(crate) fn run(args: &SymbolizeArgs) -> Result<(), Failure> {
    let loaded = open::load(&args.file)?;
    let options = SymbolizerOptions {
        debug_dirs: args.debug_dir.clone(),
        symfs: args.symfs.clone(),
        boot_id: loaded.boot_id,
        ..SymbolizerOptions::default()
    };
    let refreshed = names::refresh(&loaded.stacks, loaded.symbols.as_ref(), options);
    if refreshed.better > 0 {
        let shown = args.file.display();
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .open(&args.file)
            .map_err(|error| Failure::new(format!("open {shown} to store names: {error}")))?;
        append_symbols(&mut file, &refreshed.table).map_err(|error| {
            Failure::new(format!("store names in {shown}: {error}; it is as it was before"))
        })?;
    }
    closed_pipe_is_fine(print(&refreshed, io::stdout().lock()))
}

fn print(refreshed: &Refreshed, mut out: impl Write) -> io::Result<()> {
    let better = match refreshed.better {
        0 => "no better names found".to_owned(),
        count => format!("{count} of them better than before"),
    };
    writeln!(out, "{} of {} addresses named; {better}", refreshed.named, refreshed.addresses)?;
    for (path, origin) in &refreshed.files {
        writeln!(out, "  {} of {}", source(*origin), path.display())?;
    }
    out.flush()
}

fn source(origin: Origin) -> &'static str {
    match origin {
        Origin::DebugInformation => "debug information",
        Origin::SymbolTable => "symbols",
        Origin::MiniDebugInformation => "packed symbols",
        Origin::DynamicSymbols => "exported symbols",
        Origin::Stub => "linkage stubs",
        Origin::Kallsyms => "the running kernel",
        Origin::Recording => "the recording",
    }
}
