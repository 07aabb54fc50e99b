//! The Firefox Profiler's processed profile, compressed by gzip.

mod marker;
mod thin;

use crate::names::clean;
use crate::profile::{Mode, Profile};
use crate::stacks::{ProfileThread, StackKey};
use crate::timeline::Timeline;
use flate2::{Compression, write::GzEncoder};
use fxprof_processed_profile as fx;
use marker::MissingMarker;
use rustc_hash::FxHashMap;
use std::io::{self, Write};
use thin::{Thinned, thin};

/// Writes a gzip-compressed profile for <https://profiler.firefox.com>.
///
/// Processes, threads and samples with their time; frames in the categories user, kernel and jit; losses, gaps
/// and pauses as markers of the first thread. CPU use is told where the samples are of CPU time.
///
/// With `max_size`, in bytes, no more than that is written: of each thread one sample stands for several that follow one another,
/// with the weight of all of them.
///
/// # Errors
///
/// Those of `out`; one of kind `FileTooLarge` if `max_size` is less than the profile needs without samples.
pub fn write_firefox(
    profile: &Profile,
    max_size: Option<u64>,
    mut out: impl Write,
) -> io::Result<()> {
    let Some(max_size) = max_size else {
        compress(profile, 1, &mut out)?;
        return out.flush();
    };
    let mut stratum = 1;
    loop {
        let mut bounded = Bounded { bytes: Vec::new(), max_size };
        let all = profile.stacks.total.max(1);
        match compress(profile, stratum, &mut bounded) {
            Ok(()) => {
                out.write_all(&bounded.bytes)?;
                return out.flush();
            }
            Err(error) if error.kind() == io::ErrorKind::FileTooLarge && stratum as u64 <= all => {
                stratum *= 2;
            }
            Err(error) if error.kind() == io::ErrorKind::FileTooLarge => {
                return Err(io::Error::new(
                    io::ErrorKind::FileTooLarge,
                    format!(
                        "even with one sample of each thread the profile is larger than {max_size} bytes; give a larger size, or fewer threads"
                    ),
                ));
            }
            Err(error) => return Err(error),
        }
    }
}

/// Bytes up to a limit.
struct Bounded {
    bytes: Vec<u8>,
    max_size: u64,
}

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if (self.bytes.len() + bytes.len()) as u64 > self.max_size {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn compress(profile: &Profile, stratum: usize, out: impl Write) -> io::Result<()> {
    let empty = Timeline::default();
    let timeline = profile.stacks.timeline.as_ref().unwrap_or(&empty);
    let converted = Converter::new(profile, timeline).convert(stratum);
    let mut encoder = GzEncoder::new(out, Compression::fast());
    let buffered = io::BufWriter::with_capacity(1 << 16, &mut encoder);
    serde_json::to_writer(buffered, &converted).map_err(|error| match error.io_error_kind() {
        Some(kind) => kind.into(),
        None => io::Error::other(error),
    })?;
    encoder.finish()?;
    Ok(())
}

/// Builds the other profile.
struct Converter<'a> {
    profile: &'a Profile,
    timeline: &'a Timeline,
    target: fx::Profile,
    /// For each function its name and category there.
    functions: Vec<fx::FrameInfo>,
    /// Stacks of the current thread, by node of callers.
    known: FxHashMap<u32, fx::StackHandle>,
    frames: FxHashMap<u32, fx::FrameHandle>,
}

impl<'a> Converter<'a> {
    fn new(profile: &'a Profile, timeline: &'a Timeline) -> Self {
        let first = profile.stacks.processes.first().map(|process| &process.comm);
        let product = clean(&String::from_utf8_lossy(first.map_or(b"stackpulse", Vec::as_slice)));
        let start = std::time::Duration::from_nanos(timeline.start_realtime_ns);
        let start = fx::ReferenceTimestamp::from_duration_since_unix_epoch(start);
        let interval = fx::SamplingInterval::from_nanos(timeline.interval_ns());
        let mut target = fx::Profile::new(&product, start, interval);
        // Names are in it: nothing is to be looked up.
        target.set_symbolicated(true);
        let user = target.add_category("User", fx::CategoryColor::Yellow);
        let kernel = target.add_category("Kernel", fx::CategoryColor::Orange);
        let jit = target.add_category("JIT", fx::CategoryColor::Blue);
        let functions = profile.functions.iter().map(|function| fx::FrameInfo {
            frame: fx::Frame::Label(target.intern_string(&clean(&function.label()))),
            category_pair: match function.mode {
                Mode::User => user,
                Mode::Kernel => kernel,
                Mode::Generated => jit,
                Mode::Marker => fx::CategoryHandle::OTHER,
            }
            .into(),
            flags: fx::FrameFlags::empty(),
        });
        let functions = functions.collect();
        let (known, frames) = (FxHashMap::default(), FxHashMap::default());
        Self { profile, timeline, target, functions, known, frames }
    }

