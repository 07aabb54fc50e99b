//! The arguments of `cargo`.

use super::{Format, Rate};
use clap::{Args, ValueHint};
use std::ffi::OsString;
use std::path::PathBuf;

/// Builds a target of the Cargo package here, and records it.
#[derive(Debug, Args)]
#[command(
    override_usage = "stackpulse cargo [OPTIONS] [-- ARGUMENT...]",
    next_help_heading = "What to build"
)]
pub(crate) struct CargoArgs {
    /// Record this binary [default: the only one]
    #[arg(long, value_name = "NAME", group = "target")]
    pub(crate) bin: Option<String>,

    /// Record this example
    #[arg(long, value_name = "NAME", group = "target")]
    pub(crate) example: Option<String>,

    /// Record this test; without a name the library's own tests
    #[arg(long, value_name = "NAME", group = "target", num_args = 0..=1, default_missing_value = "")]
    pub(crate) test: Option<String>,

    /// Record this bench
    #[arg(long, value_name = "NAME", group = "target")]
    pub(crate) bench: Option<String>,

    /// The package
    #[arg(short, long, value_name = "NAME")]
    pub(crate) package: Option<String>,

    /// Build without optimisation [default: the release profile, with debug information added]
    #[arg(long, alias = "debug", conflicts_with = "profile")]
    pub(crate) dev: bool,

    /// Build with this profile
    #[arg(long, value_name = "NAME")]
    pub(crate) profile: Option<String>,

    /// Features, as cargo takes them
    #[arg(long, value_name = "FEATURES")]
    pub(crate) features: Vec<String>,

    /// Without the default features
    #[arg(long)]
    pub(crate) no_default_features: bool,

    /// With all features
    #[arg(long)]
    pub(crate) all_features: bool,

    /// The package's Cargo.toml
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) manifest_path: Option<PathBuf>,

    /// Samples per second and CPU, or `max`
    #[arg(short = 'F', long, value_name = "HZ|max", default_value = "997", value_parser = super::record::parse_rate, help_heading = "Recording")]
    pub(crate) freq: Rate,

    /// The spool to write
    #[arg(short, long, value_name = "FILE", default_value = "stackpulse.spool", value_hint = ValueHint::FilePath, help_heading = "Recording")]
    pub(crate) output: PathBuf,

    /// Write this form too, beside the spool
    #[arg(short, long, value_name = "FORMAT", help_heading = "Recording")]
    pub(crate) format: Option<Format>,

    /// Show the report when the program has ended
    #[arg(long, help_heading = "Recording")]
    pub(crate) report: bool,

    /// Say nothing but errors
    #[arg(short, long, help_heading = "Recording")]
    pub(crate) quiet: bool,

    /// What the program gets
    #[arg(last = true, value_name = "ARGUMENT")]
    pub(crate) arguments: Vec<OsString>,
}
