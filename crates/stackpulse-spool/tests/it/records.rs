//! Writing and reading as the tests do it.

use proptest::prelude::*;
use stackpulse_spool::{
    Frame, FrameId, Host, Image, ImageId, ImageKind, Mapping, Process, ProcessId, Record,
    RecordSink, Replay, Sample, Settings, StackId, StackRun, State, Thread, ThreadId, Truncation,
    Writer, WriterOptions, text,
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

/// One of every kind of record.
pub(crate) fn every_kind() -> Vec<Record<'static>> {
    let process = ProcessId(0);
    let thread = ThreadId(0);
    let image = ImageId(0);
    vec![
        Record::Settings(Settings {
            event: b"cpu-clock",
            rate_hz: 997,
            stack_size_bytes: 32_768,
            kernel_frames: true,
            follows_children: true,
            start_monotonic_ns: 1000,
            start_realtime_ns: 1_700_000_000_000_000_000,
        }),
        Record::Host(Host {
            architecture: b"x86_64",
            kernel_release: b"6.18",
            boot_id: b"0a-1b",
            kernel_build_id: &[1, 2, 3],
            cpu_model: b"A \"CPU\"",
            online_cpus: 2,
        }),
        Record::Process(Process { pid: 10, generation: 0, parent: None, time_ns: 1000 }),
        Record::Process(Process { pid: 11, generation: 3, parent: Some(process), time_ns: 1500 }),
        Record::Fork { parent: process, child: ProcessId(1), time_ns: 1500 },
        Record::Comm { process, time_ns: 1501, comm: b"prog\xff" },
        Record::CommandLine { process, time_ns: 1502, arguments: b"prog\0-x\0" },
        Record::Exec { process, time_ns: 1503 },
        Record::Thread(Thread { process, tid: 10, time_ns: 1000 }),
        Record::ThreadName { thread, time_ns: 1504, name: b"worker" },
        Record::Image(Image {
            kind: ImageKind::Elf,
            path: b"/usr/bin/prog",
            build_id: &[0xab; 20],
            device: (254, 1),
            inode: 12,
            file_size: 4096,
            modified_ns: 99,
        }),
        Record::Mapping(Mapping {
            process,
            time_ns: 1505,
            start_avma: 0x5000,
            end_avma: 0x6000,
            file_offset: 0x1000,
            image,
        }),
        Record::Unmapping { process, time_ns: 1506, start_avma: 0x5000, end_avma: 0x6000 },
        Record::Symbol { image, address: 0x1000, size: 16, name: b"__vdso_time" },
        Record::GeneratedName { image, time_ns: 1507, address: 0x2000, size: 8, name: b"py::f" },
        Record::Annotation { process, time_ns: 1508, key: b"runtime", value: b"python" },
        Record::Frame(Frame::Code { image, address: 0x1234 }),
        Record::Frame(Frame::Truncated(Truncation::OutsideCapture)),
        Record::Frame(Frame::Joined),
        Record::Stack(StackRun {
            parent: StackId::EMPTY,
            frames: &[FrameId(1), FrameId(2), FrameId(0)],
        }),
        Record::Sample(Sample {
            time_ns: 2000,
            thread,
            cpu: 1,
            weight: 1_003_009,
            leaf: FrameId(0),
            callers: StackId(3),
        }),
        Record::Lost { time_ns: 2001, cpu: Some(1), events: 5 },
        Record::Throttle { time_ns: 2002, cpu: None, throttled: true },
        Record::Gap { start_ns: 2001, end_ns: 2100 },
        Record::Pause { time_ns: 2101, paused: true },
        Record::ThreadExit { thread, time_ns: 2102 },
        Record::ProcessExit { process, time_ns: 2103 },
        Record::Epoch,
        Record::Process(Process { pid: 10, generation: 1, parent: None, time_ns: 3000 }),
        Record::Counter { name: b"samples_written", value: u64::MAX },
        Record::End { time_ns: 4000 },
    ]
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
