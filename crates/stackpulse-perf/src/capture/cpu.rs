//! One CPU's two rings and the events that write into them.

use super::attr::Attributes;
use super::limits::refused;
use super::pool::Pool;
use super::ring::{Found, Ring};
use super::{exits, sys};
use crate::decode::{Decoded, RecordKind, decode};
use crate::error::{OpenError, OpenStep};
use crate::event::{Event, EventKind};
use crate::layout::SampleLayout;
use crate::payload::Payload;
use crate::regs::Arch;
use crate::sample::Sample;
use crate::sorter::Sorter;
use crate::stats::Statistics;
use perf_event_open::count::Counter;
use std::io::{self, Read};

/// Length of a lifecycle ring in bytes: about a thousand mappings.
const LIFECYCLE_RING_BYTES: usize = 128 << 10;

/// The events of one CPU, and the rings they share.
pub(crate) struct CpuEvents {
    pub(crate) cpu: u32,
    sampling: Vec<Counter>,
    lifecycle: Vec<Counter>,
    rings: Option<Rings>,
    /// Which event of each ring is waited on.
    watched: [usize; 2],
}

#[derive(Debug)]
struct Rings {
    samples: Ring,
    lifecycle: Ring,
}

/// Which of a CPU's rings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Which {
    Samples,
    Lifecycle,
}

impl std::fmt::Debug for CpuEvents {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let threads = self.sampling.len();
        f.debug_struct("CpuEvents")
            .field("cpu", &self.cpu)
            .field("threads", &threads)
            .finish_non_exhaustive()
    }
}

impl CpuEvents {
    pub(crate) fn new(cpu: u32) -> Self {
        Self { cpu, sampling: Vec::new(), lifecycle: Vec::new(), rings: None, watched: [0; 2] }
    }

    /// Opens a thread's two events on this CPU.
    pub(crate) fn open(
        &mut self,
        attributes: &Attributes,
        arch: Arch,
        pid: u32,
        tid: u32,
    ) -> Result<(), OpenError> {
        let step = || OpenStep::OpenEvent { tid, cpu: self.cpu };
        let open =
            |result: io::Result<Counter>| result.map_err(|error| refused(step(), error, pid));
        let lifecycle = open(attributes.open_lifecycle(tid, self.cpu))?;
        let sampling = open(attributes.open_sampling(arch, tid, self.cpu))?;
        if self.rings.is_some() {
            let redirect = |event: &Counter, owner: &Counter| {
                sys::redirect(event.file(), owner.file())
                    .map_err(|error| refused(OpenStep::Redirect { tid, cpu: self.cpu }, error, pid))
            };
            redirect(&sampling, &self.sampling[0])?;
            redirect(&lifecycle, &self.lifecycle[0])?;
        }
        self.sampling.push(sampling);
        self.lifecycle.push(lifecycle);
        Ok(())
    }

    /// Maps the rings onto the first events.
    pub(crate) fn map_rings(
        &mut self,
        page: usize,
        data_pages: usize,
        leases: usize,
    ) -> io::Result<()> {
        let (Some(sampling), Some(lifecycle)) = (self.sampling.first(), self.lifecycle.first())
        else {
            return Err(io::Error::other("no event to map a ring onto"));
        };
        let lifecycle_pages = (LIFECYCLE_RING_BYTES / page).max(1).min(data_pages);
        self.rings = Some(Rings {
            samples: Ring::map(sampling.file(), page, data_pages, leases)?,
            lifecycle: Ring::map(lifecycle.file(), page, lifecycle_pages, 1)?,
        });
        Ok(())
    }

    pub(crate) fn unmap_rings(&mut self) {
        self.rings = None;
    }

    /// Bytes of the sample ring.
    pub(crate) fn ring_bytes(&self) -> usize {
        self.rings.as_ref().map_or(0, |rings| rings.samples.data_len())
    }

    /// How many threads have events here.
    pub(crate) fn len(&self) -> usize {
        self.sampling.len()
    }

