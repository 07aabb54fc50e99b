//! The signals that end the service.

use super::clients::Event;
use crate::failure::Failure;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::fs;
use std::sync::mpsc::SyncSender;
use std::thread;

/// Tells of the signals that end the service, so that it can tidy up first.
pub(super) fn watch(events: SyncSender<Event>) -> Result<(), Failure> {
    let failed =
        |error| Failure::new(format!("take over the signals that end the service: {error}"));
    // What `nohup` had ignored stays so.
    let ignored = ignored_signals();
    let ending =
        [SIGHUP, SIGINT, SIGTERM].into_iter().filter(|signal| ignored >> (signal - 1) & 1 == 0);
    let mut signals = Signals::new(ending).map_err(failed)?;
    let forward = move || {
        for signal in signals.forever() {
            if events.send(Event::Ended(signal)).is_err() {
                return;
            }
        }
    };
    thread::Builder::new().name("view-signals".to_owned()).spawn(forward).map(drop).map_err(failed)
}

/// The signals that this process was started to ignore: bit N is signal N + 1.
fn ignored_signals() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}
