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
        let mut stops: Vec<_> = (0..20)
            .map(|_| {
                longest_stop(&mut target);
                let mode = AttachMode::StopWhileAttaching;
                drop(Capture::attach(target.pid(), mode, &options()).unwrap());
                longest_stop(&mut target)
            })
            .collect();
        stops.sort_unstable();
        // Where others have the CPUs for long, it is attached to while it runs; and a thread that stands still waits until
        // the last one has had a CPU to stop on. The lower quarter is what attaching takes by itself.
        let stood = stops.partition_point(|&stop| stop < Duration::from_micros(20));
        eprintln!("{words:?}: {stops:?}");
        assert!(stood <= 10, "it stood still half the times: {stops:?}");
        let quarter = stood + (stops.len() - stood) / 4;
        assert!(stops[quarter] < Duration::from_millis(limit_ms), "{words:?}: {stops:?}");
    }
}
