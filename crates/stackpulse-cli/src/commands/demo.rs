//! `demo`: the whole path on a small built-in workload, with nothing prepared.

use crate::args::{Args, Command, DemoArgs};
use crate::failure::Failure;
use clap::Parser;
use std::ffi::OsString;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Records this program running the workload, and prints the report.
pub(crate) fn run(args: &DemoArgs) -> Result<u8, Failure> {
    let program = std::env::current_exe()
        .map_err(|error| Failure::new(format!("find this program's own file: {error}")))?;
    let output = std::env::temp_dir().join(format!("stackpulse-demo-{}.spool", std::process::id()));
    let line: [OsString; 10] = [
        "stackpulse".into(),
        "record".into(),
        "--report".into(),
        "--output".into(),
        output.into_os_string(),
        "--".into(),
        program.into_os_string(),
        "demo-workload".into(),
        "--duration".into(),
        format!("{}ms", args.duration.as_millis()).into(),
    ];
    match Args::parse_from(line).command {
        Command::Record(record) => super::record::run(&record),
        _ => Err(Failure::new("the demo's own arguments are no recording")),
    }
}

/// The workload: three sums, which take about 60, 30 and 10 percent of the time.
pub(crate) fn burn(args: &DemoArgs) -> Result<(), Failure> {
    let end = Instant::now() + args.duration;
    while Instant::now() < end {
        let slice = args.duration.min(Duration::from_millis(20));
        sum_by_trial_division(slice.mul_f64(0.6));
        sum_by_sieve(slice.mul_f64(0.3));
        sum_by_counting(slice.mul_f64(0.1));
    }
    Ok(())
}

/// Whether there is time left: asked once a round, so that the workload and not the clock is what runs.
fn before(end: Instant) -> bool {
    Instant::now() < end
}

#[inline(never)]
fn sum_by_trial_division(time: Duration) {
    let end = Instant::now() + time;
    while before(end) {
        let (mut sum, mut n) = (0u32, 2u32);
        while n < 3000 {
            let mut divisor = 2;
            while divisor * divisor <= n && n / divisor * divisor != n {
                divisor += 1;
            }
            if divisor * divisor > n {
                sum += n;
            }
            n += 1;
        }
        black_box(sum);
    }
}

#[inline(never)]
fn sum_by_sieve(time: Duration) {
    let end = Instant::now() + time;
    let mut composite = [false; 10_000];
    while before(end) {
        composite.fill(false);
        let (mut sum, mut n) = (0usize, 2usize);
        while n < composite.len() {
            if !composite[n] {
                sum += n;
                let mut multiple = n * n;
                while multiple < composite.len() {
                    composite[multiple] = true;
                    multiple += n;
                }
            }
            n += 1;
        }
        black_box(sum);
    }
}

#[inline(never)]
fn sum_by_counting(time: Duration) {
    let end = Instant::now() + time;
    while before(end) {
        let (mut sum, mut n) = (0u64, 0u64);
        while n < 50_000 {
            sum = black_box(sum + n);
            n += 1;
        }
    }
}