    /// Closes all events after the first `len`.
    pub(crate) fn truncate(&mut self, len: usize) {
        self.sampling.truncate(len);
        self.lifecycle.truncate(len);
    }

    /// Lets the sampling events count, or stops them, from the one at `first` on.
    pub(crate) fn switch(&self, first: usize, on: bool) -> io::Result<()> {
        let switch = if on { sys::enable } else { sys::disable };
        self.sampling.iter().skip(first).try_for_each(|event| switch(event.file()))
    }

    /// Returns the event to wait on for a ring.
    pub(crate) fn watched(&self, which: Which) -> Option<&std::fs::File> {
        let (events, at) = match which {
            Which::Samples => (&self.sampling, self.watched[0]),
            Which::Lifecycle => (&self.lifecycle, self.watched[1]),
        };
        events.get(at).map(Counter::file)
    }

    /// Goes on to the next event of the ring: the task of the one before has ended, and its event tells nothing more.
    pub(crate) fn watch_next(&mut self, which: Which) {
        let at = match which {
            Which::Samples => &mut self.watched[0],
            Which::Lifecycle => &mut self.watched[1],
        };
        *at += 1;
    }

    /// Events that the kernel says it dropped, over all of this CPU's events.
    pub(crate) fn lost(&self) -> io::Result<u64> {
        let mut lost = 0u64;
        for event in &self.sampling {
            // With PERF_FORMAT_LOST alone a read gives the value, then the count of lost samples.
            let mut bytes = [0; 16];
            let mut file = event.file();
            if file.read(&mut bytes)? == bytes.len() {
                let [.., a, b, c, d, e, f, g, h] = bytes;
                lost = lost.saturating_add(u64::from_ne_bytes([a, b, c, d, e, f, g, h]));
            }
        }
        Ok(lost)
    }

    /// Whether a ring has something unread.
    pub(crate) fn has_unread(&self) -> bool {
        let unread = |ring: &Ring| ring.has_unread();
        self.rings.as_ref().is_some_and(|rings| unread(&rings.samples) || unread(&rings.lifecycle))
    }

    /// Gives the kernel back what is free.
    pub(crate) fn reclaim(&mut self) {
        if let Some(rings) = &mut self.rings {
            rings.samples.reclaim();
        }
    }

    /// Whether leases keep more than three quarters of the sample ring.
    pub(crate) fn is_crowded(&self) -> bool {
        let crowded = |ring: &Ring| ring.pinned_bytes() > ring.data_len() as u64 / 4 * 3;
        self.rings.as_ref().is_some_and(|rings| crowded(&rings.samples))
    }

    /// Reads what both rings hold into the sorter.
    pub(crate) fn read(&mut self, reader: &mut Reader<'_>) {
        let cpu = self.cpu;
        let Some(rings) = &mut self.rings else { return };
        reader.read_ring(&mut rings.lifecycle, cpu, reader.queue + 1, Which::Lifecycle);
        reader.read_ring(&mut rings.samples, cpu, reader.queue, Which::Samples);
    }
}

/// Where a round's records go.
pub(crate) struct Reader<'a> {
    pub(crate) sorter: &'a mut Sorter<u64, Event>,
    pub(crate) pool: &'a mut Pool,
    pub(crate) statistics: &'a mut Statistics,
    pub(crate) exits: &'a mut exits::Exits,
    pub(crate) layouts: [SampleLayout; 2],
    pub(crate) follows_children: bool,
    /// The sorter's queue of the sample ring; the lifecycle ring's is the next.
    pub(crate) queue: usize,
}

