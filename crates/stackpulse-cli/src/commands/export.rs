//! `export`: a spool's stacks in the form of another program.

use super::report::closed_pipe_is_fine;
use crate::args::{ExportArgs, Format};
use crate::failure::Failure;
use crate::output::Output;
use crate::{open, select};
use stackpulse_export::{
    FlameGraph, Profile, write_chrome, write_collapsed, write_firefox, write_html,
    write_perf_script, write_pprof, write_speedscope, write_svg,
};
use std::io::{self, BufWriter, Write};

pub(crate) fn run(args: &ExportArgs) -> Result<(), Failure> {
    let format = format(args)?;
    let opened = open::profile_over_time(&args.file, &args.select)?;
    for note in &opened.notes {
        // Standard error may be closed; what is written is the same.
        let _ = writeln!(io::stderr().lock(), "stackpulse: note: {note}");
    }
    if opened.profile.stacks.total == 0 {
        let _ =
            writeln!(io::stderr().lock(), "stackpulse: 0 samples because {}", opened.why_none());
    }
    let mut profile = opened.profile;
    if let Some(percent) = args.select.percent_limit {
        profile.cut_rare(select::least_samples(percent, profile.stacks.total));
    }
    let Some(path) = &args.output else {
        return closed_pipe_is_fine(write(&profile, format, args, io::stdout().lock()));
    };
    let (output, undo) =
        Output::create(path).map_err(|failure| Failure::new(failure.to_string()))?;
    match write(&profile, format, args, output) {
        Ok(()) => {
            undo.keep();
            Ok(())
        }
        Err(error) => {
            undo.undo();
            Err(Failure::new(format!("write {}: {error}", path.display())))
        }
    }
}

fn format(args: &ExportArgs) -> Result<Format, Failure> {
    let by_name = || args.output.as_deref().and_then(Format::of_path);
    args.format.or_else(by_name).ok_or_else(|| {
        let endings = Format::known_endings();
        Failure::new(format!(
            "which form? Say it with -f FORMAT, or by the ending of -o FILE: {endings}"
        ))
    })
}

fn write(profile: &Profile, format: Format, args: &ExportArgs, out: impl Write) -> io::Result<()> {
    let out = BufWriter::with_capacity(1 << 16, out);
    match format {
        Format::Pprof => write_pprof(profile, out),
        Format::Firefox => write_firefox(profile, args.max_size, out),
        Format::Speedscope => write_speedscope(profile, out),
        Format::Collapsed => write_collapsed(profile, out),
        Format::Svg => {
            let how = FlameGraph { is_icicle: args.icicle, is_reversed: args.reverse };
            write_svg(profile, how, out)
        }
        Format::Html => write_html(profile, out),
        Format::PerfScript => write_perf_script(profile, out),
        Format::Chrome => write_chrome(profile, out),
    }
}
