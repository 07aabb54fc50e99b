//! How long a target stands still while it is attached to.

use crate::attach::options;
use crate::harness::{alone, await_that, cpu_times_ns};
use crate::target::Target;
use stackpulse_perf::capture::{AttachMode, Capture, schedule};
use std::time::Duration;

/// The longest that a thread of the target found itself not running, in nanoseconds, as the target itself measures it.
fn longest_gap(target: &mut Target) -> Duration {
    target.obey("g");
    Duration::from_nanos(target.line().parse().unwrap())
}

#[test]
fn a_target_stands_still_for_little_longer_than_its_turn_takes() {
    let _alone = alone();
    schedule::run_promptly().unwrap();
    for (words, limit) in [(["clock", "0"], 2), (["clock", "500"], 5)] {
        let mut target = Target::start(&words);
        // Others share the CPUs: the best of several is what attaching costs.
        let mut attach = || {
            longest_gap(&mut target);
            let before: u64 = cpu_times_ns(target.pid()).values().sum();
            let capture = Capture::attach(target.pid(), AttachMode::StopWhileAttaching, &options());
            let capture = capture.unwrap();
            await_that("the target goes on", || {
                cpu_times_ns(target.pid()).values().sum::<u64>() > before
            });
            drop(capture);
            longest_gap(&mut target)
        };
        let gap = std::iter::repeat_with(&mut attach).take(20).min().unwrap();
        eprintln!("{words:?}: {gap:?}");
        assert!(gap < Duration::from_millis(limit), "{words:?}: {gap:?}");
    }
}
