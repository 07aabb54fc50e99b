//! From records of the file to the engine's events.

use super::framing::Framed;
use super::header::{Attribute, Header};
use super::{PerfDataError, Statistics};
use linux_perf_event_reader::{AttrFlags, SamplingPolicy};
use stackpulse_perf::regs::Arch;
use stackpulse_perf::{
    AttachedProcess, CpuMode, Event, EventKind, Payload, RecordKind, Sample, SampleLayout, decode,
    field,
};
use std::collections::HashMap;

/// Record types (`enum perf_event_type`) that need more than decoding.
const FORK: u32 = 7;
const SAMPLE: u32 = 9;
const LOST_SAMPLES: u32 = 13;

/// On a fork: perf made the record of a process that was there before, from `/proc`.
const MISC_FORK_EXEC: u16 = 1 << 13;

/// Makes events of one of a file's sampled events.
#[derive(Debug)]
pub(super) struct Translator {
    layouts: Vec<Layout>,
    /// Which event an id is of.
    by_id: HashMap<u64, usize>,
    /// The event whose samples are taken.
    chosen: usize,
    arch: Arch,
    build_ids: HashMap<Vec<u8>, Vec<u8>>,
}

#[derive(Debug)]
struct Layout {
    sample: SampleLayout,
    /// What a sample stands for, where it does not say so itself.
    period: Option<u64>,
    counts_user_only: bool,
}

impl Translator {
    /// Chooses the first event that carries user registers and stacks.
    pub(super) fn new(header: &Header) -> Result<Self, PerfDataError> {
        let facts = &header.facts;
        let arch = facts.arch();
        let arch = arch.ok_or_else(|| PerfDataError::Architecture(facts.architecture.clone()))?;
        let layouts: Vec<_> =
            header.attributes.iter().map(|attribute| Layout::new(attribute, arch)).collect();
        let first = layouts.first().ok_or(PerfDataError::Damaged("list of events"))?;
        let chosen = layouts
            .iter()
            .position(|layout| {
                layout.sample.has(field::REGS_USER) && layout.sample.has(field::STACK_USER)
            })
            .ok_or_else(|| PerfDataError::NoStacks(header.event_name(0)))?;
        let has_ids = layouts.iter().all(|layout| layout.sample.has(field::IDENTIFIER));
        if !has_ids && layouts.iter().any(|layout| layout.sample != first.sample) {
            return Err(PerfDataError::NoIdentifier);
        }
        let by_id = header
            .attributes
            .iter()
            .enumerate()
            .flat_map(|(index, attribute)| attribute.ids.iter().map(move |&id| (id, index)))
            .collect();
        Ok(Self { layouts, by_id, chosen, arch, build_ids: header.facts.build_ids.clone() })
    }

    /// The index of the event whose samples are taken.
    pub(super) fn chosen(&self) -> usize {
        self.chosen
    }

