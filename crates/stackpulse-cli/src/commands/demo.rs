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

/// The workload: three ways to sum primes, which take about 60, 30 and 10 percent of the time.
pub(crate) fn burn(args: &DemoArgs) -> Result<(), Failure> {
    let end = Instant::now() + args.duration;
    while Instant::now() < end {
        let slice = args.duration.min(Duration::from_millis(20));
        sum_by_trial_division(slice.mul_f64(0.6));
        sum_by_sieve(slice.mul_f64(0.3));
        sum_by_wheel(slice.mul_f64(0.1));
    }
    Ok(())
}

/// Runs `work` again and again for that long.
fn repeat(time: Duration, mut work: impl FnMut()) {
    let end = Instant::now() + time;
    while Instant::now() < end {
        work();
    }
}

#[inline(never)]
fn sum_by_trial_division(time: Duration) {
    repeat(time, || {
        black_box((2..3000u32).filter(|&n| is_prime(n)).sum::<u32>());
    });
}

#[inline]
fn is_prime(n: u32) -> bool {
    (2..).take_while(|d| d * d <= n).all(|d| !n.is_multiple_of(d))
}

#[inline(never)]
fn sum_by_sieve(time: Duration) {
    let mut composite = vec![false; 3000];
    repeat(time, || {
        composite.fill(false);
        let mut sum = 0usize;
        for n in 2..composite.len() {
            if !composite[n] {
                sum += n;
                cross_out(&mut composite, n);
            }
        }
        black_box(sum);
    });
}

#[inline(never)]
fn cross_out(composite: &mut [bool], prime: usize) {
    composite.iter_mut().skip(prime * prime).step_by(prime).for_each(|slot| *slot = true);
}

#[inline(never)]
fn sum_by_wheel(time: Duration) {
    repeat(time, || {
        let candidates = (0..500u32).flat_map(|k| [6 * k + 1, 6 * k + 5]);
        black_box(candidates.filter(|&n| n > 1 && is_prime(n)).sum::<u32>());
    });
}
