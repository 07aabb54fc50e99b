//! Writing and reading as the tests do it.

pub(crate) use crate::every_kind::every_kind;
use proptest::prelude::*;
use stackpulse_spool::{
    Frame, FrameId, Image, ImageId, ImageKind, Process, ProcessId, Record, RecordSink, Replay,
    Sample, StackId, StackRun, State, Thread, ThreadId, Truncation, Writer, WriterOptions, text,
};

/// Writes the records as one finished spool.
pub(crate) fn write(records: &[Record<'_>], options: WriterOptions) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), options).unwrap();
    for record in records {
        writer.record(record).unwrap();
    }
    writer.finish().unwrap().0
}

/// Reads all records of a spool as lines of text.
pub(crate) fn read(bytes: &[u8]) -> (Vec<String>, State) {
    let mut replay = Replay::open(bytes).unwrap();
    let mut lines = Vec::new();
    while let Some(record) = replay.next().unwrap() {
        lines.push(text::line(&record).to_string());
    }
    (lines, replay.state())
}

/// The records as lines of text.
pub(crate) fn lines(records: &[Record<'_>]) -> Vec<String> {
    records.iter().map(|record| text::line(record).to_string()).collect()
}

/// A valid sequence of records from random numbers: each is made to refer to what is there.
pub(crate) fn sequence(choices: &[(u8, u64, u64)]) -> Vec<Record<'static>> {
    let mut records = Vec::new();
    let (mut images, mut processes, mut threads, mut frames, mut nodes) =
        (0u32, 0u32, 0u32, 0u32, 0u32);
    let below = |number: u64, count: u32| u32::try_from(number % u64::from(count.max(1))).unwrap();
    for &(choice, a, b) in choices {
        let record = match choice % 10 {
            0 => {
                images += 1;
                Record::Image(Image {
                    kind: [ImageKind::Elf, ImageKind::Kernel, ImageKind::Unknown]
                        [below(a, 3) as usize],
                    path: [&b"/a"[..], b"", b"/long/path/of/a/library.so"][below(b, 3) as usize],
                    build_id: b"id",
                    device: (1, 2),
                    inode: a,
                    file_size: b,
                    modified_ns: a ^ b,
                })
            }
            1 => {
                let parent = (processes > 0).then(|| ProcessId(below(b, processes)));
                processes += 1;
                Record::Process(Process {
                    pid: below(a, u32::MAX),
                    generation: 1,
                    parent,
                    time_ns: b,
                })
            }
            2 if processes > 0 => {
                threads += 1;
                Record::Thread(Thread {
                    process: ProcessId(below(a, processes)),
                    tid: 7,
                    time_ns: b,
                })
            }
            3 if images > 0 => {
                frames += 1;
                Record::Frame(Frame::Code { image: ImageId(below(a, images)), address: b })
            }
            4 => {
                frames += 1;
                Record::Frame(Frame::Truncated(Truncation::Loop))
            }
            5 if frames > 0 => {
                let run: Vec<FrameId> =
                    (0..=a % 5).map(|at| FrameId(below(b.wrapping_mul(at + 1), frames))).collect();
                let parent = StackId(below(a, nodes + 1));
                nodes += u32::try_from(run.len()).unwrap();
                Record::Stack(StackRun { parent, frames: run.leak() })
            }
            6 | 7 if frames > 0 && threads > 0 => Record::Sample(Sample {
                time_ns: a,
                thread: ThreadId(below(b, threads)),
                cpu: below(a, 70),
                weight: b,
                leaf: FrameId(below(a ^ b, frames)),
                callers: StackId(below(b, nodes + 1)),
            }),
            8 if a % 16 == 0 => {
                (images, processes, threads, frames, nodes) = (0, 0, 0, 0, 0);
                Record::Epoch
            }
            _ => Record::Lost { time_ns: a, cpu: (b % 3 > 0).then_some(below(b, 300)), events: b },
        };
        records.push(record);
    }
    records
}

/// Random choices for [`sequence`], with small and extreme numbers among them.
pub(crate) fn choices() -> impl Strategy<Value = Vec<(u8, u64, u64)>> {
    let number = prop_oneof![0..20u64, any::<u64>(), Just(u64::MAX), 1_000_000..1_010_000u64];
    prop::collection::vec((any::<u8>(), number.clone(), number), 0..200)
}
