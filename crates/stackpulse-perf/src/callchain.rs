//! The kernel's callchain, split at its context markers.

use crate::sample::CpuMode;

/// Markers lie at or above this value (`PERF_CONTEXT_MAX`, `include/uapi/linux/perf_event.h`).
const CONTEXT_MAX: u64 = (-4095i64).cast_unsigned();

/// One entry of a callchain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChainEntry {
    /// The context it belongs to.
    pub mode: CpuMode,
    /// The address as delivered.
    pub avma: u64,
    /// Whether it is the first of its context: exact. Others are return addresses.
    pub first_of_context: bool,
}

/// Reads a callchain: the markers set the mode of the entries after them and are not delivered.
pub fn entries(chain: impl Iterator<Item = u64>) -> impl Iterator<Item = ChainEntry> {
    let mut mode = CpuMode::Unknown;
    let mut first_of_context = true;
    chain.filter_map(move |value| {
        if value >= CONTEXT_MAX {
            mode = context_mode(value);
            first_of_context = true;
            return None;
        }
        let entry = ChainEntry { mode, avma: value, first_of_context };
        first_of_context = false;
        Some(entry)
    })
}

/// `enum perf_callchain_context`.
fn context_mode(marker: u64) -> CpuMode {
    match marker.cast_signed() {
        -32 => CpuMode::Hypervisor,
        -128 => CpuMode::Kernel,
        -512 => CpuMode::User,
        -2176 => CpuMode::GuestKernel,
        -2560 => CpuMode::GuestUser,
        _ => CpuMode::Unknown,
    }
}
