//! `verify`: is every block of a spool sound?

use crate::args::FileArgs;
use crate::commands::report::closed_pipe_is_fine;
use crate::failure::Failure;
use crate::open;
use stackpulse_spool::{Record, State};
use std::io::{self, Write};

/// Exit statuses: torn but readable, and damaged.
const TORN: u8 = 1;
const DAMAGED: u8 = 2;

pub(crate) fn run(args: &FileArgs) -> Result<u8, Failure> {
    let unreadable = |failure: Failure| Failure::with_status(DAMAGED, failure.to_string());
    let mut replay = open::replay(&args.file).map_err(unreadable)?;
    let (mut records, mut samples) = (0u64, 0u64);
    loop {
        match replay.next() {
            Ok(Some(record)) => {
                records += 1;
                samples += u64::from(matches!(record, Record::Sample(_)));
            }
            Ok(None) => break,
            Err(error) => {
                return Err(Failure::with_status(DAMAGED, open::explain(&args.file, &error)));
            }
        }
    }
    let state = replay.state();
    let status = match state {
        _ if !replay.damage().is_empty() => DAMAGED,
        State::Torn { .. } => TORN,
        _ => 0,
    };
    let name = args.file.display();
    let mut out = io::stdout().lock();
    let printed = if args.json {
        let damage: Vec<_> = replay
            .damage()
            .iter()
            .map(|block| {
                serde_json::json!({
                    "offset": block.offset,
                    "bytes": block.len,
                    "what": block.damage.to_string(),
                    "samples_lost": block.lost.samples,
                    "definitions_lost": block.lost.definitions,
                })
            })
            .collect();
        let verdict = serde_json::json!({
            "state": super::info::state_word(state),
            "records": records,
            "samples": samples,
            "left_out": replay.left_out(),
            "damage": damage,
        });
        writeln!(out, "{verdict:#}")
    } else {
        (|| {
            for block in replay.damage() {
                writeln!(
                    out,
                    "{name}: {} bytes at offset {} are damaged: {}; lost with them: {} samples, {} definitions",
                    block.len,
                    block.offset,
                    block.damage,
                    block.lost.samples,
                    block.lost.definitions
                )?;
            }
            let verdict = match (status, state) {
                (DAMAGED, _) => format!(
                    "damaged; {} records that depend on it were left out",
                    replay.left_out()
                ),
                (TORN, State::Torn { offset }) => {
                    format!("torn at offset {offset}, sound before it")
                }
                (_, State::Aborted) => "sound; the recording ended early".to_owned(),
                _ => "sound".to_owned(),
            };
            writeln!(out, "{name}: {verdict} ({samples} samples, {records} records)")
        })()
    };
    closed_pipe_is_fine(printed)?;
    Ok(status)
}
