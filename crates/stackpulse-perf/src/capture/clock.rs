//! The clock that events carry.
#![allow(unsafe_code)]

/// Returns `CLOCK_MONOTONIC` in nanoseconds.
#[must_use]
pub fn monotonic_ns() -> u64 {
    read(libc::CLOCK_MONOTONIC)
}

/// Returns the CPU time that the calling thread has taken so far, user and system, in nanoseconds.
#[must_use]
pub fn thread_cpu_ns() -> u64 {
    read(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// Returns the same moment by `CLOCK_MONOTONIC` and by `CLOCK_REALTIME`, in nanoseconds.
#[must_use]
pub fn pair() -> (u64, u64) {
    // The reading with the least time between its two ends is the truest.
    let reading = || {
        let before = read(libc::CLOCK_MONOTONIC);
        let realtime = read(libc::CLOCK_REALTIME);
        let after = read(libc::CLOCK_MONOTONIC);
        (after - before, before + (after - before) / 2, realtime)
    };
    let (_, monotonic, realtime) =
        std::iter::repeat_with(reading).take(3).min().unwrap_or_default();
    (monotonic, realtime)
}

fn read(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a timespec of ours, which the call fills. It cannot fail for these clocks.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    seconds * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap_or_default()
}
