//! `export`: a spool's stacks in the form of another program.

use super::report::closed_pipe_is_fine;
use crate::args::{ExportArgs, Format};
use crate::failure::Failure;
use crate::{open, select};
use stackpulse_export::write_collapsed;
use std::fs::File;
use std::io::{self, BufWriter, Write};

pub(crate) fn run(args: &ExportArgs) -> Result<(), Failure> {
    let mut profile = open::profile(&args.file, &args.select)?.profile;
    if let Some(percent) = args.select.percent_limit {
        profile.cut_rare(select::least_samples(percent, profile.stacks.total));
    }
    let out: Box<dyn Write> = match &args.output {
        None => Box::new(io::stdout().lock()),
        Some(path) => Box::new(
            File::create(path)
                .map_err(|error| Failure::new(format!("create {}: {error}", path.display())))?,
        ),
    };
    closed_pipe_is_fine(match args.format {
        Format::Collapsed => write_collapsed(&profile, BufWriter::new(out)),
    })
}
