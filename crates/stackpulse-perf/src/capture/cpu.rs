//! One CPU's two rings and the events that write into them.

use super::attr::{Attributes, Start, Target};
use super::limits::refused;
use super::reader::{Reader, Source};
use super::ring::Ring;
use super::sys::{self, Poller};
use crate::error::{OpenError, OpenStep};
use crate::event::Task;
use crate::regs::Arch;
use perf_event_open::count::Counter;
use std::io::{self, Read};

/// The events of one CPU, and the rings they share.
pub(crate) struct CpuEvents {
    pub(crate) cpu: u32,
    /// Whether it is of the CPUs to sample; lifecycle events are opened on all.
    is_sampled: bool,
    sampling: Vec<Counter>,
    lifecycle: Vec<Counter>,
    rings: Option<Rings>,
    watched: [Watch; 2],
    /// Lost samples that records of the sample ring told of.
    told_lost: u64,
    /// What the kernel counted as lost by events that are closed.
    retired_lost: u64,
}

/// Which event of a ring is waited on.
#[derive(Clone, Copy, Debug, Default)]
struct Watch {
    event: usize,
    is_registered: bool,
}

#[derive(Debug)]
struct Rings {
    /// There is none where nothing is sampled.
    samples: Option<Ring>,
    lifecycle: Ring,
    /// Whether samples may stay in the ring while they are used.
    leases: bool,
}

/// What the rings of a CPU are to be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RingPlan {
    pub(crate) page: usize,
    pub(crate) data_pages: usize,
    pub(crate) lifecycle_pages: usize,
    /// How many samples the sample ring can hold at most.
    pub(crate) slots: usize,
    /// Whether samples may stay in it while they are used.
    pub(crate) leases: bool,
}

/// Which of a CPU's rings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Which {
    Samples,
    Lifecycle,
}

impl std::fmt::Debug for CpuEvents {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let threads = self.lifecycle.len();
        f.debug_struct("CpuEvents")
            .field("cpu", &self.cpu)
            .field("threads", &threads)
            .finish_non_exhaustive()
    }
}

impl CpuEvents {
    pub(crate) fn new(cpu: u32, is_sampled: bool) -> Self {
        Self {
            cpu,
            is_sampled,
            sampling: Vec::new(),
            lifecycle: Vec::new(),
            rings: None,
            watched: [Watch::default(); 2],
            told_lost: 0,
            retired_lost: 0,
        }
    }

    /// Opens a target's two events on this CPU.
    pub(crate) fn open(
        &mut self,
        attributes: &Attributes,
        arch: Arch,
        target: Target<'_>,
        start: Start,
    ) -> Result<(), OpenError> {
        let open = |result: io::Result<Counter>| {
            result.map_err(|error| refused(target.open_step(self.cpu), error, target.pid()))
        };
        let lifecycle = open(attributes.open_lifecycle(target, self.cpu))?;
        let sampling = match self.is_sampled {
            true => Some(open(attributes.open_sampling(arch, (target, self.cpu), start))?),
            false => None,
        };
        if self.rings.is_some() {
            let redirect = |event: &Counter, owner: Option<&Counter>| {
                let Some(owner) = owner else { return Ok(()) };
                sys::redirect(event.file(), owner.file())
                    .map_err(|error| refused(self.redirect_step(target), error, target.pid()))
            };
            redirect(&lifecycle, self.lifecycle.first())?;
            if let Some(sampling) = &sampling {
                redirect(sampling, self.sampling.first())?;
            }
        }
        self.sampling.extend(sampling);
        self.lifecycle.push(lifecycle);
        Ok(())
    }

    fn redirect_step(&self, target: Target<'_>) -> OpenStep {
        match target {
            Target::Thread(Task { pid, tid }) => OpenStep::Redirect { pid, tid, cpu: self.cpu },
            other => other.open_step(self.cpu),
        }
    }

    /// Maps the rings onto the first events, if there are any.
    pub(crate) fn map_rings(&mut self, plan: RingPlan) -> io::Result<()> {
        let Some(lifecycle) = self.lifecycle.first() else { return Ok(()) };
        let RingPlan { page, data_pages, lifecycle_pages, slots, leases } = plan;
        let samples = self.sampling.first();
        let samples = samples.map(|event| Ring::map(event.file(), page, data_pages, slots));
        self.rings = Some(Rings {
            samples: samples.transpose()?,
            lifecycle: Ring::map(lifecycle.file(), page, lifecycle_pages, 0)?,
            leases,
        });
        Ok(())
    }

    /// Closes the events and unmaps the rings, to begin anew: the CPU went offline and came back, and what was opened
    /// before is dead. Leases keep their memory.
    pub(crate) fn close(&mut self, poller: &Poller) {
        for (which, events) in [&self.sampling, &self.lifecycle].into_iter().enumerate() {
            let watch = &mut self.watched[which];
            if let Some(event) = events.get(watch.event)
                && std::mem::take(&mut watch.is_registered)
            {
                // Closing the descriptor takes it out of the set as well.
                let _ = poller.remove(event.file());
            }
        }
        *self = Self::new(self.cpu, self.is_sampled);
    }

