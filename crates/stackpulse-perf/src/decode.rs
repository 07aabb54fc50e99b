//! The kernel's records, from bytes; total on any input.
//!
//! The formats are those of perf_event_open(2) and `include/uapi/linux/perf_event.h`.

use crate::event::{FileIdentity, Mmap, Task};
use crate::layout::{SampleLayout, branch_format, field, read_format};
use crate::regs::RegsAbi;
use crate::sample::{CpuMode, SampleHead, SampleParts};
use thiserror::Error;

/// Length of a record's header in bytes.
pub const RECORD_HEADER_LEN: usize = 8;

const MMAP: u32 = 1;
const LOST: u32 = 2;
const COMM: u32 = 3;
const EXIT: u32 = 4;
const THROTTLE: u32 = 5;
const UNTHROTTLE: u32 = 6;
const FORK: u32 = 7;
const SAMPLE: u32 = 9;
const MMAP2: u32 = 10;
const LOST_SAMPLES: u32 = 13;

const MISC_CPUMODE_MASK: u16 = 7;
const MISC_MMAP_DATA: u16 = 1 << 13;
const MISC_COMM_EXEC: u16 = 1 << 13;
const MISC_MMAP_BUILD_ID: u16 = 1 << 14;
const PROT_EXEC: u32 = 4;

/// Why bytes are no record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// Fewer bytes than the record's fields need.
    #[error("the record of type {kind} ends early, at byte {at}")]
    Truncated {
        /// The record's type.
        kind: u32,
        /// Where a field begins that is not there.
        at: usize,
    },
    /// The header's size is not that of the bytes.
    #[error("the record says it has {size} bytes")]
    BadSize {
        /// What it says.
        size: usize,
    },
}

/// One record, what happened and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decoded {
    /// Nanoseconds of the event's clock, if the record carries a time.
    pub time_ns: Option<u64>,
    /// The CPU, if the record carries one.
    pub cpu: Option<u32>,
    /// What happened.
    pub record: RecordKind,
}

/// What a record says.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RecordKind {
    /// A sample: small facts and where its parts lie in the record.
    Sample(SampleHead, SampleParts),
    /// A mapping.
    Mmap(Mmap),
    /// A new comm.
    Comm {
        /// The thread.
        task: Task,
        /// Its comm.
        comm: Box<[u8]>,
        /// Whether by an exec.
        exec: bool,
    },
    /// A new thread or process.
    Fork {
        /// The new thread.
        child: Task,
        /// Who created it.
        parent: Task,
    },
    /// A thread's end.
    Exit {
        /// The thread.
        task: Task,
    },
    /// Events the kernel dropped.
    Lost {
        /// How many.
        events: u64,
    },
    /// Sampling was slowed (`true`) or resumed.
    Throttle {
        /// Whether it is slow from here on.
        throttled: bool,
    },
    /// A type that is not of interest.
    Other {
        /// The type.
        kind: u32,
    },
}

/// Decodes one record: `bytes` is exactly it, header included.
///
/// # Errors
///
/// When the bytes are fewer than the fields the record must have.
pub fn decode(bytes: &[u8], layout: &SampleLayout) -> Result<Decoded, DecodeError> {
    let mut fields = Fields { bytes, at: 0, kind: 0 };
    let kind = fields.u32()?;
    fields.kind = kind;
    let misc = fields.u16()?;
    let size = usize::from(fields.u16()?);
    if size != bytes.len() {
        return Err(DecodeError::BadSize { size });
    }
    if kind == SAMPLE {
        return sample(fields, misc, layout);
    }
    let id = SampleId::at_end(bytes, layout);
    let end = bytes.len().saturating_sub(id.len).max(RECORD_HEADER_LEN.min(bytes.len()));
    fields.bytes = &bytes[..end];
    let record = match kind {
        MMAP | MMAP2 => mapping(&mut fields, kind, misc)?,
        COMM => {
            let task = fields.task()?;
            RecordKind::Comm {
                task,
                comm: fields.string().into(),
                exec: misc & MISC_COMM_EXEC != 0,
            }
        }
        FORK | EXIT => {
            let (pid, ppid) = (fields.u32()?, fields.u32()?);
            let (tid, ptid) = (fields.u32()?, fields.u32()?);
            let task = Task { pid, tid };
            match kind {
                FORK => RecordKind::Fork { child: task, parent: Task { pid: ppid, tid: ptid } },
                _ => RecordKind::Exit { task },
            }
        }
        LOST => {
            fields.u64()?;
            RecordKind::Lost { events: fields.u64()? }
        }
        LOST_SAMPLES => RecordKind::Lost { events: fields.u64()? },
        THROTTLE | UNTHROTTLE => RecordKind::Throttle { throttled: kind == THROTTLE },
        _ => RecordKind::Other { kind },
    };
    Ok(Decoded { time_ns: id.time_ns, cpu: id.cpu, record })
}

