//! What writing and reading cost in memory.

use stackpulse_spool::{
    Frame, FrameId, Process, ProcessId, Record, RecordSink, Replay, Sample, StackId, StackRun,
    Thread, ThreadId, Truncation, Writer, WriterOptions,
};

/// Defines what [`sample`] refers to.
fn define<S: RecordSink>(sink: &mut S)
where
    S::Error: std::fmt::Debug,
{
    sink.record(&Record::Process(Process { pid: 7, generation: 0, parent: None, time_ns: 0 }))
        .unwrap();
    sink.record(&Record::Thread(Thread { process: ProcessId(0), tid: 7, time_ns: 0 })).unwrap();
    for truncation in [Truncation::Loop, Truncation::BadCfa] {
        sink.record(&Record::Frame(Frame::Truncated(truncation))).unwrap();
    }
    sink.record(&Record::Stack(StackRun {
        parent: StackId::EMPTY,
        frames: &[FrameId(0), FrameId(1)],
    }))
    .unwrap();
}

fn sample(at: u64) -> Record<'static> {
    Record::Sample(Sample {
        time_ns: at * 250_000 + at * at % 3000,
        thread: ThreadId(0),
        cpu: u32::from(at.is_multiple_of(3)),
        weight: 250_000,
        leaf: FrameId(u32::from(at.is_multiple_of(5))),
        callers: StackId(u32::from(at.is_multiple_of(7))),
    })
}

#[test]
fn writing_samples_of_known_stacks_allocates_nothing() {
    let options = WriterOptions::default().block_bytes(64 << 10);
    let mut writer = Writer::new(std::io::sink(), options).unwrap();
    define(&mut writer);
    // Blocks are filled and published until all buffers have grown to their size.
    (0..100_000).for_each(|at| writer.record(&sample(at)).unwrap());
    let before = writer.bytes_written();
    let info = allocation_counter::measure(|| {
        (100_000..200_000).for_each(|at| writer.record(&sample(at)).unwrap());
    });
    assert!(writer.bytes_written() > before, "blocks were published");
    // The index takes an entry for each block, in a table that doubles.
    assert!(info.count_total <= 2, "{info:?}");
}

#[test]
fn a_reader_needs_memory_for_definitions_and_not_for_samples() {
    let spool = |samples| {
        let mut writer = Writer::new(Vec::new(), WriterOptions::default()).unwrap();
        define(&mut writer);
        (0..samples).for_each(|at| writer.record(&sample(at)).unwrap());
        writer.finish().unwrap().0
    };
    let peak = |bytes: &[u8]| {
        allocation_counter::measure(|| {
            let mut replay = Replay::open(bytes).unwrap();
            while replay.next().unwrap().is_some() {}
        })
        .bytes_max
    };
    let (some, many) = (spool(500_000), spool(2_000_000));
    let (some, many) = (peak(&some), peak(&many));
    assert!(many < some * 3 / 2, "{some} bytes for 500,000 samples, {many} for 2,000,000");
}
