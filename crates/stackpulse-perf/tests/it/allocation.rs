//! Memory is asked for at the beginning only.

use crate::harness::{alone, await_that, cpu_times_ns, has_tools};
use crate::target::{Target, program};
use stackpulse_perf::capture::{AttachMode, Capture, CaptureOptions};
use stackpulse_perf::{Batch, EventKind};
use std::process::Command;

/// Reads rings, sorts, and hands over, until that many samples have come and been dropped.
fn hand_over(capture: &mut Capture, batch: &mut Batch, samples: u64) -> u64 {
    let mut seen = 0;
    while seen < samples {
        capture.drain(batch).unwrap();
        for event in batch.drain() {
            if let EventKind::Sample(sample) = &event.kind {
                seen += u64::from(!sample.user_stack().is_empty());
            }
        }
    }
    seen
}

#[test]
fn decoding_sorting_and_handing_over_allocate_nothing_in_steady_state() {
    if !has_tools(&["taskset"]) {
        return;
    }
    let _alone = alone();
    let cpus = rustix::thread::sched_getaffinity(None).unwrap();
    let cpu = (0..).find(|&cpu| cpus.is_set(cpu)).expect("this runs on one");
    // Rings that hold enough for samples to stay in them, and rings so small that samples are copied out of them.
    for (ring_buffer_stacks, are_copied) in [(2048, false), (32, true)] {
        // One ring only: which of several fills first is chance.
        let target = Target::start_as(
            Command::new("taskset")
                .args(["-c", &cpu.to_string()])
                .arg(program())
                .args(["spin", "1"]),
        );
        let options =
            CaptureOptions { frequency_hz: 4000, ring_buffer_stacks, ..CaptureOptions::default() };
        let mut capture = Capture::attach(target.pid(), AttachMode::Running, &options).unwrap();
        let mut batch = Batch::new();
        // The beginning: the ring has been full, so that no later round brings more.
        for _ in 0..3 {
            let before: u64 = cpu_times_ns(target.pid()).values().sum();
            let used_ns = || cpu_times_ns(target.pid()).values().sum::<u64>() - before;
            let fill_ns = u64::from(ring_buffer_stacks) * 250_000 * 3;
            await_that("a full ring", || used_ns() > fill_ns);
            hand_over(&mut capture, &mut batch, 10);
        }
        let copied_before = capture.statistics().copied_samples;
        let mut seen = 0;
        let allocated = allocation_counter::measure(|| {
            seen = hand_over(&mut capture, &mut batch, 2000);
        });
        let copied = capture.statistics().copied_samples - copied_before;
        eprintln!("{seen} samples, {copied} copied: {} allocations", allocated.count_total);
        assert_eq!(allocated.count_total, 0, "{seen} samples");
        // Those around a ring's end are copied always.
        assert!(if are_copied { copied >= seen } else { copied < seen / 10 }, "{copied}");
    }
}
