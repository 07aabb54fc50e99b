//! Which fields a recording asks the kernel for: the one list that both requests and decoding use.

use crate::regs::Arch;

/// Bits of `perf_event_attr.sample_type` (`enum perf_event_sample_format`, `include/uapi/linux/perf_event.h`).
pub mod field {
    /// The interrupted instruction.
    pub const IP: u64 = 1 << 0;
    /// Process and thread.
    pub const TID: u64 = 1 << 1;
    /// Timestamp.
    pub const TIME: u64 = 1 << 2;
    /// Address of the access.
    pub const ADDR: u64 = 1 << 3;
    /// Counter values.
    pub const READ: u64 = 1 << 4;
    /// The kernel's callchain.
    pub const CALLCHAIN: u64 = 1 << 5;
    /// Event id.
    pub const ID: u64 = 1 << 6;
    /// CPU.
    pub const CPU: u64 = 1 << 7;
    /// Period.
    pub const PERIOD: u64 = 1 << 8;
    /// Stream id.
    pub const STREAM_ID: u64 = 1 << 9;
    /// Raw bytes of a tracepoint.
    pub const RAW: u64 = 1 << 10;
    /// Branch stack.
    pub const BRANCH_STACK: u64 = 1 << 11;
    /// User registers.
    pub const REGS_USER: u64 = 1 << 12;
    /// User stack.
    pub const STACK_USER: u64 = 1 << 13;
    /// Event id in a fixed place.
    pub const IDENTIFIER: u64 = 1 << 16;
}

/// Bits of `perf_event_attr.read_format` (`enum perf_event_read_format`): what a sample's counter values come with.
pub mod read_format {
    /// The time the event was enabled.
    pub const TOTAL_TIME_ENABLED: u64 = 1 << 0;
    /// The time it counted.
    pub const TOTAL_TIME_RUNNING: u64 = 1 << 1;
    /// Its id.
    pub const ID: u64 = 1 << 2;
    /// The values of its whole group.
    pub const GROUP: u64 = 1 << 3;
    /// How many samples were lost.
    pub const LOST: u64 = 1 << 4;
}

/// Bits of `perf_event_attr.branch_sample_type` that change the form of a branch stack.
pub mod branch_format {
    /// It begins with an index of the hardware's.
    pub const HW_INDEX: u64 = 1 << 17;
    /// Counters follow its entries.
    pub const COUNTERS: u64 = 1 << 19;
}

/// What a sample holds, in the kernel's own order: the one list of what is asked for and expected.
///
/// A recording's comes from [`for_recording`](Self::for_recording); for a file of perf's, fill the fields from the attribute
/// there, whose names they have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampleLayout {
    /// Bits of [`field`].
    pub fields: u64,
    /// `sample_regs_user`.
    pub user_regs_mask: u64,
    /// Whose register numbers the mask uses.
    pub arch: Arch,
    /// Whether records other than samples end with task, time and CPU (`sample_id_all`).
    pub id_all: bool,
    /// Bits of [`read_format`]; of interest with [`field::READ`].
    pub read_format: u64,
    /// Bits of [`branch_format`]; of interest with [`field::BRANCH_STACK`].
    pub branch_format: u64,
}

impl SampleLayout {
    /// The layout a recording uses: task, time, CPU, period, and what is asked for.
    #[must_use]
    pub fn for_recording(arch: Arch, stack_size_bytes: u32, kernel_callchain: bool) -> Self {
        let mut fields = field::IP | field::TID | field::TIME | field::CPU | field::PERIOD;
        let mut user_regs_mask = 0;
        if kernel_callchain {
            fields |= field::CALLCHAIN;
        }
        if stack_size_bytes > 0 {
            fields |= field::REGS_USER | field::STACK_USER;
            user_regs_mask = arch.general_mask();
        }
        Self { fields, user_regs_mask, arch, id_all: true, read_format: 0, branch_format: 0 }
    }

    /// Whether a field is in the layout.
    #[must_use]
    pub fn has(&self, field: u64) -> bool {
        self.fields & field != 0
    }

    /// The largest record that a sample can be, in bytes: with the deepest callchain the kernel makes (127 entries
    /// and two markers; `kernel.perf_event_max_stack`).
    #[must_use]
    pub fn largest_sample_bytes(&self, stack_size_bytes: u32) -> usize {
        let callchain = if self.has(field::CALLCHAIN) { 8 * (1 + 129) } else { 0 };
        let registers = 8 + 8 * self.user_regs_mask.count_ones() as usize;
        8 + 8 * 8 + callchain + registers + 16 + stack_size_bytes as usize
    }
}
