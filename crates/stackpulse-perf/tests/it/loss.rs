//! What is lost, and what is not.

use crate::harness::{alone, cpu_times_ns};
use crate::target::Target;
use stackpulse_perf::capture::{AttachMode, Capture, CaptureOptions, clock, schedule};
use stackpulse_perf::{Batch, Event, EventKind, Statistics};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::{Duration, Instant};

/// How long a capture takes.
const LENGTH: Duration = Duration::from_secs(1);

/// A consumer on a thread of its own, behind a bounded channel, as a recorder has it.
struct Consumer {
    /// What it does with a sample.
    sample: fn(),
    /// How long it does nothing once, in the middle.
    stall: Duration,
}

/// Works for that long, as unwinding does.
fn work_20_us() {
    let start = Instant::now();
    while start.elapsed() < Duration::from_micros(20) {
        std::hint::spin_loop();
    }
}

fn is_sample(event: &Event) -> bool {
    matches!(event.kind, EventKind::Sample(_))
}

impl Consumer {
    /// Consumes until nothing comes any more; how many samples came.
    fn consume(&self, batches: Receiver<Batch>, spent: &SyncSender<Batch>) -> u64 {
        let start = Instant::now();
        let mut samples = 0;
        let mut stall = Some(self.stall);
        for mut batch in batches {
            if start.elapsed() > LENGTH / 2
                && let Some(stall) = stall.take()
            {
                std::thread::sleep(stall);
            }
            for event in batch.drain().filter(is_sample) {
                (self.sample)();
                samples += 1;
                drop(event);
            }
            // The other side may have enough of them.
            let _ = spent.try_send(batch);
        }
        samples
    }
}

/// Captures as a recorder does; how many samples the target's CPU time stands for.
fn produce(
    target: &Target,
    frequency_hz: u32,
    batches: &SyncSender<Batch>,
    spent: &Receiver<Batch>,
) -> (u64, Statistics) {
    let options = CaptureOptions { frequency_hz, ..CaptureOptions::default() };
    let mode = AttachMode::StopWhileAttaching;
    let mut capture = Capture::attach(target.pid(), mode, &options).unwrap();
    let before: u64 = cpu_times_ns(target.pid()).values().sum();
    schedule::run_promptly().unwrap();
    let start = Instant::now();
    let mut batch = Batch::new();
    while start.elapsed() < LENGTH {
        let timeout_ms = if batch.is_empty() { 100 } else { 2 };
        capture.wait(Duration::from_millis(timeout_ms)).unwrap();
        capture.drain(&mut batch).unwrap();
        let next = spent.try_recv().unwrap_or_default();
        match batches.try_send(std::mem::replace(&mut batch, next)) {
            Ok(()) => {}
            Err(TrySendError::Full(full)) => {
                batch = full;
                capture.detach(&mut batch);
            }
            Err(TrySendError::Disconnected(_)) => panic!("the consumer has ended"),
        }
    }
    let used_ns = cpu_times_ns(target.pid()).values().sum::<u64>() - before;
    capture.finish(&mut batch).unwrap();
    batches.send(batch).unwrap();
    (used_ns * u64::from(frequency_hz) / 1_000_000_000, capture.statistics())
}

/// Captures two busy threads; how many samples arrived, and how many their CPU time stands for.
fn capture(frequency_hz: u32, consumer: &Consumer) -> (u64, u64, Statistics) {
    let target = Target::start(&["spin", "2"]);
    let (batches, received) = sync_channel(16);
    let (spent, recycled) = sync_channel(32);
    std::thread::scope(|scope| {
        let consuming = scope.spawn(move || consumer.consume(received, &spent));
        let target = &target;
        let capturing = scope.spawn(move || produce(target, frequency_hz, &batches, &recycled));
        let (expected, statistics) = capturing.join().unwrap();
        (consuming.join().unwrap(), expected, statistics)
    })
}

/// Others share the CPUs, and a host may take them away for longer than any ring lasts: one run of several must be
/// without loss, and in each every sample has arrived or was counted as lost.
fn nothing_is_lost(frequency_hz: u32, consumer: &Consumer) {
    const RUNS: usize = 8;
    let _alone = alone();
    let mut lost = Vec::new();
    for _ in 0..RUNS {
        let (arrived, expected, statistics) = capture(frequency_hz, consumer);
        eprintln!("{arrived} of about {expected} samples; {statistics:?}");
        assert_eq!(arrived, statistics.samples);
        let all = arrived + statistics.lost;
        assert!(all * 10 > expected * 9 && all * 10 < expected * 11, "{all} of about {expected}");
        if statistics.lost == 0 {
            return;
        }
        lost.push(statistics.lost);
    }
    panic!("each of {RUNS} runs lost samples: {lost:?}");
}

#[test]
fn a_consumer_of_20_us_a_sample_loses_nothing_at_10_khz_on_two_cpus() {
    nothing_is_lost(10_000, &Consumer { sample: work_20_us, stall: Duration::ZERO });
}

#[test]
fn a_consumer_that_stalls_for_200_ms_loses_nothing_at_4_khz() {
    nothing_is_lost(4_000, &Consumer { sample: || {}, stall: Duration::from_millis(200) });
}

#[test]
fn what_a_full_ring_loses_is_counted_once_and_placed_in_time() {
    let target = Target::start(&["spin", "1"]);
    let options = CaptureOptions { frequency_hz: 4000, ..CaptureOptions::default() };
    let mut capture = Capture::attach(target.pid(), AttachMode::Running, &options).unwrap();
    let before: u64 = cpu_times_ns(target.pid()).values().sum();
    let used_ns = || cpu_times_ns(target.pid()).values().sum::<u64>() - before;
    let used_for = |time_ns: u64| crate::harness::await_that("CPU time", || used_ns() > time_ns);
    let mut batch = Batch::new();
    // Nobody reads while the rings, of 32 stacks each, fill many times over; then once in between; then not again.
    used_for(100_000_000);
    // As soon as a part of a ring is read, the kernel may tell of the loss.
    let read_ns = clock::monotonic_ns();
    capture.drain(&mut batch).unwrap();
    let lost_before = capture.statistics().lost;
    assert_eq!(lost_before, 0, "a loss is told with the first record after it");
    used_for(200_000_000);
    let expected = used_ns() / 250_000;
    capture.finish(&mut batch).unwrap();
    let losses: Vec<_> = batch
        .drain()
        .filter_map(|event| match event.kind {
            EventKind::Lost { events, lifecycle: false } => {
                Some((event.time_ns, events, event.cpu))
            }
            _ => None,
        })
        .collect();
    let statistics = capture.statistics();
    assert_eq!(losses.iter().map(|&(_, events, _)| events).sum::<u64>(), statistics.lost);
    let all = statistics.samples + statistics.lost;
    assert!(all * 10 > expected * 9 && all * 10 < expected * 11, "{all} of about {expected}");
    assert!(losses.len() >= 2, "{losses:?}");
    assert!(
        losses.iter().all(|&(time_ns, _, cpu)| time_ns >= read_ns && cpu.is_some()),
        "{losses:?}"
    );
}
