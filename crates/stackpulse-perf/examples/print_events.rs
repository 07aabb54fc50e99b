//! Prints the events of a running process until it ends: `print_events PID`.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use stackpulse_perf::capture::{AttachMode, Capture, CaptureOptions};
use stackpulse_perf::{Batch, EventKind};
use std::process::ExitCode;
use std::time::Duration;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("print_events: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn std::error::Error>> {
    let pid = std::env::args().nth(1).ok_or("usage: print_events PID")?.parse()?;
    let options = CaptureOptions {
        frequency_hz: 99,
        stack_size_bytes: 8192,
        inherit_children: true,
        ..CaptureOptions::default()
    };
    let mut capture = Capture::attach(pid, AttachMode::StopWhileAttaching, &options)?;
    println!("{:?}", capture.settings());
    let mut batch = Batch::new();
    while capture.process_is_active(pid) || capture.has_pending_events() {
        capture.wait(Duration::from_millis(100))?;
        capture.drain(&mut batch)?;
        print(&mut batch);
    }
    capture.finish(&mut batch)?;
    print(&mut batch);
    println!("{:?}", capture.statistics());
    Ok(())
}

fn print(batch: &mut Batch) {
    for event in batch.drain() {
        match event.kind {
            EventKind::Sample(sample) => println!(
                "{} sample {:?} ip {:#x} period {} stack {} bytes",
                event.time_ns,
                sample.head().task,
                sample.head().ip_avma,
                sample.head().period,
                sample.user_stack().len()
            ),
            other => println!("{} {other:?}", event.time_ns),
        }
    }
}
