//! What is opened for a recording, and what the kernel grants of it.

use super::attr::{Attributes, Granted, SampledEvent, Start};
use super::cpu::{CpuEvents, RingPlan};
use super::limits::refused;
use super::options::{CaptureOptions, EventChoice};
use super::{sys, tasks};
use crate::error::{OpenError, OpenStep};
use crate::event::Task;
use crate::regs::Arch;
use std::io;

/// At most this much ring memory a CPU, and in all.
const MAX_RING_BYTES: u64 = 256 << 20;
const MAX_ALL_RINGS_BYTES: u64 = 1 << 30;

/// The least bytes of a sample: a header and the five fields that are always asked for.
const LEAST_SAMPLE_BYTES: usize = 48;

/// What is opened for a recording: events, rings, and how.
#[derive(Debug)]
pub(crate) struct Topology {
    pub(crate) cpus: Vec<CpuEvents>,
    pub(crate) attributes: Attributes,
    pub(crate) arch: Arch,
    /// Whether ring memory is less than asked for.
    pub(crate) rings_reduced: bool,
    page: usize,
    wanted_pages: usize,
    least_pages: usize,
}

impl Topology {
    /// Finds out what the kernel grants, by opening events of `pid` on the first CPU.
    pub(crate) fn probe(pid: u32, options: &CaptureOptions) -> Result<Self, OpenError> {
        let arch = Arch::native().ok_or(OpenError::UnsupportedArchitecture)?;
        let cpus = tasks::online_cpus().map_err(|error| refused(OpenStep::Prepare, error, pid))?;
        let page = sys::page_size();
        let largest = crate::SampleLayout::for_recording(arch, options.stack_size_bytes, true)
            .largest_sample_bytes(options.stack_size_bytes);
        let wanted = (options.stack_size_bytes as usize).max(page) as u64
            * u64::from(options.ring_buffer_stacks.max(1));
        let wanted_pages = pages(wanted.max(largest as u64), page);
        let per_cpu = wanted_pages as u64 * page as u64;
        for (wanted_bytes, limit_bytes) in
            [(per_cpu, MAX_RING_BYTES), (per_cpu * cpus.len() as u64, MAX_ALL_RINGS_BYTES)]
        {
            if wanted_bytes > limit_bytes {
                return Err(OpenError::RingTooLarge { wanted_bytes, limit_bytes });
            }
        }
        let ring_bytes = wanted_pages * page;
        let first_cpu = cpus.first().copied().unwrap_or_default();
        let granted = probe_event(
            pid,
            first_cpu,
            arch,
            |granted| Attributes::new(options, granted, ring_bytes),
            options,
        )?;
        Ok(Self {
            cpus: cpus.into_iter().map(CpuEvents::new).collect(),
            attributes: Attributes::new(options, granted, ring_bytes),
            arch,
            rings_reduced: false,
            page,
            wanted_pages,
            least_pages: pages(largest as u64, page),
        })
    }

    /// How many threads have events.
    pub(crate) fn len(&self) -> usize {
        self.cpus.first().map_or(0, CpuEvents::len)
    }

    /// Closes the events of all threads after the first `len`.
    pub(crate) fn roll_back(&mut self, len: usize) {
        self.cpus.iter_mut().for_each(|cpu| cpu.truncate(len));
    }

    /// Opens a thread's events on every CPU. `Ok(false)` if the thread has ended.
    pub(crate) fn open_thread(&mut self, task: Task, start: Start) -> Result<bool, OpenError> {
        let before = self.len();
        for at in 0..self.cpus.len() {
            let opened = match self.open_on(at, task, start) {
                // The soft limit of open files may be raised, once: it stays raised.
                Err(error) if has_errno(&error, libc::EMFILE) => {
                    sys::raise_open_files()
                        .map_err(|error| refused(OpenStep::Prepare, error, task.pid))?;
                    self.open_on(at, task, start)
                }
                other => other,
            };
            if let Err(error) = opened {
                self.roll_back(before);
                return if has_errno(&error, libc::ESRCH) { Ok(false) } else { Err(error) };
            }
        }
        if before == 0 {
            return self.map_rings(task, start);
        }
        Ok(true)
    }

