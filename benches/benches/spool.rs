//! Writing, reading and opening spools.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use stackpulse_benches::recording::{Shape, Source};
use stackpulse_spool::{Record, RecordSink, Replay, Sample, Snapshot, Writer, WriterOptions};
use std::cell::{LazyCell, RefCell};
use std::fs::File;
use std::hint::black_box;
use std::io::{self, Cursor};
use std::time::{Duration, Instant};

const SHAPES: [(&str, Shape); 2] =
    [("hot_loop", Shape::HotLoop), ("random_walk", Shape::RandomWalk)];

/// Those of the recorder.
fn options() -> WriterOptions {
    WriterOptions::default().time_unit_ns(64)
}

/// A finished spool in memory.
fn spool(shape: Shape, samples: u64, options: WriterOptions) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), options).expect("memory takes everything");
    let mut source = Source::start(shape, &mut writer).expect("memory takes everything");
    for _ in 0..samples {
        source.next(&mut writer).expect("memory takes everything");
    }
    writer.finish().expect("memory takes everything").0
}

/// A writer whose definitions are there, and samples that need nothing more.
fn known(shape: Shape) -> (RefCell<Writer<io::Sink>>, Vec<Sample>) {
    let mut writer = Writer::new(io::sink(), options()).expect("takes everything");
    let mut source = Source::start(shape, &mut writer).expect("takes everything");
    let samples = (0..4096).map(|_| source.next(&mut writer).expect("takes everything"));
    let samples = samples.collect();
    (RefCell::new(writer), samples)
}

/// One sample of a known stack, the compression of its share of a block with it.
fn write(c: &mut Criterion) {
    let mut group = c.benchmark_group("spool/write_sample");
    group.throughput(Throughput::Elements(1));
    for (name, shape) in SHAPES {
        let fixture = LazyCell::new(|| known(shape));
        group.bench_function(BenchmarkId::from_parameter(name), |b| {
            let (writer, samples) = &*fixture;
            let mut writer = writer.borrow_mut();
            let mut time_ns = samples.last().map_or(0, |sample| sample.time_ns);
            b.iter_custom(|count| {
                let start = Instant::now();
                for (_, &sample) in (0..count).zip(samples.iter().cycle()) {
                    time_ns += 250_000;
                    let record = Record::Sample(Sample { time_ns, ..sample });
                    writer.record(black_box(&record)).expect("takes everything");
                }
                start.elapsed()
            });
        });
    }
    group.finish();
}

/// All samples of a warm file.
fn read(c: &mut Criterion) {
    const SAMPLES: u64 = 1_000_000;
    let mut group = c.benchmark_group("spool/read_samples");
    group.throughput(Throughput::Elements(SAMPLES));
    group.sample_size(10).measurement_time(Duration::from_secs(5));
    for (name, shape) in SHAPES {
        let fixture = LazyCell::new(|| spool(shape, SAMPLES, options()));
        group.bench_function(BenchmarkId::from_parameter(name), |b| {
            b.iter(|| {
                let mut replay = Replay::open(&fixture[..]).expect("a sound spool");
                let mut sum = 0u64;
                while let Some(record) = replay.next().expect("a sound spool") {
                    if let Record::Sample(sample) = record {
                        sum = sum.wrapping_add(sample.time_ns ^ u64::from(sample.callers.0));
                    }
                }
                sum
            });
        });
    }
    group.finish();
}

/// A file of a gigabyte in blocks of the usual size.
fn gigabyte() -> File {
    let mut file = tempfile::tempfile().expect("a temporary file");
    let options = options().compression_level(0);
    let mut writer = Writer::new(io::BufWriter::new(&mut file), options).expect("room on disk");
    let mut source = Source::start(Shape::RandomWalk, &mut writer).expect("room on disk");
    let samples: Vec<Sample> =
        (0..4096).map(|_| source.next(&mut writer).expect("room on disk")).collect();
    let mut time_ns = samples.last().map_or(0, |sample| sample.time_ns);
    for &sample in samples.iter().cycle() {
        time_ns += 250_000;
        let sample = Sample { time_ns, ..sample };
        writer.record(&Record::Sample(sample)).expect("room on disk");
        if writer.bytes_written() >= 1 << 30 {
            break;
        }
    }
    drop(writer.finish().expect("room on disk").0);
    file
}

/// Opening a gigabyte by its index, and without its end: then the blocks are looked for.
fn open(c: &mut Criterion) {
    let file = LazyCell::new(gigabyte);
    let mut group = c.benchmark_group("spool/open_1GiB");
    group.sample_size(10);
    group.bench_function("indexed", |b| {
        b.iter(|| Snapshot::open(&*file).expect("a sound spool").samples());
    });
    group.bench_function("scanned", |b| {
        let len = file.metadata().expect("a file of our own").len();
        file.set_len(len - 1).expect("a file of our own");
        b.iter(|| Snapshot::open(&*file).expect("a sound spool").samples());
    });
    group.finish();
}

/// The definitions before a moment in the middle, loaded for reading from there.
fn seek(c: &mut Criterion) {
    let fixture = LazyCell::new(|| spool(Shape::RandomWalk, 1_000_000, options()));
    let mut group = c.benchmark_group("spool/seek");
    group.sample_size(20);
    group.bench_function("middle_of_1M_samples", |b| {
        let mut snapshot = Snapshot::open(Cursor::new(&*fixture)).expect("a sound spool");
        let (first_ns, last_ns) = snapshot.span_ns().expect("a spool with samples");
        b.iter(|| {
            snapshot.seek(first_ns / 2 + last_ns / 2).expect("a sound spool");
            black_box(snapshot.next().expect("a sound spool").is_some())
        });
    });
    group.finish();
}

criterion_group!(benches, write, read, open, seek);
criterion_main!(benches);
