//! What is opened for a recording, and what the kernel grants of it.

use super::attr::{Attributes, Granted, SampledEvent, Start, Target};
use super::budget::{Budget, RingCounts};
use super::cpu::{CpuEvents, RingPlan, Which};
use super::limits::refused;
use super::options::{CaptureOptions, EventChoice};
use super::sys::{self, Poller};
use super::tasks;
use crate::SampleLayout;
use crate::error::{OpenError, OpenStep};
use crate::event::Task;
use crate::regs::Arch;
use std::collections::BTreeSet;
use std::fs::File;
use std::io;

/// The least bytes of a sample: a header and the five fields that are always asked for.
const LEAST_SAMPLE_BYTES: usize = 48;

/// What a recording follows.
#[derive(Debug)]
pub(crate) enum Scope {
    /// Processes: the one whose threads are probed, and those attached to later.
    Processes(u32),
    /// All that runs.
    Everything,
    /// What this control group and those below it run.
    Cgroup(File),
}

impl Scope {
    /// What is opened once a CPU; of processes it is the threads.
    fn of_cpus(&self) -> Option<Target<'_>> {
        match self {
            Self::Processes(_) => None,
            Self::Everything => Some(Target::Everything),
            Self::Cgroup(directory) => Some(Target::Cgroup(directory)),
        }
    }

    /// What an error calls it.
    pub(crate) fn fixed_name(&self) -> Option<&'static str> {
        match self {
            Self::Processes(_) => None,
            Self::Everything => Some("everything"),
            Self::Cgroup(_) => Some("a control group"),
        }
    }

    fn pid(&self) -> Option<u32> {
        if let Self::Processes(pid) = self { Some(*pid) } else { None }
    }
}

/// What came of looking which CPUs are online.
#[derive(Debug, Default)]
pub(crate) struct CpuChanges {
    /// Whether events were opened that do not count yet.
    pub(crate) any_opened: bool,
    /// CPUs whose events were closed, and the lost samples that no record told of.
    pub(crate) lost: Vec<(u32, u64)>,
}

/// What is opened for a recording: events, rings, and how.
#[derive(Debug)]
pub(crate) struct Topology {
    /// In a recording of processes those that are present, whether online or not: events of threads count there as soon as
    /// they come online. In one of CPUs all that are possible; events are open where they are online.
    pub(crate) cpus: Vec<CpuEvents>,
    pub(crate) attributes: Attributes,
    pub(crate) arch: Arch,
    pub(crate) budget: Budget,
    pub(crate) scope: Scope,
    online: BTreeSet<u32>,
}

impl Topology {
    /// Finds out what the kernel grants, by opening events on the first CPU.
    pub(crate) fn probe(scope: Scope, options: &CaptureOptions) -> Result<Self, OpenError> {
        let arch = Arch::native().ok_or(OpenError::UnsupportedArchitecture)?;
        let list = |which| {
            tasks::cpus(which).map_err(|error| refused(OpenStep::Prepare, error, scope.pid()))
        };
        let online: BTreeSet<u32> = list("online")?.into_iter().collect();
        let all = list(if scope.of_cpus().is_some() { "possible" } else { "present" })?;
        let wanted = |cpu: u32| options.cpus.as_ref().is_none_or(|cpus| cpus.contains(&cpu));
        let is_wanted = options.cpus.iter().flatten();
        if let Some(&cpu) = is_wanted.clone().find(|&cpu| !online.contains(cpu)) {
            return Err(OpenError::NoSuchCpu { cpu });
        }
        // A list of no CPUs asks for none that is there.
        let first = online.iter().copied().find(|&cpu| wanted(cpu));
        let first = first.ok_or(OpenError::NoSuchCpu { cpu: u32::MAX })?;
        let cpus: Vec<_> = all.into_iter().map(|cpu| CpuEvents::new(cpu, wanted(cpu))).collect();
        let rings =
            cpus.iter().filter(|cpu| scope.of_cpus().is_none() || online.contains(&cpu.cpu));
        let sampled = rings.clone().filter(|cpu| cpu.is_sampled()).count();
        let layout = SampleLayout::for_recording(arch, options.stack_size_bytes, true);
        let page = sys::page_size();
        let counts = RingCounts {
            lifecycle: rings.count(),
            samples: sampled,
            are_of_cpus: scope.of_cpus().is_some(),
        };
        let budget = Budget::plan(options, &layout, page, counts, online.len())?;
        let attributes = |granted| Attributes::new(options, granted, budget.sample_ring_bytes());
        let granted = probe_event(&scope, first, arch, attributes, options)?;
        let attributes = attributes(granted);
        Ok(Self { cpus, attributes, arch, budget, scope, online })
    }

