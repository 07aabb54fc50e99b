//! What the options that choose samples mean for one spool.

use crate::args::{Moment, SelectArgs, TimeRange};
use crate::failure::Failure;
use crate::open;
use stackpulse_export::{NameFilter, SampleFilter};
use stackpulse_spool::{Record, Snapshot};
use std::fs::File;
use std::path::Path;
use std::time::Duration;

/// Returns what is asked of samples before they have names.
pub(crate) fn sample_filter(path: &Path, args: &SelectArgs) -> Result<SampleFilter, Failure> {
    let (from_ns, until_ns) = match args.time {
        Some(range) => span(path, range)?,
        None => (None, None),
    };
    Ok(SampleFilter { from_ns, until_ns, ..live_filter(args) })
}

/// The same, but for the time: of a recording whose end is not known.
pub(crate) fn live_filter(args: &SelectArgs) -> SampleFilter {
    SampleFilter {
        from_ns: None,
        until_ns: None,
        pids: args.pid.clone(),
        tids: args.tid.clone(),
        comm: args.comm.clone(),
        thread: args.thread.clone(),
        max_depth: args.max_stack.map(|frames| frames as usize),
    }
}

/// Returns what is asked of names.
pub(crate) fn name_filter(args: &SelectArgs) -> NameFilter {
    NameFilter {
        module: args.module.clone(),
        include: args.include.clone(),
        exclude: args.exclude.clone(),
    }
}

/// The least number of samples that is `percent` of all.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a share between none and all, saturated by the cast"
)]
pub(crate) fn least_samples(percent: f64, samples: u64) -> u64 {
    (samples as f64 * percent / 100.0).ceil() as u64
}

/// A range's ends on the spool's clock.
fn span(path: &Path, range: TimeRange) -> Result<(Option<u64>, Option<u64>), Failure> {
    let mut replay = open::replay(path)?;
    let start_ns = loop {
        match replay.next() {
            Ok(Some(Record::Settings(settings))) => break settings.start_monotonic_ns,
            Ok(Some(_)) => {}
            Ok(None) => break 0,
            Err(error) => return Err(Failure::new(open::explain(path, &error))),
        }
    };
    let failed = |error| Failure::new(open::explain(path, &error));
    let opened = File::open(path)
        .map_err(|error| Failure::new(format!("open {}: {error}", path.display())))?;
    let last_ns =
        Snapshot::open(opened).map_err(failed)?.span_ns().map_or(start_ns, |(_, last_ns)| last_ns);
    // The last sample belongs to the range that ends with the recording.
    let whole = Duration::from_nanos(last_ns.saturating_sub(start_ns).saturating_add(1));
    let on_clock = |moment| {
        let after = match moment {
            Moment::After(time) => time,
            Moment::Percent(percent) => whole.mul_f64(percent / 100.0),
        };
        start_ns.saturating_add(u64::try_from(after.as_nanos()).unwrap_or(u64::MAX))
    };
    Ok((range.from.map(on_clock), range.to.map(on_clock)))
}
