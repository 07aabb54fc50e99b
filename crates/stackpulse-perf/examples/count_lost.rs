//! Counts what of a running process is sampled and what is lost, second by second: `count_lost PID [HZ [SECONDS]]`.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use stackpulse_perf::capture::{AttachMode, Capture, CaptureOptions, clock, schedule};
use stackpulse_perf::{Batch, EventKind};
use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Duration;

/// What happened on a CPU within a second.
#[derive(Default)]
struct Second {
    samples: u64,
    lost: u64,
    throttled: u64,
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("count_lost: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let pid = arguments.next().ok_or("usage: count_lost PID [HZ [SECONDS]]")?.parse()?;
    let frequency_hz = arguments.next().map_or(Ok(1000), |hz| hz.parse())?;
    let seconds: u64 = arguments.next().map_or(Ok(u64::MAX), |seconds| seconds.parse())?;
    let options = CaptureOptions { frequency_hz, inherit_children: true, ..Default::default() };
    let mut capture = Capture::attach(pid, AttachMode::StopWhileAttaching, &options)?;
    schedule::run_promptly()?;
    let start_ns = clock::monotonic_ns();
    let mut seen = BTreeMap::new();
    let mut batch = Batch::new();
    let elapsed = || (clock::monotonic_ns() - start_ns) / 1_000_000_000;
    while capture.active_processes().next().is_some() && elapsed() < seconds {
        capture.wait(Duration::from_millis(100))?;
        capture.drain(&mut batch)?;
        count(&mut batch, start_ns, &mut seen);
    }
    capture.finish(&mut batch)?;
    count(&mut batch, start_ns, &mut seen);
    for ((second, cpu), Second { samples, lost, throttled }) in seen {
        println!(
            "second {second} CPU {cpu:?}: {samples} samples, {lost} lost, {throttled} throttled"
        );
    }
    println!("{:?}\n{:?}", capture.settings(), capture.statistics());
    Ok(())
}

fn count(batch: &mut Batch, start_ns: u64, seen: &mut BTreeMap<(u64, Option<u32>), Second>) {
    for event in batch.drain() {
        let second = event.time_ns.saturating_sub(start_ns) / 1_000_000_000;
        let (samples, lost, throttled) = match event.kind {
            EventKind::Sample(_) => (1, 0, 0),
            EventKind::Lost { events, .. } => (0, events, 0),
            EventKind::Throttle { throttled: true } => (0, 0, 1),
            _ => continue,
        };
        let entry = seen.entry((second, event.cpu)).or_default();
        entry.samples += samples;
        entry.lost += lost;
        entry.throttled += throttled;
    }
}
