//! How a spool begins: its header, and a block with the settings and the machine.

use crate::error::{Error, ErrorKind};
use crate::host::HostFacts;
use crate::options::RecorderOptions;
use stackpulse_perf::capture::{Settings, clock};
use stackpulse_spool::{Record, RecordSink, Writer, WriterOptions};
use std::io::Write;

/// Unit of the times in a spool: far below the microseconds by which a timer's interrupt comes late, a multiple of what
/// reading the clock takes. It halves the bytes of a sample (`docs/benchmarks.md`).
const TIME_UNIT_NS: u32 = 64;

/// Begins the spool. Returns the recording's first moment with it.
pub(crate) fn begin<W: Write>(
    out: W,
    settings: &Settings,
    options: &RecorderOptions,
) -> Result<(u64, Writer<W>), Error> {
    let (start_ns, realtime_ns) = clock::pair();
    let written = |error| Error::caused(ErrorKind::Io, "write the spool", error);
    let format = WriterOptions::default().time_unit_ns(TIME_UNIT_NS);
    let mut writer = Writer::new(out, format).map_err(written)?;
    let start_realtime_ns =
        options.start_timestamp_us.map_or(realtime_ns, |us| us.saturating_mul(1000));
    let facts = Record::Settings(stackpulse_spool::Settings {
        event: settings.event.name().as_bytes(),
        rate_hz: options.sample_interval_us.map_or(settings.frequency_hz, |us| 1_000_000 / us),
        stack_size_bytes: settings.stack_size_bytes,
        kernel_frames: settings.kernel_frames,
        follows_children: settings.inherit_children,
        start_monotonic_ns: start_ns,
        start_realtime_ns,
    });
    writer.record(&facts).map_err(written)?;
    writer.record(&Record::Host(HostFacts::read().as_record())).map_err(written)?;
    writer.publish().map_err(written)?;
    Ok((start_ns, writer))
}
