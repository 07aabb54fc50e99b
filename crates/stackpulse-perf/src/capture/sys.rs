//! Every other system call, as a safe function.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// `_IO('$', 0)` and so on (`include/uapi/linux/perf_event.h`).
const PERF_EVENT_IOC_ENABLE: u64 = 0x2400;
const PERF_EVENT_IOC_DISABLE: u64 = 0x2401;
const PERF_EVENT_IOC_SET_OUTPUT: u64 = 0x2405;

fn checked(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

fn event_ioctl(event: &File, request: u64, argument: libc::c_int) -> io::Result<()> {
    // SAFETY: these requests take an integer and touch no memory of ours; the descriptor is borrowed.
    checked(unsafe { libc::ioctl(event.as_raw_fd(), request as _, argument) }).map(|_| ())
}

/// Lets an event, and those inherited from it, count.
pub(crate) fn enable(event: &File) -> io::Result<()> {
    event_ioctl(event, PERF_EVENT_IOC_ENABLE, 0)
}

/// Stops an event, and those inherited from it.
pub(crate) fn disable(event: &File) -> io::Result<()> {
    event_ioctl(event, PERF_EVENT_IOC_DISABLE, 0)
}

/// Sends an event's records to the ring of another event on the same CPU.
pub(crate) fn redirect(event: &File, into: &File) -> io::Result<()> {
    event_ioctl(event, PERF_EVENT_IOC_SET_OUTPUT, into.as_raw_fd())
}

/// Opens a descriptor that becomes readable when the process's last thread has ended.
pub(crate) fn pidfd_open(pid: u32) -> io::Result<OwnedFd> {
    let pid = libc::pid_t::try_from(pid).map_err(|_| io::Error::from_raw_os_error(libc::ESRCH))?;
    // SAFETY: the call takes integers and returns a new descriptor or an error.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    let fd = RawFd::try_from(fd).unwrap_or(-1);
    checked(fd)?;
    // SAFETY: the descriptor is new: nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Whether a descriptor is readable now.
pub(crate) fn is_readable(fd: &OwnedFd) -> io::Result<bool> {
    let mut poll = libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: one entry, ours, which the call fills; it does not wait.
    checked(unsafe { libc::poll(&raw mut poll, 1, 0) }).map(|ready| ready > 0)
}

/// Whether nothing will ever come from each of these events again: their tasks, and all that inherited them, have ended.
///
/// To ask an event takes the wake-up of its ring, so the ring must be read afterwards.
pub(crate) fn have_hung_up<'a>(events: impl Iterator<Item = &'a File>) -> io::Result<Vec<bool>> {
    let poll = |event: &File| libc::pollfd { fd: event.as_raw_fd(), events: 0, revents: 0 };
    let mut polls: Vec<libc::pollfd> = events.map(poll).collect();
    let count = libc::nfds_t::try_from(polls.len()).unwrap_or_default();
    // SAFETY: `count` entries, ours, which the call fills; it does not wait.
    checked(unsafe { libc::poll(polls.as_mut_ptr(), count, 0) })?;
    Ok(polls.iter().map(|poll| poll.revents & libc::POLLHUP != 0).collect())
}

/// What `epoll_wait` told of one descriptor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ready {
    /// The number given with [`Poller::add`].
    pub(crate) token: u64,
    /// Nothing will ever come from it again.
    pub(crate) hung_up: bool,
}

/// An epoll set.
#[derive(Debug)]
pub(crate) struct Poller(OwnedFd);

impl Poller {
    pub(crate) fn new() -> io::Result<Self> {
        // SAFETY: takes a flag, returns a new descriptor or an error.
        let fd = checked(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
        // SAFETY: the descriptor is new: nobody else owns it.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    pub(crate) fn add(&self, fd: &impl AsRawFd, token: u64) -> io::Result<()> {
        let mut event = libc::epoll_event { events: libc::EPOLLIN.cast_unsigned(), u64: token };
        self.control(libc::EPOLL_CTL_ADD, fd.as_raw_fd(), &mut event)
    }

    pub(crate) fn remove(&self, fd: &impl AsRawFd) -> io::Result<()> {
        let mut event = libc::epoll_event { events: 0, u64: 0 };
        self.control(libc::EPOLL_CTL_DEL, fd.as_raw_fd(), &mut event)
    }

    fn control(&self, operation: i32, fd: RawFd, event: &mut libc::epoll_event) -> io::Result<()> {
        // SAFETY: both descriptors are borrowed from owners that live; `event` is ours for the call.
        checked(unsafe { libc::epoll_ctl(self.0.as_raw_fd(), operation, fd, event) }).map(|_| ())
    }

    /// Waits at most that long (milliseconds; -1: for ever). A signal ends the wait early, without error.
    pub(crate) fn wait(&self, timeout_ms: i32, ready: &mut Vec<Ready>) -> io::Result<()> {
        const ROOM: u8 = 64;
        ready.clear();
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; ROOM as usize];
        // SAFETY: `events` has room for as many entries as the call is told.
        let count = unsafe {
            libc::epoll_wait(
                self.0.as_raw_fd(),
                events.as_mut_ptr(),
                libc::c_int::from(ROOM),
                timeout_ms,
            )
        };
        let count = match checked(count) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => 0,
            other => other?,
        };
        let told = events.iter().take(usize::try_from(count).unwrap_or_default());
        ready.extend(told.map(|event| Ready {
            token: event.u64,
            hung_up: event.events & (libc::EPOLLHUP | libc::EPOLLERR).cast_unsigned() != 0,
        }));
        Ok(())
    }
}