    pub(crate) fn unmap_rings(&mut self) {
        self.rings = None;
    }

    /// How many threads have events here.
    pub(crate) fn len(&self) -> usize {
        self.lifecycle.len()
    }

    /// Whether samples are taken here.
    pub(crate) fn is_sampled(&self) -> bool {
        self.is_sampled
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

    /// Waits on the ring's event from now on, if none is waited on and there is one.
    pub(crate) fn watch(&mut self, which: Which, poller: &Poller, token: u64) -> io::Result<()> {
        let watch = &mut self.watched[which as usize];
        let events = [&self.sampling, &self.lifecycle][which as usize];
        if let Some(event) = events.get(watch.event)
            && !watch.is_registered
        {
            poller.add(event.file(), token)?;
            watch.is_registered = true;
        }
        Ok(())
    }

    /// Goes on to the ring's next event: the task of the one before has ended, and its event tells nothing more.
    pub(crate) fn watch_next(
        &mut self,
        which: Which,
        poller: &Poller,
        token: u64,
    ) -> io::Result<()> {
        let watch = &mut self.watched[which as usize];
        let events = [&self.sampling, &self.lifecycle][which as usize];
        if let Some(event) = events.get(watch.event)
            && watch.is_registered
        {
            poller.remove(event.file())?;
            *watch = Watch { event: watch.event + 1, is_registered: false };
        }
        self.watch(which, poller, token)
    }

    /// Samples that the kernel says it dropped on this CPU, and that no record told of.
    pub(crate) fn untold_lost(&self) -> io::Result<u64> {
        let mut lost = self.retired_lost;
        for event in &self.sampling {
            lost = lost.saturating_add(count_lost(event)?);
        }
        Ok(lost.saturating_sub(self.told_lost))
    }

    /// For each thread whether its events will tell nothing more, and may be closed. The first ones keep the rings, and
    /// one of each ring is waited on.
    pub(crate) fn dead(&self) -> io::Result<Vec<bool>> {
        let mut dead = sys::have_hung_up(self.lifecycle.iter().map(Counter::file))?;
        let sampling = sys::have_hung_up(self.sampling.iter().map(Counter::file))?;
        dead.iter_mut().zip(sampling).for_each(|(dead, sampling)| *dead &= sampling);
        for kept in self.watched.iter().map(|watch| watch.event).chain([0]) {
            if let Some(dead) = dead.get_mut(kept) {
                *dead = false;
            }
        }
        Ok(dead)
    }

    /// Closes the events of these threads; where lost samples are counted, theirs are kept.
    pub(crate) fn retire(&mut self, dead: &[bool], counts_lost: bool) -> io::Result<()> {
        let is_dead = |at: usize| dead.get(at).copied().unwrap_or_default();
        if counts_lost {
            for (_, event) in self.sampling.iter().enumerate().filter(|&(at, _)| is_dead(at)) {
                self.retired_lost = self.retired_lost.saturating_add(count_lost(event)?);
            }
        }
        for events in [&mut self.sampling, &mut self.lifecycle] {
            let mut at = 0..;
            events.retain(|_| !at.next().is_some_and(is_dead));
        }
        for watch in &mut self.watched {
            watch.event -= (0..watch.event).filter(|&at| is_dead(at)).count();
        }
        Ok(())
    }

    /// Whether a ring has something unread.
    pub(crate) fn has_unread(&self) -> bool {
        self.rings.as_ref().is_some_and(|rings| {
            rings.lifecycle.has_unread() || rings.samples.as_ref().is_some_and(Ring::has_unread)
        })
    }

    /// Gives the kernel back what is free.
    pub(crate) fn reclaim(&mut self) {
        if let Some(samples) = self.rings.as_mut().and_then(|rings| rings.samples.as_mut()) {
            samples.reclaim();
        }
    }

    /// Whether leases keep more than half of the sample ring.
    pub(crate) fn is_crowded(&self) -> bool {
        let samples = self.rings.as_ref().and_then(|rings| rings.samples.as_ref());
        samples.is_some_and(Ring::is_crowded)
    }

    /// Reads what both rings hold into the sorter.
    pub(crate) fn read(&mut self, reader: &mut Reader<'_>) {
        let Some(rings) = &mut self.rings else { return };
        reader.source = Source { cpu: self.cpu, which: Which::Lifecycle, leases: false };
        reader.read_ring(&mut rings.lifecycle);
        reader.source = Source { cpu: self.cpu, which: Which::Samples, leases: rings.leases };
        let lost = rings.samples.as_mut().map_or(0, |ring| reader.read_ring(ring));
        self.told_lost = self.told_lost.saturating_add(lost);
    }
}

/// How many samples of an event the kernel has dropped.
fn count_lost(event: &Counter) -> io::Result<u64> {
    // With PERF_FORMAT_LOST alone a read gives the value, then the count of lost samples.
    let mut bytes = [0; 16];
    let mut file = event.file();
    if file.read(&mut bytes)? < bytes.len() {
        return Ok(0);
    }
    let [.., a, b, c, d, e, f, g, h] = bytes;
    Ok(u64::from_ne_bytes([a, b, c, d, e, f, g, h]))
}
