//! From a ring's records to events in the sorter.

use super::cpu::Which;
use super::exits::Exits;
use super::followed::Followed;
use super::pool::Pool;
use super::ring::{Found, Ring};
use crate::decode::{DecodeError, Decoded, RecordKind, decode};
use crate::event::{Event, EventKind};
use crate::layout::SampleLayout;
use crate::payload::Payload;
use crate::sample::Sample;
use crate::sorter::Sorter;
use crate::stats::Statistics;

/// Where a round's records come from and go.
pub(crate) struct Reader<'a> {
    pub(crate) sorter: &'a mut Sorter<u64, Event>,
    pub(crate) pool: &'a mut Pool,
    pub(crate) statistics: &'a mut Statistics,
    pub(crate) exits: &'a mut Exits,
    pub(crate) followed: &'a mut Followed,
    /// Of the sample rings and of the lifecycle rings.
    pub(crate) layouts: [SampleLayout; 2],
    pub(crate) follows_children: bool,
    /// The sorter's queue of the CPU's sample ring; the lifecycle ring's is the next.
    pub(crate) queue: usize,
    pub(crate) source: Source,
}

/// The ring that is being read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Source {
    pub(crate) cpu: u32,
    pub(crate) which: Which,
    pub(crate) leases: bool,
}

impl Reader<'_> {
    /// Reads what the ring holds; returns how many events its records say were lost.
    pub(crate) fn read_ring(&mut self, ring: &mut Ring) -> u64 {
        let lost_before = self.statistics.lost;
        let head = ring.head();
        loop {
            match ring.find(head) {
                Ok(Some(found)) => self.read_record(ring, &found),
                Ok(None) => break,
                Err(_) => {
                    self.statistics.bad_rings = self.statistics.bad_rings.saturating_add(1);
                    break;
                }
            }
        }
        ring.reclaim();
        self.statistics.lost.saturating_sub(lost_before)
    }

    fn read_record(&mut self, ring: &mut Ring, found: &Found) {
        let layout = self.layouts[self.source.which as usize];
        match *found {
            Found::Whole { offset, len, end } => {
                let decoded = decode(ring.whole(offset, len), &layout);
                if !decoded.as_ref().is_ok_and(is_sample) {
                    ring.pass(end);
                    return self.take(decoded, None);
                }
                let may_lease = self.source.leases && !ring.is_crowded();
                let payload = match may_lease.then(|| ring.lease(offset, len, end)).flatten() {
                    Some(lease) => Payload::leased(lease),
                    None => self.copy_or_lease(ring, (offset, len), end),
                };
                self.take(decoded, Some(payload));
            }
            Found::Wrapped { offset, first_len, rest_len, end } => {
                let pieces = ring.pieces(offset, first_len, rest_len);
                // It cannot be leased. One comes with each turn of the ring, so few are beyond the pool's limit.
                let payload = self
                    .pool
                    .copy(pieces)
                    .unwrap_or_else(|| pieces.concat().into_boxed_slice().into());
                ring.pass(end);
                let decoded = decode(payload.bytes(), &layout);
                if decoded.as_ref().is_ok_and(is_sample) {
                    self.statistics.saw_copy(payload.bytes().len());
                }
                self.take(decoded, Some(payload));
            }
        }
    }

    /// Copies a sample out of the ring; without room for copies it stays, and the kernel counts what it cannot write.
    fn copy_or_lease(
        &mut self,
        ring: &mut Ring,
        (offset, len): (usize, usize),
        end: u64,
    ) -> Payload {
        let copy = self.pool.copy([ring.whole(offset, len), &[]]);
        if copy.is_none()
            && let Some(lease) = ring.lease(offset, len, end)
        {
            return Payload::leased(lease);
        }
        // The ring has a slot for every sample it can hold, so the last resort is not taken.
        let payload = copy.unwrap_or_else(|| <Box<[u8]>>::from(ring.whole(offset, len)).into());
        self.statistics.saw_copy(len);
        ring.pass(end);
        payload
    }

    fn take(&mut self, decoded: Result<Decoded, DecodeError>, payload: Option<Payload>) {
        let Ok(decoded) = decoded else {
            self.statistics.bad_records = self.statistics.bad_records.saturating_add(1);
            return;
        };
        let Some(time_ns) = decoded.time_ns else {
            self.statistics.without_time = self.statistics.without_time.saturating_add(1);
            return;
        };
        let Some(kind) = self.kind(decoded.record, payload) else { return };
        let Source { cpu, which, .. } = self.source;
        let event = Event { time_ns, cpu: decoded.cpu.or(Some(cpu)), kind };
        self.sorter.push(self.queue + which as usize, time_ns, event);
    }

    /// Counts and notes what a record tells, and makes an event of it if it is one.
    fn kind(&mut self, record: RecordKind, payload: Option<Payload>) -> Option<EventKind> {
        Some(match record {
            RecordKind::Sample(head, parts) => {
                self.statistics.samples = self.statistics.samples.saturating_add(1);
                let layout = self.layouts[self.source.which as usize];
                let payload = payload?;
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
                        return None;
                    }
                    self.exits.note(child.pid);
                }
                self.followed.began(child.tid);
                EventKind::Fork { child, parent }
            }
            RecordKind::Exit { task } => {
                self.followed.ended(task.tid);
                EventKind::Exit { task }
            }
            RecordKind::Lost { events } => {
                let lifecycle = self.source.which == Which::Lifecycle;
                if lifecycle {
                    self.followed.lost_sight();
                }
                self.statistics.lost = self.statistics.lost.saturating_add(events);
                EventKind::Lost { events, lifecycle }
            }
            RecordKind::Throttle { throttled } => {
                self.statistics.throttles =
                    self.statistics.throttles.saturating_add(u64::from(throttled));
                EventKind::Throttle { throttled }
            }
            RecordKind::Other { .. } => {
                self.statistics.other_records = self.statistics.other_records.saturating_add(1);
                return None;
            }
        })
    }
}

fn is_sample(decoded: &Decoded) -> bool {
    matches!(decoded.record, RecordKind::Sample(..))
}

#[cfg(test)]
mod tests;
