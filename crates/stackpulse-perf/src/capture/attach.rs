//! Attaching: events for every thread there is, without missing one that is being created.

use super::attr::{Attributes, Granted, SampledEvent};
use super::cpu::CpuEvents;
use super::limits::refused;
use super::options::{AttachMode, CaptureOptions, EventChoice};
use super::{sys, tasks};
use crate::error::{OpenError, OpenStep};
use crate::event::AttachedProcess;
use crate::regs::Arch;
use std::collections::BTreeSet;
use std::io;

/// At most this much ring memory a CPU, and in all.
const MAX_RING_BYTES: u64 = 256 << 20;
const MAX_ALL_RINGS_BYTES: u64 = 1 << 30;

/// More samples than this are never held at a time: their rings would be larger than allowed.
const MAX_LEASES: usize = 1 << 16;

/// How long listing may go on finding new threads before it is good enough: inherited events catch the rest.
const MAX_PASSES: usize = 64;

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
    pub(crate) fn probe(
        pid: u32,
        mode: AttachMode,
        options: &CaptureOptions,
    ) -> Result<Self, OpenError> {
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
        let on_exec = mode == AttachMode::OnExec && options.start_enabled;
        let ring_bytes = wanted_pages * page;
        let first_cpu = cpus.first().copied().unwrap_or_default();
        let granted = probe_event(
            pid,
            first_cpu,
            arch,
            |granted| Attributes::new(options, granted, ring_bytes, on_exec),
            options,
        )?;
        Ok(Self {
            cpus: cpus.into_iter().map(CpuEvents::new).collect(),
            attributes: Attributes::new(options, granted, ring_bytes, on_exec),
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
    pub(crate) fn open_thread(&mut self, pid: u32, tid: u32) -> Result<bool, OpenError> {
        let before = self.len();
        for at in 0..self.cpus.len() {
            let opened = match self.open_on(at, pid, tid) {
                // The soft limit of open files may be raised, once: it stays raised.
                Err(error) if has_errno(&error, libc::EMFILE) => {
                    sys::raise_open_files()
                        .map_err(|error| refused(OpenStep::Prepare, error, pid))?;
                    self.open_on(at, pid, tid)
                }
                other => other,
            };
            match opened {
                Ok(()) => {}
                Err(error) => {
                    self.roll_back(before);
                    return if has_errno(&error, libc::ESRCH) { Ok(false) } else { Err(error) };
                }
            }
        }
        if before == 0 {
            self.map_rings(pid)?;
        }
        Ok(true)
    }

    fn open_on(&mut self, at: usize, pid: u32, tid: u32) -> Result<(), OpenError> {
        self.cpus[at].open(&self.attributes, self.arch, pid, tid)
    }

    /// Maps rings of one size for all CPUs: as large as asked for, or halved until the kernel grants them.
    fn map_rings(&mut self, pid: u32) -> Result<(), OpenError> {
        let mut data_pages = self.wanted_pages;
        loop {
            let leases = (data_pages * self.page / 512).clamp(1, MAX_LEASES);
            let refusal = self.cpus.iter_mut().find_map(|cpu| {
                cpu.map_rings(self.page, data_pages, leases).err().map(|error| (cpu.cpu, error))
            });
            let Some((cpu, error)) = refusal else { return Ok(()) };
            self.cpus.iter_mut().for_each(CpuEvents::unmap_rings);
            let may_help = matches!(error.raw_os_error(), Some(libc::EPERM | libc::ENOMEM));
            if !may_help || data_pages / 2 < self.least_pages {
                let step = OpenStep::MapRing { cpu, bytes: (data_pages * self.page) as u64 };
                return Err(refused(step, error, pid));
            }
            data_pages /= 2;
            self.rings_reduced = true;
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
                match attributes(granted).open_sampling(arch, pid, cpu) {
                    Ok(_) => return Ok(granted),
                    Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {
                        return Err(OpenError::NoSuchProcess { pid });
                    }
                    Err(error) => refusal = Some(error),
                }
            }
        }
    }
    let error = refusal.unwrap_or_else(|| io::Error::from_raw_os_error(libc::ENODEV));
    Err(refused(OpenStep::OpenEvent { tid: pid, cpu }, error, pid))
}

/// The processes whose threads are being opened, and what has been found of them.
pub(crate) struct Attaching<'a> {
    pub(crate) topology: &'a mut Topology,
    pub(crate) mode: AttachMode,
    /// Threads held still, if they are to be.
    held: Vec<sys::HeldThread>,
    opened: BTreeSet<u32>,
}

impl<'a> Attaching<'a> {
    pub(crate) fn new(topology: &'a mut Topology, mode: AttachMode) -> Self {
        Self { topology, mode, held: Vec::new(), opened: BTreeSet::new() }
    }

    /// Opens every thread of a process; `Ok(None)` if it has ended.
    pub(crate) fn process(
        &mut self,
        pid: u32,
        parent_pid: Option<u32>,
    ) -> Result<Option<AttachedProcess>, OpenError> {
        for _ in 0..MAX_PASSES {
            let threads = match tasks::threads(pid) {
                Ok(threads) => threads,
                Err(error) if tasks::is_gone(&error) => return Ok(None),
                Err(error) => return Err(refused(OpenStep::Inspect { pid }, error, pid)),
            };
            let new: Vec<u32> =
                threads.into_iter().filter(|tid| !self.opened.contains(tid)).collect();
            if new.is_empty() {
                break;
            }
            for tid in new {
                self.hold(tid);
                if self.topology.open_thread(pid, tid)? {
                    self.opened.insert(tid);
                }
            }
        }
        let maps = match self.mode {
            AttachMode::OnExec => Box::default(),
            // What cannot be read (a process that may not be dumped) is told by the records that follow.
            _ => tasks::maps(pid).unwrap_or_default(),
        };
        let threads = tasks::threads(pid).unwrap_or_default();
        let threads = threads.into_iter().map(|tid| (tid, tasks::comm(pid, tid))).collect();
        Ok(Some(AttachedProcess { pid, parent_pid, threads, maps }))
    }

    /// Makes a thread stand still, where that is wanted and allowed; else it is opened while it runs.
    fn hold(&mut self, tid: u32) {
        if self.mode == AttachMode::StopWhileAttaching
            && let Ok(Some(held)) = sys::HeldThread::seize(tid)
        {
            self.held.push(held);
        }
    }
}