    fn open_on(&mut self, at: usize, task: Task, start: Start) -> Result<(), OpenError> {
        self.cpus[at].open(&self.attributes, self.arch, task, start)
    }

    /// Maps rings of one size for all CPUs: as large as asked for, or halved until the kernel grants them. `Ok(false)` if
    /// the thread has ended meanwhile.
    fn map_rings(&mut self, task: Task, start: Start) -> Result<bool, OpenError> {
        let mut data_pages = self.wanted_pages;
        loop {
            let plan = self.ring_plan(data_pages);
            let refusal = self
                .cpus
                .iter_mut()
                .find_map(|cpu| cpu.map_rings(plan).err().map(|error| (cpu.cpu, error)));
            let Some((cpu, error)) = refusal else { return Ok(true) };
            self.cpus.iter_mut().for_each(CpuEvents::unmap_rings);
            self.roll_back(0);
            let may_help = matches!(error.raw_os_error(), Some(libc::EPERM | libc::ENOMEM));
            if !may_help || data_pages / 2 < self.least_pages {
                let step = OpenStep::MapRing { cpu, bytes: (data_pages * self.page) as u64 };
                return Err(refused(step, error, task.pid));
            }
            data_pages /= 2;
            self.rings_reduced = true;
            // A ring wakes its reader where its first event says, so that is opened again, for the smaller ring.
            self.attributes = self.attributes.with_ring_bytes(data_pages * self.page);
            for at in 0..self.cpus.len() {
                if let Err(error) = self.open_on(at, task, start) {
                    self.roll_back(0);
                    return if has_errno(&error, libc::ESRCH) { Ok(false) } else { Err(error) };
                }
            }
        }
    }

    fn ring_plan(&self, data_pages: usize) -> RingPlan {
        let bytes = data_pages * self.page;
        RingPlan {
            page: self.page,
            data_pages,
            slots: bytes / LEAST_SAMPLE_BYTES + 1,
            leases: self.attributes.outlasts_consumers(bytes, self.arch),
        }
    }
}

/// Power-of-two pages for that many bytes.
fn pages(bytes: u64, page: usize) -> usize {
    usize::try_from(bytes.div_ceil(page as u64)).unwrap_or(usize::MAX / 2).next_power_of_two()
}

pub(crate) fn has_errno(error: &OpenError, number: i32) -> bool {
    matches!(error, OpenError::Refused { source, .. } if source.raw_os_error() == Some(number))
}

/// Tries events and privileges from the best on, and keeps what works for the whole recording.
fn probe_event(
    pid: u32,
    cpu: u32,
    arch: Arch,
    attributes: impl Fn(Granted) -> Attributes,
    options: &CaptureOptions,
) -> Result<Granted, OpenError> {
    let events: &[SampledEvent] = match options.event {
        EventChoice::Automatic => &[SampledEvent::Cycles, SampledEvent::CpuClock],
        EventChoice::Cycles => &[SampledEvent::Cycles],
        EventChoice::CpuClock => &[SampledEvent::CpuClock],
    };
    let kernel: &[bool] = if options.include_kernel { &[true, false] } else { &[false] };
    let mut refusal = None;
    for &event in events {
        for &kernel in kernel {
            for counts_lost in [true, false] {
                let granted = Granted { event, kernel, counts_lost };
                match probe_threads(&attributes(granted), arch, pid, cpu) {
                    Ok(true) => return Ok(granted),
                    Ok(false) => return Err(OpenError::NoSuchProcess { pid }),
                    Err(error) => refusal = Some(error),
                }
            }
        }
    }
    let error = refusal.unwrap_or_else(|| io::Error::from_raw_os_error(libc::ENODEV));
    Err(refused(OpenStep::OpenEvent { tid: pid, cpu }, error, pid))
}

/// Tries an event of a thread of `pid`: the leader, or if that has ended another. `Ok(false)` if all have ended.
fn probe_threads(attributes: &Attributes, arch: Arch, pid: u32, cpu: u32) -> io::Result<bool> {
    let others = || tasks::threads(pid).unwrap_or_default().into_iter().filter(|&tid| tid != pid);
    for tid in std::iter::once(pid).chain(std::iter::once_with(others).flatten()) {
        match attributes.open_sampling(arch, (tid, cpu), Start::ByRequest) {
            Ok(_) => return Ok(true),
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(false)
}
