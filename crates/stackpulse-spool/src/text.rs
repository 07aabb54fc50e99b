//! A spool as text: one line a record, the same for ever, made to be compared.

use crate::record::{Frame, ImageKind, Record, Truncation};
use crate::replay::State;
use crate::symbols::{Answer, ImageKey};
use std::fmt::{self, Write};

/// Shows a record as one line of text, without its end.
///
/// Strings are quoted, with everything but printable ASCII escaped; ids are those of the epoch; times are
/// nanoseconds.
#[must_use]
pub fn line<'a>(record: &'a Record<'a>) -> impl fmt::Display + 'a {
    Line(record)
}

/// Shows the answer stored for an address as one line of text, without its end.
#[must_use]
pub fn name<'a>(key: ImageKey, address: u64, answer: Answer<'a>) -> impl fmt::Display + use<'a> {
    Name(key, address, answer)
}

/// Shows how far a spool goes as one line of text, without its end.
#[must_use]
pub fn state(state: State) -> impl fmt::Display {
    Reached(state)
}

struct Line<'a>(&'a Record<'a>);

struct Name<'a>(ImageKey, u64, Answer<'a>);

struct Reached(State);

/// A string in quotes.
struct Quoted<'a>(&'a [u8]);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.0.escape_ascii())
    }
}

/// Bytes as hexadecimal digits.
struct Hex<'a>(&'a [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_char('-');
        }
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// A CPU, or `-` where it is not known.
struct Cpu(Option<u32>);

impl fmt::Display for Cpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(cpu) => write!(f, "{cpu}"),
            None => f.write_char('-'),
        }
    }
}

/// An image kind's word in the text.
#[must_use]
pub fn image_kind(kind: ImageKind) -> &'static str {
    match kind {
        ImageKind::Elf => "elf",
        ImageKind::File => "file",
        ImageKind::Vdso => "vdso",
        ImageKind::Kernel => "kernel",
        ImageKind::Generated => "generated",
        ImageKind::Unknown => "unknown",
    }
}

/// A truncation's word in the text, the same in every output.
#[must_use]
pub fn truncation(reason: Truncation) -> &'static str {
    match reason {
        Truncation::OutsideCapture => "outside_capture",
        Truncation::NoUnwindInfo => "no_unwind_info",
        Truncation::BadCfa => "bad_cfa",
        Truncation::NullReturnAddress => "null_return_address",
        Truncation::DepthLimit => "depth_limit",
        Truncation::Loop => "loop",
        Truncation::NoRegisters => "no_registers",
    }
}

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(key, address, answer) = self;
        write!(
            f,
            "name epoch={} image={} address={address:#x} start={:#x} origin={}",
            key.epoch,
            key.image.0,
            answer.start(),
            answer.origin()
        )?;
        answer.calls().try_for_each(|call| {
            let (function, file) = (Quoted(call.function), Quoted(call.file));
            write!(f, " {function} at {file}:{}:{}", call.line, call.column)
        })
    }
}

impl fmt::Display for Reached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            State::Finished => f.write_str("state finished"),
            State::Aborted => f.write_str("state aborted"),
            State::Torn { offset } => write!(f, "state torn at {offset}"),
        }
    }
}

impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self.0 {
            Record::Epoch => f.write_str("epoch"),
            Record::Settings(s) => write!(
                f,
                "settings event={} rate={} stack={} kernel={} children={} start={} realtime={}",
                Quoted(s.event),
                s.rate_hz,
                s.stack_size_bytes,
                s.kernel_frames,
                s.follows_children,
                s.start_monotonic_ns,
                s.start_realtime_ns
            ),
            Record::Host(h) => write!(
                f,
                "host architecture={} release={} boot={} kernel-id={} cpu={} cpus={}",
                Quoted(h.architecture),
                Quoted(h.kernel_release),
                Quoted(h.boot_id),
                Hex(h.kernel_build_id),
                Quoted(h.cpu_model),
                h.online_cpus
            ),
            Record::Image(i) => write!(
                f,
                "image kind={} path={} id={} device={}:{} inode={} size={} modified={}",
                image_kind(i.kind),
                Quoted(i.path),
                Hex(i.build_id),
                i.device.0,
                i.device.1,
                i.inode,
                i.file_size,
                i.modified_ns
            ),
            Record::Process(p) => {
                write!(
                    f,
                    "process time={} pid={} generation={} parent=",
                    p.time_ns, p.pid, p.generation
                )?;
                match p.parent {
                    Some(parent) => write!(f, "{}", parent.0),
                    None => f.write_char('-'),
                }
            }
            Record::Thread(t) => {
                write!(f, "thread time={} process={} tid={}", t.time_ns, t.process.0, t.tid)
            }
            Record::Frame(Frame::Code { image, address }) => {
                write!(f, "frame image={} address={address:#x}", image.0)
            }
            Record::Frame(Frame::Truncated(reason)) => {
                write!(f, "frame truncated={}", truncation(reason))
            }
            Record::Frame(Frame::Joined) => f.write_str("frame joined"),
            Record::Stack(run) => {
                write!(f, "stack parent={} frames=", run.parent.0)?;
                for (at, frame) in run.frames.iter().enumerate() {
                    write!(f, "{}{}", if at == 0 { "" } else { "," }, frame.0)?;
                }
                Ok(())
            }
            Record::Sample(s) => write!(
                f,
                "sample time={} thread={} cpu={} weight={} leaf={} callers={}",
                s.time_ns, s.thread.0, s.cpu, s.weight, s.leaf.0, s.callers.0
            ),
            _ => event(self.0, f),
        }
    }
}

/// Records of what happened.
fn event(record: &Record<'_>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match *record {
        Record::Comm { process, time_ns, comm } => {
            write!(f, "comm time={time_ns} process={} comm={}", process.0, Quoted(comm))
        }
        Record::CommandLine { process, time_ns, arguments } => {
            write!(
                f,
                "command-line time={time_ns} process={} arguments={}",
                process.0,
                Quoted(arguments)
            )
        }
        Record::ThreadName { thread, time_ns, name } => {
            write!(f, "thread-name time={time_ns} thread={} name={}", thread.0, Quoted(name))
        }
        Record::Fork { parent, child, time_ns } => {
            write!(f, "fork time={time_ns} parent={} child={}", parent.0, child.0)
        }
        Record::Exec { process, time_ns } => write!(f, "exec time={time_ns} process={}", process.0),
        Record::ProcessExit { process, time_ns } => {
            write!(f, "process-exit time={time_ns} process={}", process.0)
        }
        Record::ThreadExit { thread, time_ns } => {
            write!(f, "thread-exit time={time_ns} thread={}", thread.0)
        }
        Record::Mapping(m) => write!(
            f,
            "mapping time={} process={} range={:#x}-{:#x} offset={:#x} image={}",
            m.time_ns, m.process.0, m.start_avma, m.end_avma, m.file_offset, m.image.0
        ),
        Record::Unmapping { process, time_ns, start_avma, end_avma } => write!(
            f,
            "unmapping time={time_ns} process={} range={start_avma:#x}-{end_avma:#x}",
            process.0
        ),
        Record::Lost { time_ns, cpu, events } => {
            write!(f, "lost time={time_ns} cpu={} events={events}", Cpu(cpu))
        }
        Record::Throttle { time_ns, cpu, throttled } => {
            write!(f, "throttle time={time_ns} cpu={} throttled={throttled}", Cpu(cpu))
        }
        Record::Gap { start_ns, end_ns } => write!(f, "gap start={start_ns} end={end_ns}"),
        Record::Pause { time_ns, paused } => write!(f, "pause time={time_ns} paused={paused}"),
        Record::GeneratedName { image, time_ns, address, size, name } => write!(
            f,
            "generated-name time={time_ns} image={} address={address:#x} size={size:#x} name={}",
            image.0,
            Quoted(name)
        ),
        Record::Symbol { image, address, size, name } => write!(
            f,
            "symbol image={} address={address:#x} size={size:#x} name={}",
            image.0,
            Quoted(name)
        ),
        Record::Annotation { process, time_ns, key, value } => write!(
            f,
            "annotation time={time_ns} process={} key={} value={}",
            process.0,
            Quoted(key),
            Quoted(value)
        ),
        Record::Counter { name, value } => write!(f, "counter name={} value={value}", Quoted(name)),
        Record::End { time_ns } => write!(f, "end time={time_ns}"),
        // Every other record was written above.
        _ => Ok(()),
    }
}
