//! Rounds: every ring read once, what is in order released, and the end.

use super::attr::Attributes;
use super::cpu::{CpuEvents, Which};
use super::pool::Pool;
use super::reader::{Reader, Source};
use super::{Capture, clock};
use crate::batch::Batch;
use crate::error::CaptureError;
use crate::event::{Event, EventKind};
use crate::stats::Statistics;
use std::io;

/// How often it is looked which CPUs are online.
const CPUS_INTERVAL_NS: u64 = 250_000_000;

impl Capture {
    /// Reads every ring once, and adds to the batch what is in order for good.
    ///
    /// # Errors
    ///
    /// When the ends of processes can no longer be followed.
    pub fn drain(&mut self, batch: &mut Batch) -> Result<(), CaptureError> {
        self.read_round()?;
        self.follow_cpus()?;
        self.sorter.end_round();
        self.release(batch);
        if self.topology.cpus.iter().any(CpuEvents::is_crowded) {
            self.detach_waiting();
        }
        Ok(())
    }

    /// Copies samples out of ring memory: those in the batch and those that wait; what the pool has no room for stays.
    pub fn detach(&mut self, batch: &mut Batch) {
        for event in batch.iter_mut() {
            detach(event, &mut self.pool, &mut self.statistics);
        }
        self.detach_waiting();
    }

    fn detach_waiting(&mut self) {
        for event in self.sorter.waiting_mut() {
            detach(event, &mut self.pool, &mut self.statistics);
        }
        self.topology.cpus.iter_mut().for_each(CpuEvents::reclaim);
    }

    /// Stops sampling and releases everything there is, in order.
    ///
    /// # Errors
    ///
    /// The first failure; all steps are tried.
    pub fn finish(&mut self, batch: &mut Batch) -> Result<(), CaptureError> {
        let disabled = self.topology.cpus.iter().try_for_each(|cpu| cpu.switch(0, false));
        self.sampling = false;
        // Held leases keep the kernel's writers out only of full rings, so one round sees all that is left.
        let read = self.read_round();
        let counted = self.count_untold_loss();
        self.sorter.end();
        self.release(batch);
        disabled.map_err(|source| CaptureError { attempt: "stop sampling", source })?;
        read?;
        counted.map_err(|source| CaptureError { attempt: "read how many events were lost", source })
    }

    /// Tells of losses that no record told: those after which nothing more was written.
    fn count_untold_loss(&mut self) -> io::Result<()> {
        // Only what the kernel counts can be read.
        if self.topology.attributes.granted.counts_lost {
            let untold = self.topology.cpus.iter().map(|cpu| Ok((cpu.cpu, cpu.untold_lost()?)));
            let untold: io::Result<Vec<_>> = untold.collect();
            self.push_lost(untold?);
        }
        Ok(())
    }

    /// Tells of lost samples of CPUs.
    fn push_lost(&mut self, lost: Vec<(u32, u64)>) {
        for (cpu, events) in lost.into_iter().filter(|&(_, events)| events > 0) {
            self.statistics.lost = self.statistics.lost.saturating_add(events);
            let time_ns = clock::monotonic_ns();
            let kind = EventKind::Lost { events, lifecycle: false };
            self.sorter.push(self.own_queue, time_ns, Event { time_ns, cpu: Some(cpu), kind });
        }
    }

    /// Opens what has come online, where the events of threads do not count there by themselves.
    fn follow_cpus(&mut self) -> Result<(), CaptureError> {
        let now_ns = clock::monotonic_ns();
        if self.topology.scope.fixed_name().is_none()
            || now_ns.saturating_sub(self.cpus_seen_ns) < CPUS_INTERVAL_NS
        {
            return Ok(());
        }
        self.cpus_seen_ns = now_ns;
        let changes = self.topology.follow_cpus(&self.poller);
        self.push_lost(changes.lost);
        if changes.any_opened {
            let failed = |source| CaptureError { attempt: "follow a CPU that came online", source };
            if self.sampling {
                let mut cpus = self.topology.cpus.iter();
                cpus.try_for_each(|cpu| cpu.switch(0, true)).map_err(failed)?;
            }
            self.topology.watch(&self.poller).map_err(failed)?;
        }
        Ok(())
    }

    fn read_round(&mut self) -> Result<(), CaptureError> {
        let ended = self.exits.take_ended();
        let retired = self.retirement.look(&mut self.topology, clock::monotonic_ns());
        self.read_rings();
        // Their ends were seen before the rings were read, so all that is theirs has been read. Where a pid is in use
        // again, the new process's fork has told the old one's end, and a later end would be taken for the new one's.
        for pid in ended {
            if !self.exits.is_noted(pid) {
                self.push_own(EventKind::ProcessExit { pid });
            }
        }
        self.exits
            .open_noted(&self.poller)
            .map_err(|source| CaptureError { attempt: "follow the ends of processes", source })?;
        retired.map_err(|source| CaptureError { attempt: "close events that have ended", source })
    }

    pub(super) fn read_rings(&mut self) {
        let arch = self.topology.arch;
        let layouts = [self.topology.attributes.layout(arch), Attributes::lifecycle_layout(arch)];
        let mut reader = Reader {
            sorter: &mut self.sorter,
            pool: &mut self.pool,
            statistics: &mut self.statistics,
            exits: &mut self.exits,
            followed: &mut self.followed,
            layouts,
            follows_children: self.inherit_children,
            queue: 0,
            source: Source { cpu: 0, which: Which::Samples, leases: false },
        };
        for cpu in &mut self.topology.cpus {
            cpu.read(&mut reader);
            reader.queue += 2;
        }
    }

    pub(super) fn push_own(&mut self, kind: EventKind) {
        let time_ns = clock::monotonic_ns();
        self.sorter.push(self.own_queue, time_ns, Event { time_ns, cpu: None, kind });
    }

    fn release(&mut self, batch: &mut Batch) {
        while let Some((_, event)) = self.sorter.pop() {
            batch.push(event);
        }
    }
}

/// Moves a sample's bytes out of ring memory, if the pool has room.
fn detach(event: &mut Event, pool: &mut Pool, statistics: &mut Statistics) {
    if let EventKind::Sample(sample) = &mut event.kind
        && sample.payload().is_leased()
        && let Some(copy) = pool.copy([sample.payload().bytes(), &[]])
    {
        statistics.saw_copy(copy.bytes().len());
        sample.replace_payload(copy);
    }
}