/// Makes a descriptor that [`File`] writes of eight bytes make readable.
pub(crate) fn eventfd() -> io::Result<File> {
    // SAFETY: takes integers, returns a new descriptor or an error.
    let fd = checked(unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) })?;
    // SAFETY: the descriptor is new: nobody else owns it.
    Ok(unsafe { File::from_raw_fd(fd) })
}

/// Sends a signal to a process.
pub(crate) fn kill(pid: u32, signal: i32) -> io::Result<()> {
    let pid = libc::pid_t::try_from(pid).map_err(|_| io::Error::from_raw_os_error(libc::ESRCH))?;
    // SAFETY: takes integers.
    checked(unsafe { libc::kill(pid, signal) }).map(|_| ())
}

/// `include/uapi/linux/sched.h`
const SCHED_FLAG_RESET_ON_FORK: u64 = 1;

/// `struct sched_attr` in its first version (`include/uapi/linux/sched/types.h`).
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct SchedAttr {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime_ns: u64,
    deadline_ns: u64,
    period_ns: u64,
}

/// What the calling thread, if it is an ordinary one, is to be: the first of these that is permitted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Promptness {
    /// A real-time thread (`SCHED_RR`) of this priority; threads it makes are ordinary ones.
    pub(crate) priority: u32,
    /// An ordinary thread of at most this nice value.
    pub(crate) nice: i32,
    /// An ordinary thread with this time slice, which the one before has too.
    pub(crate) slice_ns: u64,
}

/// Makes the calling thread run soon after it wakes.
pub(crate) fn run_promptly(wanted: Promptness) -> io::Result<()> {
    /// `SCHED_ATTR_SIZE_VER0`, and that of the structure here.
    const SIZE: u32 = 48;
    const { assert!(size_of::<SchedAttr>() == 48, "laid out as the kernel's") };
    let policy = |policy: libc::c_int| policy.cast_unsigned();
    let mut attr = SchedAttr::default();
    // SAFETY: `attr` is ours, and the call writes at most `SIZE` bytes, which it has; 0 is the calling thread.
    let read = unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attr, SIZE, 0) };
    checked(libc::c_int::try_from(read).unwrap_or(-1))?;
    if attr.policy != policy(libc::SCHED_OTHER) {
        return Ok(());
    }
    let set = |attr: SchedAttr| {
        // SAFETY: `attr` is ours, its size field says its length, and the call only reads it.
        let set = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attr, 0) };
        checked(libc::c_int::try_from(set).unwrap_or(-1)).map(|_| ())
    };
    attr.size = SIZE;
    let real_time = SchedAttr {
        policy: policy(libc::SCHED_RR),
        priority: wanted.priority,
        flags: SCHED_FLAG_RESET_ON_FORK,
        nice: 0,
        runtime_ns: 0,
        ..attr
    };
    let short = SchedAttr { runtime_ns: wanted.slice_ns, ..attr };
    set(real_time)
        .or_else(|_| set(SchedAttr { nice: attr.nice.min(wanted.nice), ..short }))
        .or_else(|_| set(short))
}

/// The size of a memory page in bytes.
pub(crate) fn page_size() -> usize {
    // SAFETY: takes an integer and reads a constant of the system.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
}

fn open_files() -> Option<libc::rlimit> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is ours, and the call fills it.
    let known = checked(unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) });
    known.is_ok().then_some(limit)
}

/// The soft limit of open files: asked for without opening one.
pub(crate) fn open_files_limit() -> Option<u64> {
    open_files().map(|limit| limit.rlim_cur)
}

/// Raises the soft limit of open files to the hard one; whether it is higher now.
pub(crate) fn raise_open_files() -> bool {
    let Some(mut limit) = open_files().filter(|limit| limit.rlim_cur < limit.rlim_max) else {
        return false;
    };
    limit.rlim_cur = limit.rlim_max;
    // SAFETY: `limit` is ours, and the call reads it.
    checked(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) }).is_ok()
}

/// How often a thread is asked whether it stands still, and how long that waits each time: a thread that asks ahead of others
/// must leave them the CPU, or they never come to where they stop.
const STILL_ATTEMPTS: u32 = 500;
const STILL_INTERVAL: std::time::Duration = std::time::Duration::from_micros(20);