    /// How many threads have events.
    pub(crate) fn len(&self) -> usize {
        self.cpus.iter().map(CpuEvents::len).max().unwrap_or_default()
    }

    /// How many CPUs are sampled.
    pub(crate) fn sampled_cpus(&self) -> usize {
        self.cpus.iter().filter(|cpu| cpu.is_sampled() && self.online.contains(&cpu.cpu)).count()
    }

    /// Closes the events of all threads after the first `len`.
    pub(crate) fn roll_back(&mut self, len: usize) {
        self.cpus.iter_mut().for_each(|cpu| cpu.truncate(len));
    }

    /// Opens a thread's events on every CPU. `Ok(false)` if the thread has ended.
    pub(crate) fn open_thread(&mut self, task: Task, start: Start) -> Result<bool, OpenError> {
        let before = self.len();
        let target = Target::Thread(task);
        for cpu in &mut self.cpus {
            if let Err(error) = open_on(cpu, &self.attributes, self.arch, target, start) {
                self.roll_back(before);
                return if has_errno(&error, libc::ESRCH) { Ok(false) } else { Err(error) };
            }
        }
        if before > 0 {
            return Ok(true);
        }
        match self.map_rings(target, start) {
            Err(error) if has_errno(&error, libc::ESRCH) => Ok(false),
            other => other.map(|()| true),
        }
    }

    /// Opens what is followed of each CPU that is online.
    pub(crate) fn open_cpus(&mut self) -> Result<(), OpenError> {
        let Some(target) = self.scope.of_cpus() else { return Ok(()) };
        for cpu in self.cpus.iter_mut().filter(|cpu| self.online.contains(&cpu.cpu)) {
            open_on(cpu, &self.attributes, self.arch, target, Start::ByRequest)?;
        }
        // Taken apart, so that rings can be mapped while the target is borrowed.
        let scope = std::mem::replace(&mut self.scope, Scope::Everything);
        let mapped =
            scope.of_cpus().map_or(Ok(()), |target| self.map_rings(target, Start::ByRequest));
        self.scope = scope;
        mapped
    }

    /// Opens the CPUs that have come online since the last call, where the kernel does not. One that cannot be opened is
    /// tried again with the next call.
    pub(crate) fn follow_cpus(&mut self, poller: &Poller) -> CpuChanges {
        let mut changes = CpuChanges::default();
        let Some(target) = self.scope.of_cpus() else { return changes };
        // Without the list, nothing is known to have changed.
        let Ok(online) = tasks::cpus("online") else { return changes };
        let mut online: BTreeSet<u32> = online.into_iter().collect();
        if online == self.online {
            return changes;
        }
        let plan = ring_plan(&self.budget, &self.attributes, self.arch);
        for cpu in &mut self.cpus {
            if !online.contains(&cpu.cpu) || self.online.contains(&cpu.cpu) {
                continue;
            }
            if self.attributes.granted.counts_lost {
                changes.lost.push((cpu.cpu, cpu.untold_lost().unwrap_or_default()));
            }
            cpu.close(poller);
            let opened = open_on(cpu, &self.attributes, self.arch, target, Start::ByRequest);
            if opened.is_ok() && cpu.map_rings(plan).is_ok() {
                changes.any_opened = true;
            } else {
                // It is tried again the next time.
                cpu.close(poller);
                online.remove(&cpu.cpu);
            }
        }
        self.online = online;
        changes
    }

    /// Waits on every ring from now on.
    pub(crate) fn watch(&mut self, poller: &Poller) -> io::Result<()> {
        for (at, cpu) in (0u64..).zip(&mut self.cpus) {
            cpu.watch(Which::Samples, poller, at * 2)?;
            cpu.watch(Which::Lifecycle, poller, at * 2 + 1)?;
        }
        Ok(())
    }