    fn convert(mut self, stratum: usize) -> fx::Profile {
        let stacks = &self.profile.stacks;
        let by_thread = self.timeline.by_thread(stacks.threads.len());
        let mut processes: FxHashMap<u32, fx::ProcessHandle> = FxHashMap::default();
        let mut first = None;
        for ((at, thread), samples) in stacks.threads.iter().enumerate().zip(by_thread) {
            if samples.is_empty() && stacks.threads.len() > 1 {
                continue;
            }
            let process = *processes
                .entry(thread.process)
                .or_insert_with(|| self.add_process(thread.process));
            let handle = self.add_thread(process, at, thread);
            first.get_or_insert(handle);
            self.known.clear();
            self.frames.clear();
            for thinned in thin(self.timeline, &samples, stratum) {
                self.add_sample(handle, thinned);
            }
        }
        if let Some(thread) = first {
            self.add_marks(thread);
        }
        self.target
    }

    fn add_process(&mut self, at: u32) -> fx::ProcessHandle {
        let process = &self.profile.stacks.processes[at as usize];
        let name = clean(&String::from_utf8_lossy(&process.comm));
        let handle = self.target.add_process(&name, process.pid, self.time(process.start_ns));
        if let Some(end_ns) = process.end_ns {
            self.target.set_process_end_time(handle, self.time(end_ns));
        }
        handle
    }

    fn add_thread(
        &mut self,
        process: fx::ProcessHandle,
        at: usize,
        thread: &ProfileThread,
    ) -> fx::ThreadHandle {
        let pid = self.profile.stacks.processes[thread.process as usize].pid;
        let start = self.time(thread.start_ns);
        let handle = self.target.add_thread(process, thread.tid, start, thread.tid == pid);
        self.target.set_thread_name(handle, &clean(&self.profile.stacks.thread_label(at)));
        if let Some(end_ns) = thread.end_ns {
            self.target.set_thread_end_time(handle, self.time(end_ns));
        }
        handle
    }

    fn add_sample(&mut self, thread: fx::ThreadHandle, thinned: Thinned) {
        let stack = self.stack(thread, self.timeline.stacks[thinned.sample.stack as usize]);
        let delta = if self.timeline.is_cpu_time() { thinned.weight } else { 0 };
        let count = i32::try_from(thinned.count).unwrap_or(i32::MAX);
        let time = self.time(thinned.sample.time_ns);
        self.target.add_sample(thread, time, stack, fx::CpuDelta::from_nanos(delta), count);
    }

    /// Converts a stack; callers that were met before are not walked again.
    fn stack(&mut self, thread: fx::ThreadHandle, stack: StackKey) -> Option<fx::StackHandle> {
        let profile = self.profile;
        let (mut pending, mut node) = (Vec::new(), stack.callers);
        let mut at = None;
        while node != 0 {
            if let Some(&known) = self.known.get(&node) {
                at = Some(known);
                break;
            }
            pending.push(node);
            node = profile.stacks.nodes[node as usize].parent;
        }
        while let Some(node) = pending.pop() {
            at = self.place(thread, at, profile.stacks.nodes[node as usize].place);
            if let Some(at) = at {
                self.known.insert(node, at);
            }
        }
        self.place(thread, at, stack.leaf)
    }

    fn place(
        &mut self,
        thread: fx::ThreadHandle,
        callers: Option<fx::StackHandle>,
        place: u32,
    ) -> Option<fx::StackHandle> {
        let calls = self.profile.calls[place as usize].iter().rev();
        calls.fold(callers, |callers, call| {
            let function = call.function.0;
            let frame = *self.frames.entry(function).or_insert_with(|| {
                self.target.intern_frame(thread, self.functions[function as usize].clone())
            });
            Some(self.target.intern_stack(thread, callers, frame))
        })
    }

    fn add_marks(&mut self, thread: fx::ThreadHandle) {
        for mark in &self.timeline.marks {
            let name = self.target.intern_string("Missing");
            let what = self.target.intern_string(&mark.kind.label());
            let (start, end) = (self.time(mark.start_ns), self.time(mark.end_ns));
            let timing = if mark.start_ns == mark.end_ns {
                fx::MarkerTiming::Instant(start)
            } else {
                fx::MarkerTiming::Interval(start, end)
            };
            self.target.add_marker(thread, timing, MissingMarker { name, what });
        }
    }

    fn time(&self, time_ns: u64) -> fx::Timestamp {
        fx::Timestamp::from_nanos_since_reference(self.timeline.since_start_ns(time_ns))
    }
}