fn mapping(fields: &mut Fields<'_>, kind: u32, misc: u16) -> Result<RecordKind, DecodeError> {
    let task = fields.task()?;
    let start_avma = fields.u64()?;
    let len_bytes = fields.u64()?;
    let file_offset = fields.u64()?;
    let mut file = FileIdentity::default();
    let mut executable = misc & MISC_MMAP_DATA == 0;
    if kind == MMAP2 {
        if misc & MISC_MMAP_BUILD_ID != 0 {
            let size = fields.u8()?;
            fields.take(3)?;
            let build_id = fields.take(20)?;
            file.build_id = build_id.get(..usize::from(size)).map(Into::into);
        } else {
            file.device = (fields.u32()?, fields.u32()?);
            file.inode = fields.u64()?;
            file.inode_generation = fields.u64()?;
        }
        executable = fields.u32()? & PROT_EXEC != 0;
        fields.u32()?;
    }
    let path = fields.string().into();
    Ok(RecordKind::Mmap(Mmap { task, start_avma, len_bytes, file_offset, executable, file, path }))
}

fn sample(
    mut fields: Fields<'_>,
    misc: u16,
    layout: &SampleLayout,
) -> Result<Decoded, DecodeError> {
    let mut head = SampleHead {
        task: None,
        ip_avma: 0,
        cpu_mode: cpu_mode(misc & MISC_CPUMODE_MASK),
        period: 1,
    };
    let mut parts = SampleParts::default();
    let (mut time_ns, mut cpu) = (None, None);
    if layout.has(field::IDENTIFIER) {
        fields.u64()?;
    }
    if layout.has(field::IP) {
        head.ip_avma = fields.u64()?;
    }
    if layout.has(field::TID) {
        // A task outside the recorder's pid namespace is -1.
        head.task =
            Some(fields.task()?).filter(|task| task.pid != u32::MAX && task.tid != u32::MAX);
    }
    if layout.has(field::TIME) {
        time_ns = Some(fields.u64()?);
    }
    for skipped in [field::ADDR, field::ID, field::STREAM_ID] {
        if layout.has(skipped) {
            fields.u64()?;
        }
    }
    if layout.has(field::CPU) {
        cpu = Some(fields.u32()?);
        fields.u32()?;
    }
    if layout.has(field::PERIOD) {
        head.period = fields.u64()?;
    }
    bulk(&mut fields, layout, &mut parts)?;
    Ok(Decoded { time_ns, cpu, record: RecordKind::Sample(head, parts) })
}

/// The fields of a sample whose lengths differ.
fn bulk(
    fields: &mut Fields<'_>,
    layout: &SampleLayout,
    parts: &mut SampleParts,
) -> Result<(), DecodeError> {
    if layout.has(field::READ) {
        counter_values(fields, layout.read_format)?;
    }
    if layout.has(field::CALLCHAIN) {
        let entries = fields.u64()?;
        parts.callchain = fields.part(entries.saturating_mul(8))?;
    }
    if layout.has(field::RAW) {
        let size = fields.u32()?;
        fields.part(u64::from(size))?;
    }
    if layout.has(field::BRANCH_STACK) {
        branch_stack(fields, layout.branch_format)?;
    }
    if layout.has(field::REGS_USER) {
        let abi = match fields.u64()? {
            0 => None,
            1 => Some(RegsAbi::Bits32),
            _ => Some(RegsAbi::Bits64),
        };
        if let Some(abi) = abi {
            let values = fields.part(u64::from(layout.user_regs_mask.count_ones()) * 8)?;
            parts.regs = Some((abi, values));
        }
    }
    if layout.has(field::STACK_USER) {
        let size = fields.u64()?;
        if size > 0 {
            let stack = fields.part(size)?;
            let copied = usize::try_from(fields.u64()?).unwrap_or(usize::MAX).min(stack.len());
            parts.stack = stack.start..stack.start + copied;
        }
    }
    Ok(())
}

