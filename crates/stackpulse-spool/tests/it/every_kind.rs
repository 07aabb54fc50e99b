//! One of every kind of record.

use stackpulse_spool::{
    Frame, FrameId, Host, Image, ImageId, ImageKind, Mapping, Process, ProcessId, Record, Sample,
    Settings, StackId, StackRun, Thread, ThreadId, Truncation,
};

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
