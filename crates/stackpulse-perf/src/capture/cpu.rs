//! One CPU's two rings and the events that write into them.

use super::attr::{Attributes, Start};
use super::limits::refused;
use super::reader::{Reader, Source};
use super::ring::Ring;
use super::sys::{self, Poller};
use crate::error::{OpenError, OpenStep};
use crate::event::Task;
use crate::regs::Arch;
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
    watched: [Watch; 2],
    /// Lost samples that records of the sample ring told of.
    told_lost: u64,
}

/// Which event of a ring is waited on.
#[derive(Clone, Copy, Debug, Default)]
struct Watch {
    event: usize,
    is_registered: bool,
}

#[derive(Debug)]
struct Rings {
    samples: Ring,
    lifecycle: Ring,
    /// Whether samples may stay in the ring while they are used.
    leases: bool,
}

/// What the rings of a CPU are to be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RingPlan {
    pub(crate) page: usize,
    pub(crate) data_pages: usize,
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
        let threads = self.sampling.len();
        f.debug_struct("CpuEvents")
            .field("cpu", &self.cpu)
            .field("threads", &threads)
            .finish_non_exhaustive()
    }
}

impl CpuEvents {
    pub(crate) fn new(cpu: u32) -> Self {
        Self {
            cpu,
            sampling: Vec::new(),
            lifecycle: Vec::new(),
            rings: None,
            watched: [Watch::default(); 2],
            told_lost: 0,
        }
    }

    /// Opens a thread's two events on this CPU.
    pub(crate) fn open(
        &mut self,
        attributes: &Attributes,
        arch: Arch,
        Task { pid, tid }: Task,
        start: Start,
    ) -> Result<(), OpenError> {
        let step = || OpenStep::OpenEvent { tid, cpu: self.cpu };
        let open =
            |result: io::Result<Counter>| result.map_err(|error| refused(step(), error, pid));
        let lifecycle = open(attributes.open_lifecycle(tid, self.cpu))?;
        let sampling = open(attributes.open_sampling(arch, (tid, self.cpu), start))?;
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
    pub(crate) fn map_rings(&mut self, plan: RingPlan) -> io::Result<()> {
        let RingPlan { page, data_pages, slots, leases } = plan;
        let (Some(sampling), Some(lifecycle)) = (self.sampling.first(), self.lifecycle.first())
        else {
            return Err(io::Error::other("no event to map a ring onto"));
        };
        let lifecycle_pages = (LIFECYCLE_RING_BYTES / page).max(1).min(data_pages);
        self.rings = Some(Rings {
            samples: Ring::map(sampling.file(), page, data_pages, slots)?,
            lifecycle: Ring::map(lifecycle.file(), page, lifecycle_pages, 0)?,
            leases,
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
        Ok(lost.saturating_sub(self.told_lost))
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

    /// Whether leases keep more than half of the sample ring.
    pub(crate) fn is_crowded(&self) -> bool {
        self.rings.as_ref().is_some_and(|rings| rings.samples.is_crowded())
    }

    /// Reads what both rings hold into the sorter.
    pub(crate) fn read(&mut self, reader: &mut Reader<'_>) {
        let Some(rings) = &mut self.rings else { return };
        reader.source = Source { cpu: self.cpu, which: Which::Lifecycle, leases: false };
        reader.read_ring(&mut rings.lifecycle);
        reader.source = Source { cpu: self.cpu, which: Which::Samples, leases: rings.leases };
        let lost = reader.read_ring(&mut rings.samples);
        self.told_lost = self.told_lost.saturating_add(lost);
    }
}