/// Passes over `struct read_format`.
fn counter_values(fields: &mut Fields<'_>, format: u64) -> Result<(), DecodeError> {
    let present = |bits: u64| u64::from((format & bits).count_ones());
    let times = present(read_format::TOTAL_TIME_ENABLED | read_format::TOTAL_TIME_RUNNING);
    let each = 1 + present(read_format::ID | read_format::LOST);
    let values = if format & read_format::GROUP == 0 { 1 } else { fields.u64()? };
    fields.part(values.saturating_mul(each).saturating_add(times).saturating_mul(8))?;
    Ok(())
}

/// Passes over the branches: from, to, flags, eight bytes each.
fn branch_stack(fields: &mut Fields<'_>, format: u64) -> Result<(), DecodeError> {
    let branches = fields.u64()?;
    let index = u64::from(format & branch_format::HW_INDEX != 0);
    let each = if format & branch_format::COUNTERS == 0 { 3 } else { 4 };
    fields.part(branches.saturating_mul(each).saturating_add(index).saturating_mul(8))?;
    Ok(())
}

fn cpu_mode(misc: u16) -> CpuMode {
    match misc {
        1 => CpuMode::Kernel,
        2 => CpuMode::User,
        3 => CpuMode::Hypervisor,
        4 => CpuMode::GuestKernel,
        5 => CpuMode::GuestUser,
        _ => CpuMode::Unknown,
    }
}

/// What `sample_id_all` puts at the end of records that are no samples.
struct SampleId {
    len: usize,
    time_ns: Option<u64>,
    cpu: Option<u32>,
}

impl SampleId {
    fn at_end(bytes: &[u8], layout: &SampleLayout) -> Self {
        let mut id = Self { len: 0, time_ns: None, cpu: None };
        if !layout.id_all {
            return id;
        }
        let present =
            [field::TID, field::TIME, field::ID, field::STREAM_ID, field::CPU, field::IDENTIFIER];
        id.len = present.iter().filter(|&&part| layout.has(part)).count() * 8;
        let Some(start) = bytes.len().checked_sub(id.len) else { return id };
        let mut fields = Fields { bytes, at: start, kind: 0 };
        for part in present {
            if !layout.has(part) {
                continue;
            }
            let Ok(value) = fields.u64() else { return id };
            match part {
                field::TIME => id.time_ns = Some(value),
                // The CPU's number is the first half of its field, in native order.
                field::CPU => {
                    let [a, b, c, d, ..] = value.to_ne_bytes();
                    id.cpu = Some(u32::from_ne_bytes([a, b, c, d]));
                }
                _ => {}
            }
        }
        id
    }
}

/// A record's fields, one after the other, in native byte order.
struct Fields<'a> {
    bytes: &'a [u8],
    at: usize,
    kind: u32,
}

impl<'a> Fields<'a> {
    fn take(&mut self, len: usize) -> Result<&'a [u8], DecodeError> {
        let truncated = DecodeError::Truncated { kind: self.kind, at: self.at };
        let end = self.at.checked_add(len).ok_or(truncated)?;
        let bytes = self.bytes.get(self.at..end).ok_or(truncated)?;
        self.at = end;
        Ok(bytes)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    fn u8(&mut self) -> Result<u8, DecodeError> {
        self.array().map(u8::from_ne_bytes)
    }

    fn u16(&mut self) -> Result<u16, DecodeError> {
        self.array().map(u16::from_ne_bytes)
    }

    fn u32(&mut self) -> Result<u32, DecodeError> {
        self.array().map(u32::from_ne_bytes)
    }

    fn u64(&mut self) -> Result<u64, DecodeError> {
        self.array().map(u64::from_ne_bytes)
    }

    fn task(&mut self) -> Result<Task, DecodeError> {
        Ok(Task { pid: self.u32()?, tid: self.u32()? })
    }

    /// Passes over `len` bytes; where they lie in the record.
    fn part(&mut self, len: u64) -> Result<std::ops::Range<usize>, DecodeError> {
        let start = self.at;
        self.take(usize::try_from(len).unwrap_or(usize::MAX))?;
        Ok(start..self.at)
    }

    /// The rest up to the first NUL.
    fn string(&mut self) -> &'a [u8] {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        self.at = self.bytes.len();
        let end = rest.iter().position(|&byte| byte == 0).unwrap_or(rest.len());
        &rest[..end]
    }
}