    /// Makes an event of a record of the kernel's; `None` if it says nothing that is of use.
    pub(super) fn event(&self, record: &Framed, statistics: &mut Statistics) -> Option<Event> {
        let bytes = record.bytes();
        let index = self.event_of(record.kind, bytes);
        let layout = self.layouts.get(index)?;
        if record.kind == SAMPLE && index != self.chosen {
            statistics.samples_of_other_events += 1;
            return None;
        }
        let Ok(decoded) = decode(bytes, &layout.sample) else {
            statistics.bad_records += 1;
            return None;
        };
        let kind = match decoded.record {
            RecordKind::Sample(mut head, mut parts) => {
                head.period = layout.period.unwrap_or(head.period);
                // Hardware may interrupt a little later than it counts: after user code, in the kernel's first instructions.
                if layout.counts_user_only && head.cpu_mode == CpuMode::Kernel {
                    head.cpu_mode = CpuMode::User;
                    parts.callchain = 0..0;
                }
                let payload =
                    Payload::shared(std::sync::Arc::clone(&record.block), record.range.clone());
                let mask = layout.sample.user_regs_mask;
                EventKind::Sample(Sample::new(head, self.arch, mask, parts, payload))
            }
            RecordKind::Mmap(mut mmap) => {
                if mmap.file.build_id.is_none() {
                    mmap.file.build_id =
                        self.build_ids.get(&*mmap.path).map(|id| id.as_slice().into());
                }
                EventKind::Mmap(mmap)
            }
            RecordKind::Comm { task, comm, exec } => EventKind::Comm { task, comm, exec },
            RecordKind::Fork { child, parent } if is_of_proc(record) => {
                if child.pid != child.tid {
                    EventKind::Fork { child, parent }
                } else {
                    let (pid, parent_pid) = (child.pid, Some(parent.pid));
                    EventKind::Attached(AttachedProcess {
                        pid,
                        parent_pid,
                        ..AttachedProcess::default()
                    })
                }
            }
            RecordKind::Fork { child, parent } => EventKind::Fork { child, parent },
            RecordKind::Exit { task } => EventKind::Exit { task },
            // perf's own total, told at the end: what the kernel told on the way is in it.
            RecordKind::Lost { events } if record.kind == LOST_SAMPLES => {
                let untold = events.saturating_sub(statistics.lost);
                if untold == 0 {
                    return None;
                }
                statistics.lost = statistics.lost.saturating_add(untold);
                EventKind::Lost { events: untold, lifecycle: false }
            }
            RecordKind::Lost { events } => {
                statistics.lost = statistics.lost.saturating_add(events);
                EventKind::Lost { events, lifecycle: true }
            }
            RecordKind::Throttle { throttled } => EventKind::Throttle { throttled },
            _ => return None,
        };
        Some(Event { time_ns: decoded.time_ns.unwrap_or_default(), cpu: decoded.cpu, kind })
    }

    /// Which event a record is of, by the id that it begins or ends with.
    fn event_of(&self, kind: u32, bytes: &[u8]) -> usize {
        if self.layouts.len() == 1 {
            return 0;
        }
        let id = match self.layouts.first() {
            Some(layout) if layout.sample.has(field::IDENTIFIER) => match kind {
                SAMPLE => bytes.get(8..16),
                _ => bytes.len().checked_sub(8).and_then(|at| bytes.get(at..)),
            },
            Some(layout) if kind == SAMPLE && layout.sample.has(field::ID) => {
                let before = [field::IP, field::TID, field::TIME, field::ADDR];
                let before = before.iter().filter(|&&part| layout.sample.has(part)).count();
                bytes.get(8 + before * 8..16 + before * 8)
            }
            _ => None,
        };
        let id = id.and_then(|id| id.first_chunk().copied()).map(u64::from_le_bytes);
        id.and_then(|id| self.by_id.get(&id).copied()).unwrap_or(self.chosen)
    }
}

impl Layout {
    fn new(Attribute { attr, .. }: &Attribute, arch: Arch) -> Self {
        let sample = SampleLayout {
            fields: attr.sample_format.bits(),
            user_regs_mask: attr.sample_regs_user,
            arch,
            id_all: attr.flags.contains(AttrFlags::SAMPLE_ID_ALL),
            read_format: attr.read_format.bits(),
            branch_format: attr.branch_sample_format.bits(),
        };
        let period = match attr.sampling_policy {
            SamplingPolicy::Period(period) if !sample.has(field::PERIOD) => Some(period.get()),
            _ => None,
        };
        Self { sample, period, counts_user_only: attr.flags.contains(AttrFlags::EXCLUDE_KERNEL) }
    }
}

/// Whether a fork was told by `/proc`, not by the kernel: nothing was copied from the parent at that moment.
fn is_of_proc(record: &Framed) -> bool {
    record.kind == FORK && record.misc() & MISC_FORK_EXEC != 0
}
