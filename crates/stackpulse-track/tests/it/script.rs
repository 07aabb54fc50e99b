//! A scripted world, and events made by hand.

use stackpulse_perf::regs::{Arch, RegsAbi, x86_64};
use stackpulse_perf::{
    AttachedProcess, CpuMode, Event, EventKind, FileIdentity, Mmap, Payload, Sample, SampleHead,
    SampleParts, Task,
};
use stackpulse_spool::{Frame, Record, RecordSink, text};
use stackpulse_track::{
    Engine, EngineOptions, GeneratedCode, ImageError, ImageFile, ImageRequest, ProcessSource,
};
use std::cell::Cell;
use std::collections::HashMap;
use std::convert::Infallible;
use std::rc::Rc;

/// What `/proc` would say.
#[derive(Clone, Debug, Default)]
pub(crate) struct World {
    pub(crate) maps: HashMap<u32, String>,
    pub(crate) images: HashMap<Vec<u8>, ImageFile>,
    pub(crate) names: HashMap<u32, Vec<GeneratedCode>>,
    /// Paths of files that are code made at run time.
    pub(crate) generated: Vec<&'static str>,
    /// How often maps were asked for.
    pub(crate) maps_read: Rc<Cell<u32>>,
}

impl ProcessSource for World {
    fn maps(&mut self, pid: u32) -> Option<Box<[u8]>> {
        self.maps_read.update(|reads| reads + 1);
        self.maps.get(&pid).map(|text| text.as_bytes().into())
    }

    fn command_line(&mut self, _: u32) -> Option<Box<[u8]>> {
        None
    }

    fn image(&mut self, request: &ImageRequest<'_>) -> Result<ImageFile, ImageError> {
        if self.generated.iter().any(|path| path.as_bytes() == request.path) {
            return Err(ImageError::Generated);
        }
        self.images.get(request.path).cloned().ok_or(ImageError::Unreadable)
    }

    fn generated_names(&mut self, pid: u32, _: bool) -> Vec<GeneratedCode> {
        self.names.get(&pid).cloned().unwrap_or_default()
    }
}

/// Collects records as text, with frames shown by the path of their image.
#[derive(Default)]
pub(crate) struct Lines {
    pub(crate) all: Vec<String>,
    images: Vec<String>,
    frames: Vec<String>,
    nodes: Vec<(u32, u32)>,
    /// One line a sample: its frames, innermost first.
    pub(crate) stacks: Vec<String>,
}

impl RecordSink for Lines {
    type Error = Infallible;

    fn record(&mut self, record: &Record<'_>) -> Result<(), Infallible> {
        self.all.push(text::line(record).to_string());
        match *record {
            Record::Image(image) => {
                let path = String::from_utf8_lossy(image.path).into_owned();
                self.images.push(if path.is_empty() {
                    text::image_kind(image.kind).to_owned()
                } else {
                    path
                });
            }
            Record::Frame(Frame::Code { image, address }) => {
                self.frames.push(format!("{}+{address:#x}", self.images[image.0 as usize]));
            }
            Record::Frame(Frame::Truncated(reason)) => {
                self.frames.push(format!("[{}]", text::truncation(reason)));
            }
            Record::Frame(Frame::Joined) => self.frames.push("[joined]".to_owned()),
            Record::Stack(run) => {
                let mut parent = run.parent.0;
                for frame in run.frames {
                    self.nodes.push((parent, frame.0));
                    parent = u32::try_from(self.nodes.len()).unwrap();
                }
            }
            Record::Sample(sample) => {
                let mut stack = vec![self.frames[sample.leaf.0 as usize].clone()];
                let mut node = sample.callers.0;
                while let Some(at) = node.checked_sub(1) {
                    let (parent, frame) = self.nodes[at as usize];
                    stack.push(self.frames[frame as usize].clone());
                    node = parent;
                }
                self.stacks.push(stack.join(" "));
            }
            _ => {}
        }
        Ok(())
    }
}

/// Runs a script; what came out.
pub(crate) fn run(events: Vec<Event>, world: World) -> Lines {
    run_with(with_kernel_frames(), events, world)
}

/// Runs a script in an engine with options; what came out.
pub(crate) fn run_with(options: EngineOptions, events: Vec<Event>, world: World) -> Lines {
    let mut engine = Engine::new(world, Lines::default(), options);
    for event in events {
        engine.handle(event).unwrap();
    }
    engine.finish(u64::MAX).unwrap();
    engine.into_sink()
}

/// What engines of most tests do.
pub(crate) fn with_kernel_frames() -> EngineOptions {
    let mut options = EngineOptions::default();
    options.kernel_frames = true;
    options
}

pub(crate) fn event(time_ns: u64, kind: EventKind) -> Event {
    Event { time_ns, cpu: Some(0), kind }
}

pub(crate) fn task(pid: u32, tid: u32) -> Task {
    Task { pid, tid }
}

pub(crate) fn attached(time_ns: u64, pid: u32, maps: &str) -> Event {
    let threads = vec![(pid, b"prog"[..].into())];
    event(
        time_ns,
        EventKind::Attached(AttachedProcess {
            pid,
            parent_pid: None,
            threads,
            maps: maps.as_bytes().into(),
        }),
    )
}

pub(crate) fn mmap(time_ns: u64, pid: u32, start_avma: u64, file_offset: u64, path: &str) -> Event {
    event(
        time_ns,
        EventKind::Mmap(Mmap {
            task: task(pid, pid),
            start_avma,
            len_bytes: 0x1000,
            file_offset,
            executable: true,
            file: FileIdentity::default(),
            path: path.as_bytes().into(),
        }),
    )
}

pub(crate) fn fork(time_ns: u64, parent: Task, child: Task) -> Event {
    event(time_ns, EventKind::Fork { child, parent })
}

pub(crate) fn comm(time_ns: u64, task: Task, comm: &str, exec: bool) -> Event {
    event(time_ns, EventKind::Comm { task, comm: comm.as_bytes().into(), exec })
}

/// A sample in user code, with pc, sp and fp, and this stack.
pub(crate) fn sample(
    time_ns: u64,
    task: Task,
    pc: u64,
    (sp, fp): (u64, u64),
    stack: &[u64],
) -> Event {
    let mask = Arch::X86_64.general_mask();
    let mut bytes = Vec::new();
    for register in (0..64).filter(|register| mask >> register & 1 != 0) {
        let value = match register {
            x86_64::IP => pc,
            x86_64::SP => sp,
            x86_64::BP => fp,
            _ => 0,
        };
        bytes.extend_from_slice(&value.to_ne_bytes());
    }
    let regs = 0..bytes.len();
    stack.iter().for_each(|word| bytes.extend_from_slice(&word.to_le_bytes()));
    let parts = SampleParts {
        callchain: 0..0,
        regs: Some((RegsAbi::Bits64, regs.clone())),
        stack: regs.end..bytes.len(),
    };
    sample_of(
        time_ns,
        SampleHead { task: Some(task), ip_avma: pc, cpu_mode: CpuMode::User, period: 1 },
        parts,
        bytes,
    )
}

/// A sample without registers.
pub(crate) fn bare_sample(time_ns: u64, head: SampleHead) -> Event {
    sample_of(time_ns, head, SampleParts::default(), Vec::new())
}

fn sample_of(time_ns: u64, head: SampleHead, parts: SampleParts, bytes: Vec<u8>) -> Event {
    let payload = Payload::from(bytes.into_boxed_slice());
    let mask = Arch::X86_64.general_mask();
    event(time_ns, EventKind::Sample(Sample::new(head, Arch::X86_64, mask, parts, payload)))
}
