//! Which samples are looked at: the options that all readers share.

use super::SymbolArgs;
use clap::Args;
use regex::{Regex, RegexBuilder};
use std::time::Duration;

/// Which samples, and how much of their stacks.
#[derive(Debug, Args)]
#[command(next_help_heading = "Which samples")]
pub(crate) struct SelectArgs {
    /// Only this part of the recording: `1s-5s`, `10%-20%`, `30s-`; from its start
    #[arg(long, value_name = "FROM-TO", value_parser = parse_time, allow_hyphen_values = true)]
    pub(crate) time: Option<TimeRange>,

    /// Only these processes
    #[arg(long, value_name = "PID", value_delimiter = ',')]
    pub(crate) pid: Vec<u32>,

    /// Only these threads
    #[arg(long, value_name = "TID", value_delimiter = ',')]
    pub(crate) tid: Vec<u32>,

    /// Only processes whose comm matches
    #[arg(long, value_name = "REGEX", value_parser = parse_pattern)]
    pub(crate) comm: Option<Regex>,

    /// Only threads whose name matches
    #[arg(long, value_name = "REGEX", value_parser = parse_pattern)]
    pub(crate) thread: Option<Regex>,

    /// Only samples that ran in a module that matches
    #[arg(long, value_name = "REGEX", value_parser = parse_pattern)]
    pub(crate) module: Option<Regex>,

    /// Only stacks with a function that matches (given again: and another)
    #[arg(short = 'I', long, value_name = "REGEX", value_parser = parse_pattern)]
    pub(crate) include: Vec<Regex>,

    /// No stacks with a function that matches (may be given again)
    #[arg(short = 'X', long, value_name = "REGEX", value_parser = parse_pattern)]
    pub(crate) exclude: Vec<Regex>,

    /// Leave out what is below this share of the samples [default: 0.5 in reports for people, else 0]
    #[arg(long, value_name = "PERCENT", value_parser = parse_percent)]
    pub(crate) percent_limit: Option<f64>,

    /// Only this many innermost frames of each stack
    #[arg(long, value_name = "FRAMES", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_stack: Option<u32>,

    /// Where names are looked for.
    #[command(flatten)]
    pub(crate) symbols: SymbolArgs,
}

/// Part of a recording.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct TimeRange {
    /// Where it begins; without: with the recording.
    pub(crate) from: Option<Moment>,
    /// Where it ends; without: with the recording.
    pub(crate) to: Option<Moment>,
}

/// A moment of a recording.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Moment {
    /// That long after its start.
    After(Duration),
    /// That share of it, in percent.
    Percent(f64),
}

fn parse_time(text: &str) -> Result<TimeRange, String> {
    let form = "give a range such as 1s-5s, 10%-20%, or 30s-";
    let (from, to) = text.split_once('-').ok_or_else(|| form.to_owned())?;
    let range = TimeRange { from: parse_moment(from)?, to: parse_moment(to)? };
    match range {
        TimeRange { from: None, to: None } => Err(form.to_owned()),
        TimeRange { from: Some(Moment::After(from)), to: Some(Moment::After(to)) }
            if from >= to =>
        {
            Err("it ends before it begins".to_owned())
        }
        TimeRange { from: Some(Moment::Percent(from)), to: Some(Moment::Percent(to)) }
            if from >= to =>
        {
            Err("it ends before it begins".to_owned())
        }
        range => Ok(range),
    }
}

fn parse_moment(text: &str) -> Result<Option<Moment>, String> {
    match (text.trim(), text.trim().strip_suffix('%')) {
        ("", _) => Ok(None),
        (_, Some(percent)) => parse_percent(percent).map(|percent| Some(Moment::Percent(percent))),
        (time, None) => super::duration::parse(time).map(|time| Some(Moment::After(time))),
    }
}

fn parse_percent(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(percent) if (0.0..=100.0).contains(&percent) => Ok(percent),
        _ => Err("not a number from 0 to 100".to_owned()),
    }
}

/// Compiles a pattern, in bounded memory; what is wrong is told in one line.
fn parse_pattern(text: &str) -> Result<Regex, String> {
    RegexBuilder::new(text).size_limit(1 << 20).build().map_err(|error| match error {
        regex::Error::CompiledTooBig(_) => "this pattern is too large".to_owned(),
        error => {
            let told = error.to_string();
            let why = told.lines().last().unwrap_or_default();
            why.strip_prefix("error: ").unwrap_or(why).to_owned()
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_of_time_or_of_the_whole() {
        let after = |seconds| Some(Moment::After(Duration::from_secs(seconds)));
        assert_eq!(parse_time("1s-5s"), Ok(TimeRange { from: after(1), to: after(5) }));
        assert_eq!(parse_time("1-5"), Ok(TimeRange { from: after(1), to: after(5) }));
        assert_eq!(parse_time("2m-"), Ok(TimeRange { from: after(120), to: None }));
        let percent =
            TimeRange { from: Some(Moment::Percent(10.0)), to: Some(Moment::Percent(20.0)) };
        assert_eq!(parse_time("10%-20%"), Ok(percent));
    }

    #[test]
    fn what_is_no_range_is_refused() {
        for text in ["", "-", "5s", "5s-1s", "20%-10%", "0-101%", "x-y", "1s-1s"] {
            assert!(parse_time(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_pattern_that_cannot_be_read_is_told_in_one_line() {
        for text in ["(", "a{99999999}", "[z-a]"] {
            assert_eq!(parse_pattern(text).unwrap_err().lines().count(), 1, "{text}");
        }
    }
}