/// A thread that is held by ptrace; it is let go when this is dropped, and when the thread that holds it ends.
#[derive(Debug)]
pub(crate) struct HeldThread {
    tid: libc::pid_t,
    /// A signal that was about to be delivered: given back on release.
    signal: libc::c_int,
}

/// What came of seizing threads.
#[derive(Debug)]
pub(crate) struct Seized {
    /// Those that stand still.
    pub(crate) held: Vec<HeldThread>,
    /// Whether ptrace was denied for any.
    pub(crate) is_denied: bool,
}

impl HeldThread {
    /// Seizes threads and waits until they stand still: all are told to before the first is waited for. Left out are those
    /// that have ended, or do not stop in time: in a system call that nothing interrupts, such as vfork(2)'s. These go on when
    /// the caller's thread ends.
    ///
    /// Call it on a thread that ends soon: the kernel lets go of what an ended thread held, whatever state it is in.
    pub(crate) fn seize_all(tids: &[u32]) -> Seized {
        let mut is_denied = false;
        let mut interrupted = Vec::new();
        for &tid in tids {
            let Ok(tid) = libc::pid_t::try_from(tid) else { continue };
            let seized = ptrace(libc::PTRACE_SEIZE, tid, 0);
            // Whatever else is answered than that there is no such thread: tracing is not to be had.
            is_denied |=
                seized.as_ref().is_err_and(|error| error.raw_os_error() != Some(libc::ESRCH));
            if seized.and_then(|()| ptrace(libc::PTRACE_INTERRUPT, tid, 0)).is_ok() {
                interrupted.push(tid);
            }
        }
        let still = |tid| Self::wait_until_still(tid).ok().flatten();
        Seized { held: interrupted.into_iter().filter_map(still).collect(), is_denied }
    }

    fn wait_until_still(tid: libc::pid_t) -> io::Result<Option<Self>> {
        for _ in 0..STILL_ATTEMPTS {
            match wait_for(tid, libc::WSTOPPED)? {
                Waited::Stopped(status) => {
                    // An event stop has PTRACE_EVENT_STOP above its signal (ptrace(2)); any other stop is a signal on its way.
                    let is_event = status >> 8 == libc::PTRACE_EVENT_STOP;
                    let signal = if is_event { 0 } else { status & 0x7f };
                    return Ok(Some(Self { tid, signal }));
                }
                Waited::Gone => return Ok(None),
                Waited::Nothing => {}
            }
            // An end is only looked at: it is for the process's parent to wait for, which may be this one.
            if !matches!(wait_for(tid, libc::WEXITED | libc::WNOWAIT)?, Waited::Nothing) {
                return Ok(None);
            }
            std::thread::sleep(STILL_INTERVAL);
        }
        Ok(None)
    }
}

/// What waitid(2) tells of a tracee.
enum Waited {
    Nothing,
    /// It stands still; the status with the ptrace event above the signal.
    Stopped(libc::c_int),
    /// It has ended.
    Gone,
}

fn wait_for(tid: libc::pid_t, what: libc::c_int) -> io::Result<Waited> {
    let id = libc::id_t::try_from(tid).map_err(|_| io::Error::from_raw_os_error(libc::ESRCH))?;
    // SAFETY: a siginfo_t of zeroes is a valid one.
    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
    let flags = what | libc::__WALL | libc::WNOHANG;
    // SAFETY: `info` is ours, and the call fills it. The thread is a tracee of this thread.
    match checked(unsafe { libc::waitid(libc::P_PID, id, &raw mut info, flags) }) {
        Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(Waited::Nothing),
        Err(error) if error.raw_os_error() == Some(libc::ECHILD) => return Ok(Waited::Gone),
        other => other?,
    };
    // SAFETY: the call filled the fields of SIGCHLD, or left zeroes.
    if unsafe { info.si_pid() } == 0 {
        return Ok(Waited::Nothing);
    }
    Ok(match info.si_code {
        // SAFETY: as above.
        libc::CLD_STOPPED | libc::CLD_TRAPPED => Waited::Stopped(unsafe { info.si_status() }),
        _ => Waited::Gone,
    })
}

impl Drop for HeldThread {
    fn drop(&mut self) {
        // It may have been killed meanwhile; then there is nothing to let go.
        let _ = ptrace(libc::PTRACE_DETACH, self.tid, self.signal);
    }
}

fn ptrace(request: libc::c_uint, tid: libc::pid_t, data: libc::c_int) -> io::Result<()> {
    // SAFETY: these requests (SEIZE without options, INTERRUPT, DETACH) take integers and touch no memory of ours.
    let result = unsafe {
        libc::ptrace(request, tid, std::ptr::null_mut::<libc::c_void>(), libc::c_long::from(data))
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