    /// Maps rings of one size for all CPUs: as large as planned, or halved until the kernel grants them.
    fn map_rings(&mut self, target: Target<'_>, start: Start) -> Result<(), OpenError> {
        loop {
            let plan = ring_plan(&self.budget, &self.attributes, self.arch);
            let refusal = self
                .cpus
                .iter_mut()
                .find_map(|cpu| cpu.map_rings(plan).err().map(|error| (cpu.cpu, error)));
            let Some((cpu, error)) = refusal else { return Ok(()) };
            let open: BTreeSet<u32> =
                self.cpus.iter().filter(|cpu| cpu.len() > 0).map(|cpu| cpu.cpu).collect();
            self.cpus.iter_mut().for_each(CpuEvents::unmap_rings);
            self.roll_back(0);
            let may_help = matches!(error.raw_os_error(), Some(libc::EPERM | libc::ENOMEM));
            if !may_help || !self.budget.halve() {
                let bytes = self.budget.sample_ring_bytes() as u64;
                return Err(refused(OpenStep::MapRing { cpu, bytes }, error, target.pid()));
            }
            // A ring wakes its reader where its first event says, so that is opened again, for the smaller ring.
            self.attributes = self.attributes.with_ring_bytes(self.budget.sample_ring_bytes());
            for cpu in self.cpus.iter_mut().filter(|cpu| open.contains(&cpu.cpu)) {
                if let Err(error) = open_on(cpu, &self.attributes, self.arch, target, start) {
                    self.roll_back(0);
                    return Err(error);
                }
            }
        }
    }
}

/// Opens a target's events on a CPU. The soft limit of open files is raised where it is in the way.
fn open_on(
    cpu: &mut CpuEvents,
    attributes: &Attributes,
    arch: Arch,
    target: Target<'_>,
    start: Start,
) -> Result<(), OpenError> {
    match cpu.open(attributes, arch, target, start) {
        // It stays raised, so this happens once.
        Err(error) if has_errno(&error, libc::EMFILE) && sys::raise_open_files() => {
            cpu.open(attributes, arch, target, start)
        }
        other => other,
    }
}

fn ring_plan(budget: &Budget, attributes: &Attributes, arch: Arch) -> RingPlan {
    let bytes = budget.sample_ring_bytes();
    RingPlan {
        page: budget.page,
        data_pages: budget.sample_pages,
        lifecycle_pages: budget.lifecycle_pages,
        slots: bytes / LEAST_SAMPLE_BYTES + 1,
        leases: attributes.outlasts_consumers(bytes, arch),
    }
}

pub(crate) fn has_errno(error: &OpenError, number: i32) -> bool {
    matches!(error, OpenError::Refused { source, .. } if source.raw_os_error() == Some(number))
}

/// Tries events and privileges from the best on, and keeps what works for the whole recording.
fn probe_event(
    scope: &Scope,
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
                match probe_target(&attributes(granted), arch, scope, cpu) {
                    Ok(true) => return Ok(granted),
                    Ok(false) => {
                        let pid = scope.pid().unwrap_or_default();
                        return Err(OpenError::NoSuchProcess { pid });
                    }
                    Err(error) => refusal = Some(error),
                }
            }
        }
    }
    let error = refusal.unwrap_or_else(|| io::Error::from_raw_os_error(libc::ENODEV));
    let target = scope.of_cpus().or(scope.pid().map(|pid| Target::Thread(Task { pid, tid: pid })));
    let step = target.map_or(OpenStep::Prepare, |target| target.open_step(cpu));
    Err(refused(step, error, scope.pid()))
}

/// Tries an event of what is followed; of a process it is one of the leader, or if that has ended of another thread.
/// `Ok(false)` if all have ended.
fn probe_target(attributes: &Attributes, arch: Arch, scope: &Scope, cpu: u32) -> io::Result<bool> {
    if let Some(target) = scope.of_cpus() {
        return attributes.open_sampling(arch, (target, cpu), Start::ByRequest).map(|_| true);
    }
    let pid = scope.pid().unwrap_or_default();
    let others = || tasks::threads(pid).unwrap_or_default().into_iter().filter(|&tid| tid != pid);
    for tid in std::iter::once(pid).chain(std::iter::once_with(others).flatten()) {
        let target = Target::Thread(Task { pid, tid });
        match attributes.open_sampling(arch, (target, cpu), Start::ByRequest) {
            Ok(_) => return Ok(true),
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(false)
}
