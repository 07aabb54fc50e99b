//! One process's samples of a recording of perf's, to be unwound again and again; and a sink that only counts.

use stackpulse_perf::regs::{Arch, RegsAbi};
use stackpulse_perf::{Event, EventKind, Mmap, Payload, Sample, SampleHead, SampleParts, Task};
use stackpulse_spool::{Frame, Record, RecordSink};
use stackpulse_track::perf_data::{Facts, PerfData, PerfDataError};
use std::collections::HashMap;
use std::convert::Infallible;
use std::io::{Read, Seek};
use std::sync::Arc;

/// A sample: what the kernel captured of the thread.
#[derive(Clone, Debug)]
pub struct Captured {
    time_ns: u64,
    head: SampleHead,
    /// The registers, then the stack.
    bytes: Arc<Vec<u8>>,
    regs_len: usize,
    /// pc, sp and fp of x86-64.
    pub registers: [u64; 3],
}

impl Captured {
    fn of(time_ns: u64, sample: &Sample, arch: Arch) -> Option<Self> {
        let regs = sample.user_regs().filter(|regs| regs.abi() == RegsAbi::Bits64)?;
        let mut bytes = Vec::new();
        for register in (0..64).filter(|register| arch.general_mask() >> register & 1 != 0) {
            bytes.extend(regs.get(register).unwrap_or_default().to_ne_bytes());
        }
        let regs_len = bytes.len();
        bytes.extend_from_slice(sample.user_stack());
        let registers =
            [regs.pc()?, regs.sp()?, regs.get(stackpulse_perf::regs::x86_64::BP).unwrap_or(0)];
        Some(Self { time_ns, head: *sample.head(), bytes: Arc::new(bytes), regs_len, registers })
    }

    /// As an event for the engine; nothing is copied.
    #[must_use]
    pub fn event(&self, arch: Arch) -> Event {
        let parts = SampleParts {
            callchain: 0..0,
            regs: Some((RegsAbi::Bits64, 0..self.regs_len)),
            stack: self.regs_len..self.bytes.len(),
        };
        let payload = Payload::shared(Arc::clone(&self.bytes), 0..self.bytes.len());
        let sample = Sample::new(self.head, arch, arch.general_mask(), parts, payload);
        Event { time_ns: self.time_ns, cpu: None, kind: EventKind::Sample(sample) }
    }

    /// The stack's bytes, from the stack pointer upwards.
    #[must_use]
    pub fn stack(&self) -> &[u8] {
        self.bytes.get(self.regs_len..).unwrap_or_default()
    }
}

/// The program with the most samples: its executable mappings at the end, and its samples.
#[derive(Debug)]
pub struct Program {
    /// What the file says of the recording.
    pub facts: Facts,
    /// In the order they were mapped.
    pub mappings: Vec<Mmap>,
    /// In the order of time.
    pub samples: Vec<Captured>,
}

impl Program {
    /// Reads a recording.
    ///
    /// # Errors
    ///
    /// When it cannot be read.
    pub fn read(input: impl Read + Seek) -> Result<Self, PerfDataError> {
        let mut data = PerfData::open(input)?;
        let facts = data.facts().clone();
        let mut programs: HashMap<(u32, u32), (Vec<Mmap>, Vec<Captured>)> = HashMap::new();
        let mut execs: HashMap<u32, u32> = HashMap::new();
        while let Some(Event { time_ns, kind, .. }) = data.next_event()? {
            match kind {
                EventKind::Comm { task, exec: true, .. } => {
                    *execs.entry(task.pid).or_default() += 1;
                }
                EventKind::Mmap(mmap) if mmap.executable => {
                    let pid = mmap.task.pid;
                    let exec = execs.get(&pid).copied().unwrap_or_default();
                    programs.entry((pid, exec)).or_default().0.push(mmap);
                }
                EventKind::Sample(sample) => {
                    let Some(Task { pid, .. }) = sample.head().task else { continue };
                    let exec = execs.get(&pid).copied().unwrap_or_default();
                    let captured = Captured::of(time_ns, &sample, Arch::X86_64);
                    programs.entry((pid, exec)).or_default().1.extend(captured);
                }
                _ => {}
            }
        }
        let most = programs.into_values().max_by_key(|(_, samples)| samples.len());
        let (mappings, samples) = most.unwrap_or_default();
        Ok(Self { facts, mappings, samples })
    }

    /// The mappings as events, before all samples.
    pub fn mapping_events(&self) -> impl Iterator<Item = Event> + '_ {
        let comm = self.mappings.first().map(|mmap| Event {
            time_ns: 1,
            cpu: None,
            kind: EventKind::Comm { task: mmap.task, comm: b"bench"[..].into(), exec: true },
        });
        let mapped = self.mappings.iter().map(|mmap| Event {
            time_ns: 1,
            cpu: None,
            kind: EventKind::Mmap(mmap.clone()),
        });
        comm.into_iter().chain(mapped)
    }
}

/// Counts frames, and can tell the last sample's.
#[derive(Debug, Default)]
pub struct Counting {
    /// Frames of all samples.
    pub frames: u64,
    images: Vec<Vec<u8>>,
    places: Vec<Frame>,
    /// Parent, frame and depth of each node.
    nodes: Vec<(u32, u32, u32)>,
    last: (u32, u32),
}

impl Counting {
    /// The last sample's frames, innermost first: path and address; and whether a marker ends them.
    #[must_use]
    pub fn last_stack(&self) -> (Vec<(&[u8], u64)>, Option<Frame>) {
        let mut frames = Vec::new();
        let (leaf, mut node) = self.last;
        let mut next = Some(leaf);
        while let Some(frame) = next {
            match self.places.get(frame as usize) {
                Some(Frame::Code { image, address }) => {
                    let path = self.images.get(image.0 as usize);
                    frames.push((path.map_or(&b""[..], Vec::as_slice), *address));
                }
                Some(marker) => return (frames, Some(*marker)),
                None => break,
            }
            next = None;
            if let Some(&(parent, frame, _)) =
                node.checked_sub(1).and_then(|at| self.nodes.get(at as usize))
            {
                (next, node) = (Some(frame), parent);
            }
        }
        (frames, None)
    }
}

impl RecordSink for Counting {
    type Error = Infallible;

    fn record(&mut self, record: &Record<'_>) -> Result<(), Infallible> {
        match record {
            Record::Image(image) => self.images.push(image.path.to_vec()),
            Record::Frame(frame) => self.places.push(*frame),
            Record::Stack(run) => {
                let mut parent = run.parent.0;
                for frame in run.frames {
                    let above = parent.checked_sub(1).and_then(|at| self.nodes.get(at as usize));
                    let depth = above.map_or(0, |&(.., depth)| depth) + 1;
                    self.nodes.push((parent, frame.0, depth));
                    parent = u32::try_from(self.nodes.len()).unwrap_or(u32::MAX);
                }
            }
            Record::Sample(sample) => {
                let above = sample.callers.0.checked_sub(1);
                let node = above.and_then(|at| self.nodes.get(at as usize));
                self.frames += 1 + u64::from(node.map_or(0, |&(.., depth)| depth));
                self.last = (sample.leaf.0, sample.callers.0);
            }
            _ => {}
        }
        Ok(())
    }
}
