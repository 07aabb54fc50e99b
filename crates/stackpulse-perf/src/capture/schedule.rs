//! The capture thread's place among the others: rings fill while it waits for a CPU.

use super::sys::{self, Promptness};
use std::io;

/// The lowest real-time priority; a nice value above ordinary threads; the shortest time slice the kernel accepts.
const PROMPTNESS: Promptness = Promptness { priority: 1, nice: -15, slice_ns: 100_000 };

/// Asks the kernel to run the calling thread soon after it wakes: as a real-time thread of the lowest priority; where that
/// is not permitted (CAP_SYS_NICE, RLIMIT_RTPRIO) with a lower nice value; where not even that, with a short time slice.
///
/// Call it on the thread that calls [`Capture::wait`](super::Capture::wait) and [`drain`](super::Capture::drain), and does no
/// other work of length. Threads with another policy than `SCHED_OTHER` stay as they are.
///
/// # Errors
///
/// When the kernel refuses everything. Kernels before 6.12 accept a time slice and do nothing.
pub fn run_promptly() -> io::Result<()> {
    sys::run_promptly(PROMPTNESS)
}
