//! The arguments of `diff`.

use super::SelectArgs;
use clap::{Args, ValueEnum, ValueHint};
use std::path::PathBuf;

/// Compares two programs, or two builds of one.
#[derive(Debug, Args)]
#[command(
    override_usage = "stackpulse diff [OPTIONS] A B\n       stackpulse diff [OPTIONS] -A FILE,... -B FILE,..."
)]
pub(crate) struct DiffArgs {
    /// The spool before, and the one after
    #[arg(value_name = "FILE", num_args = 2, required_unless_present = "before", conflicts_with_all = ["before", "after"], value_hint = ValueHint::FilePath)]
    pub(crate) files: Vec<PathBuf>,

    /// Several spools before
    #[arg(short = 'A', long, value_name = "FILE", value_delimiter = ',', requires = "after", value_hint = ValueHint::FilePath)]
    pub(crate) before: Vec<PathBuf>,

    /// Several spools after
    #[arg(short = 'B', long, value_name = "FILE", value_delimiter = ',', requires = "before", value_hint = ValueHint::FilePath)]
    pub(crate) after: Vec<PathBuf>,

    /// End with status 1 where this holds, beyond doubt: `self(FUNCTION) > +3%`, `total(FUNCTION) < -1%`; `*` is any function (may be given again)
    #[arg(long, value_name = "CONDITION", value_parser = parse_condition)]
    pub(crate) fail_if: Vec<Condition>,

    /// The form of the answer
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub(crate) format: DiffFormat,

    /// Print JSON
    #[arg(long, conflicts_with = "format")]
    pub(crate) json: bool,

    /// The file to write [default: standard output]
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,

    /// Which samples.
    #[command(flatten)]
    pub(crate) select: SelectArgs,
}

/// What a comparison looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DiffFormat {
    /// A table for people
    Text,
    /// Facts for programs
    Json,
    /// A table for a review
    Markdown,
    /// A flame graph of B, coloured by what changed
    Svg,
}

/// What of a function is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Measure {
    /// Samples that ended in it.
    Own,
    /// Samples that went through it.
    Total,
}

/// A change that is not to be.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Condition {
    /// As it was typed.
    pub(crate) text: String,
    pub(crate) measure: Measure,
    /// Whose; `None`: any function's.
    pub(crate) function: Option<String>,
    /// Whether the change must lie above the limit, or below it.
    pub(crate) is_above: bool,
    /// In percent of all samples.
    pub(crate) limit_percent: f64,
}

fn parse_condition(text: &str) -> Result<Condition, String> {
    let form = || "write self(FUNCTION) > +3%, or total(FUNCTION) < -1%".to_owned();
    let (measure, rest) = text.split_once('(').ok_or_else(form)?;
    let measure = match measure.trim() {
        "self" => Measure::Own,
        "total" => Measure::Total,
        _ => return Err(form()),
    };
    // A function's name may hold parentheses and comparisons; the limit does not.
    let (function, limit) = rest.rsplit_once(')').ok_or_else(form)?;
    let limit = limit.trim_start();
    let is_above = limit.starts_with('>');
    let number = limit.strip_prefix(['>', '<']).ok_or_else(form)?.trim();
    let number = number.strip_suffix('%').ok_or_else(form)?;
    let limit_percent: f64 = number.trim().parse().map_err(|_| form())?;
    if function.trim().is_empty() || !limit_percent.is_finite() {
        return Err(form());
    }
    let function = Some(function.trim().to_owned()).filter(|name| name != "*");
    Ok(Condition { text: text.to_owned(), measure, function, is_above, limit_percent })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_name_a_measure_a_function_and_a_limit() {
        let parsed = parse_condition("self(a::operator()(int) const) > +3.5%").unwrap();
        assert_eq!(parsed.function.as_deref(), Some("a::operator()(int) const"));
        assert!(parsed.is_above && (parsed.limit_percent - 3.5).abs() < f64::EPSILON);
        let parsed = parse_condition("total(*)<-1%").unwrap();
        assert_eq!(
            (parsed.measure, parsed.function, parsed.is_above),
            (Measure::Total, None, false)
        );
        for text in [
            "",
            "self(f)",
            "self(f) > 3",
            "own(f) > 3%",
            "self() > 3%",
            "self(f) = 3%",
            "self(f) > x%",
        ] {
            assert!(parse_condition(text).is_err(), "{text}");
        }
    }
}
