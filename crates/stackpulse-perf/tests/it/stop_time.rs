//! How long a target stands still while it is attached to.

use crate::attach::options;
use crate::harness::alone;
use crate::target::Target;
use stackpulse_perf::capture::{AttachMode, Capture};
use std::time::Duration;

/// How long a thread of the target stood still at most since the last time it was asked, as the target itself measures it:
/// time in which it waited for a CPU is not counted.
fn longest_stop(target: &mut Target) -> Duration {
    target.obey("g");
    Duration::from_nanos(target.line().parse().unwrap())
}

#[test]
fn a_target_stands_still_for_less_than_2_ms_and_with_500_mb_of_code_than_5_ms() {
    let _alone = alone();
    for (words, limit_ms) in [(["clock", "0"], 2), (["clock", "500"], 5)] {
        let mut target = Target::start(&words);
        let attach = || {
            longest_stop(&mut target);
            let mode = AttachMode::StopWhileAttaching;
            drop(Capture::attach(target.pid(), mode, &options()).unwrap());
            longest_stop(&mut target)
        };
        // Where others have the CPUs for long, it is attached to while it runs: that tells nothing. And what stands still
        // waits until the last thread has had a CPU to stop on: the shortest is what attaching takes by itself.
        let stood_still = |stop: &Duration| *stop > Duration::from_micros(20);
        let stops: Vec<_> =
            std::iter::repeat_with(attach).take(300).filter(stood_still).take(10).collect();
        eprintln!("{words:?}: {stops:?}");
        assert_eq!(stops.len(), 10, "it was to stand still while it was attached to");
        let shortest = stops.iter().min().expect("there are ten");
        assert!(*shortest < Duration::from_millis(limit_ms), "{words:?}: {stops:?}");
    }
}
