//! The capture thread's work on a sample: decoding, sorting, handing over.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use stackpulse_perf::capture::{AttachMode, Capture, CaptureOptions};
use stackpulse_perf::regs::Arch;
use stackpulse_perf::{
    Batch, Event, EventKind, Payload, RecordKind, Sample, SampleLayout, Sorter, decode,
};
use std::hint::black_box;
use std::sync::mpsc::TryRecvError;
use std::time::{Duration, Instant};

const STACK_BYTES: u32 = 32 << 10;

/// A sample record with all registers and a full stack, as a recording's are.
fn record(layout: &SampleLayout) -> Vec<u8> {
    let stack_bytes = u64::from(STACK_BYTES);
    let mut words = vec![0x5555_0000_1000, 7 | 8 << 32, 1, 0, 250_000, 2];
    words.extend((0..layout.user_regs_mask.count_ones()).map(u64::from));
    words.push(stack_bytes);
    words.extend(0..stack_bytes / 8);
    words.push(stack_bytes);
    let size = u16::try_from(8 + words.len() * 8).expect("a record's size has 16 bits");
    let mut bytes = [&9u32.to_ne_bytes()[..], &2u16.to_ne_bytes(), &size.to_ne_bytes()].concat();
    bytes.extend(words.into_iter().flat_map(u64::to_ne_bytes));
    bytes
}

/// Everything but the ring: rounds of 32 samples decoded, sorted, released into a batch, and dropped by their consumer.
fn decode_and_sort(c: &mut Criterion) {
    const ROUND: u64 = 32;
    let layout = SampleLayout::for_recording(Arch::X86_64, STACK_BYTES, false);
    let mut record = record(&layout);
    let mut sorter = Sorter::new(3);
    let mut batch = Batch::new();
    let mut time_ns = 0u64;
    let mut group = c.benchmark_group("perf/decode_sort_hand_over");
    group.throughput(Throughput::Elements(1));
    group.bench_function("32KiB_stack", |b| {
        b.iter_custom(|count| {
            let start = Instant::now();
            for _ in 0..count.div_ceil(ROUND) {
                for at in 0..ROUND {
                    time_ns += 250_000;
                    record[24..32].copy_from_slice(&time_ns.to_ne_bytes());
                    let decoded = decode(black_box(&record), &layout).expect("a sound record");
                    let RecordKind::Sample(head, parts) = decoded.record else { continue };
                    let payload = Payload::from(Box::default());
                    let sample =
                        Sample::new(head, layout.arch, layout.user_regs_mask, parts, payload);
                    let kind = EventKind::Sample(sample);
                    let event = Event { time_ns, cpu: decoded.cpu, kind };
                    sorter.push(usize::from(at % 2 == 0), time_ns, event);
                }
                sorter.end_round();
                while let Some((_, event)) = sorter.pop() {
                    batch.push(event);
                }
                batch.drain().for_each(|event| drop(black_box(event)));
            }
            start.elapsed() / u32::try_from(count.div_ceil(ROUND) * ROUND).unwrap_or(u32::MAX)
                * u32::try_from(count).unwrap_or(u32::MAX)
        });
    });
    group.finish();
}

/// The sorter alone, with as many rings as a large machine has.
fn sort(c: &mut Criterion) {
    const ROUND: u64 = 1024;
    let mut group = c.benchmark_group("perf/sorter");
    group.throughput(Throughput::Elements(ROUND));
    for rings in [1usize, 256] {
        let mut sorter = Sorter::new(rings);
        let mut time_ns = 0u64;
        group.bench_function(BenchmarkId::from_parameter(rings), |b| {
            b.iter(|| {
                // Rings are read one after the other, each with its share of the round.
                let each = ROUND / rings as u64;
                for ring in 0..rings {
                    for at in 0..each {
                        let key = time_ns + at * 1000 + ring as u64;
                        sorter.push(ring, key, black_box([key; 12]));
                    }
                }
                time_ns += each * 1000;
                sorter.end_round();
                while let Some(event) = sorter.pop() {
                    black_box(event);
                }
            });
        });
    }
    group.finish();
}

/// Real rings: the time to read, decode, sort, hand over and give back what the kernel wrote of a busy thread of this
/// process. Only CPU time of the rounds is counted.
fn live(c: &mut Criterion) {
    let mut group = c.benchmark_group("perf/live_32KiB_stack");
    group.throughput(Throughput::Elements(1));
    group.warm_up_time(Duration::from_secs(1)).sample_size(10);
    // Rings of 64 MiB keep their samples; out of rings of 1 MiB they are copied.
    for (name, ring_buffer_stacks) in [("leased", 2048), ("copied", 32)] {
        let options = CaptureOptions {
            frequency_hz: 10_000,
            ring_buffer_stacks,
            ..CaptureOptions::default()
        };
        let (end, ends) = std::sync::mpsc::channel::<()>();
        let busy = std::thread::spawn(move || while ends.try_recv() == Err(TryRecvError::Empty) {});
        let mut capture = Capture::attach(std::process::id(), AttachMode::Running, &options)
            .expect("a process may capture itself");
        group.bench_function(name, |b| b.iter_custom(|count| drain(&mut capture, count)));
        drop(end);
        busy.join().expect("it only looks at its channel");
    }
    group.finish();
}

/// Reads that many samples; the CPU time that the rounds took.
fn drain(capture: &mut Capture, samples: u64) -> Duration {
    let mut batch = Batch::new();
    let (mut seen, mut took) = (0, Duration::ZERO);
    while seen < samples {
        capture.wait(Duration::from_millis(10)).expect("wait for samples");
        let start = cpu_time();
        capture.drain(&mut batch).expect("follow this process");
        for event in batch.drain() {
            seen += u64::from(matches!(event.kind, EventKind::Sample(_)));
        }
        took += cpu_time() - start;
    }
    took.mul_f64(samples as f64 / seen as f64)
}

/// CPU time of this thread: others may have the CPUs in between.
fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(time).expect("no negative time")
}

criterion_group!(benches, decode_and_sort, sort, live);
criterion_main!(benches);