impl Reader<'_> {
    fn read_ring(&mut self, ring: &mut Ring, cpu: u32, queue: usize, which: Which) {
        let layout = self.layouts[usize::from(which == Which::Lifecycle)];
        let head = ring.head();
        loop {
            let found = match ring.find(head) {
                Ok(Some(found)) => found,
                Ok(None) => break,
                Err(_) => {
                    self.statistics.bad_rings = self.statistics.bad_rings.saturating_add(1);
                    break;
                }
            };
            match found {
                Found::Whole { offset, len, end } => {
                    let decoded = decode(ring.whole(offset, len), &layout);
                    let is_sample =
                        matches!(&decoded, Ok(Decoded { record: RecordKind::Sample(..), .. }));
                    let lease = if is_sample { ring.lease(offset, len, end) } else { None };
                    let payload = match lease {
                        Some(lease) => Some(Payload::leased(lease)),
                        None => {
                            let copy = if is_sample {
                                self.copy([ring.whole(offset, len), &[]])
                            } else {
                                None
                            };
                            ring.pass(end);
                            copy
                        }
                    };
                    self.take(decoded, payload, layout, cpu, queue, which);
                }
                Found::Wrapped { offset, first_len, rest_len, end } => {
                    let pieces = ring.pieces(offset, first_len, rest_len);
                    if let Some(payload) = self.copy(pieces) {
                        let decoded = decode(payload.bytes(), &layout);
                        self.take(decoded, Some(payload), layout, cpu, queue, which);
                    } else {
                        self.dropped(cpu, queue);
                    }
                    ring.pass(end);
                }
            }
        }
        ring.reclaim();
    }

    fn copy(&mut self, pieces: [&[u8]; 2]) -> Option<Payload> {
        let payload = self.pool.copy(pieces)?;
        self.statistics.saw_copy(payload.bytes().len());
        Some(payload)
    }

    /// A record for which there was no memory is told as lost: nothing goes silently.
    fn dropped(&mut self, cpu: u32, queue: usize) {
        let time_ns = super::clock::monotonic_ns();
        let kind = EventKind::Lost { events: 1, lifecycle: false };
        self.statistics.lost = self.statistics.lost.saturating_add(1);
        self.sorter.push(queue, time_ns, Event { time_ns, cpu: Some(cpu), kind });
    }

    fn take(
        &mut self,
        decoded: Result<Decoded, crate::DecodeError>,
        payload: Option<Payload>,
        layout: SampleLayout,
        cpu: u32,
        queue: usize,
        which: Which,
    ) {
        let Ok(decoded) = decoded else {
            self.statistics.bad_records = self.statistics.bad_records.saturating_add(1);
            return;
        };
        let Some(time_ns) = decoded.time_ns else {
            self.statistics.without_time = self.statistics.without_time.saturating_add(1);
            return;
        };
        let kind = match decoded.record {
            RecordKind::Sample(head, parts) => {
                self.statistics.samples = self.statistics.samples.saturating_add(1);
                let Some(payload) = payload else { return self.dropped(cpu, queue) };
                EventKind::Sample(Sample::new(
                    head,
                    layout.arch,
                    layout.user_regs_mask,
                    parts,
                    payload,
                ))
            }
            RecordKind::Mmap(mmap) => EventKind::Mmap(mmap),
            RecordKind::Comm { task, comm, exec } => EventKind::Comm { task, comm, exec },
            RecordKind::Fork { child, parent } => {
                if child.pid != parent.pid {
                    // A parent's event tells of its children also where only its threads inherit it.
                    if !self.follows_children {
                        return;
                    }
                    self.exits.follow(child.pid);
                }
                EventKind::Fork { child, parent }
            }
            RecordKind::Exit { task } => EventKind::Exit { task },
            RecordKind::Lost { events } => {
                self.statistics.lost = self.statistics.lost.saturating_add(events);
                EventKind::Lost { events, lifecycle: which == Which::Lifecycle }
            }
            RecordKind::Throttle { throttled } => {
                self.statistics.throttles =
                    self.statistics.throttles.saturating_add(u64::from(throttled));
                EventKind::Throttle { throttled }
            }
            RecordKind::Other { .. } => {
                self.statistics.other_records = self.statistics.other_records.saturating_add(1);
                return;
            }
        };
        let cpu = decoded.cpu.or(Some(cpu));
        self.sorter.push(queue, time_ns, Event { time_ns, cpu, kind });
    }
}
