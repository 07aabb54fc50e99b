//! Sequences of records that keep the rules; the fuzz targets use them too.

use stackpulse_spool::{
    Frame, FrameId, Image, ImageId, ImageKind, Process, ProcessId, Record, Sample, StackId,
    StackRun, Thread, ThreadId, Truncation,
};

/// The first frames, the highest first.
static DOWNWARDS: [FrameId; 64] = {
    let mut frames = [FrameId(0); 64];
    let mut frame = 0u32;
    while frame < 64 {
        frames[63 - frame as usize] = FrameId(frame);
        frame += 1;
    }
    frames
};

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
                let known = DOWNWARDS.len().min(frames as usize);
                let downwards = &DOWNWARDS[DOWNWARDS.len() - known..];
                let start = below(b, frames) as usize % known;
                let end = known.min(start + 1 + below(a, 5) as usize);
                let parent = StackId(below(a, nodes + 1));
                nodes += u32::try_from(end - start).unwrap();
                Record::Stack(StackRun { parent, frames: &downwards[start..end] })
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

/// A record's line with its times rounded down to multiples of 2^shift.
pub(crate) fn rounded(line: &str, shift: u32) -> String {
    let round = |word: &str| {
        let (key, time) =
            word.split_once('=').filter(|word| ["time", "start", "end"].contains(&word.0))?;
        Some(format!("{key}={}", time.parse::<u64>().ok()? >> shift << shift))
    };
    let words = line.split(' ').map(|word| round(word).unwrap_or_else(|| word.to_owned()));
    words.collect::<Vec<_>>().join(" ")
}
