//! Registers of a frame, by their DWARF numbers.
//!
//! The numbers are those of the System V ABI, AMD64 supplement, figure 3.36: 0 to 15 are rax, rdx, rcx, rbx, rsi,
//! rdi, rbp, rsp, r8 to r15; 16 is the return address.

use stackpulse_perf::regs::{UserRegs, x86_64};

/// How many registers are followed.
const COUNT: usize = 17;

/// The registers of one frame, as far as they are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RegisterSet {
    values: [u64; COUNT],
    /// Bit `n`: register `n` is known.
    known: u32,
}

/// The perf number of each DWARF register but the return address.
const PERF_NUMBERS: [u32; 16] = [
    x86_64::AX,
    x86_64::DX,
    x86_64::CX,
    x86_64::BX,
    x86_64::SI,
    x86_64::DI,
    x86_64::BP,
    x86_64::SP,
    x86_64::R8,
    x86_64::R8 + 1,
    x86_64::R8 + 2,
    x86_64::R8 + 3,
    x86_64::R8 + 4,
    x86_64::R8 + 5,
    x86_64::R8 + 6,
    x86_64::R8 + 7,
];

impl RegisterSet {
    /// rbp
    pub(crate) const FP: u8 = 6;
    /// rsp
    pub(crate) const SP: u8 = 7;
    /// The return address: of the frame itself, its pc.
    pub(crate) const RETURN_ADDRESS: u8 = 16;

    /// Takes a sample's registers; `None` without pc or sp.
    pub(crate) fn of_sample(regs: &UserRegs<'_>) -> Option<Self> {
        let mut set = Self { values: [0; COUNT], known: 0 };
        for (number, &perf) in (0u8..).zip(&PERF_NUMBERS) {
            if let Some(value) = regs.get(perf) {
                set.set(number, value);
            }
        }
        set.set(Self::RETURN_ADDRESS, regs.pc()?);
        set.get(Self::SP)?;
        Some(set)
    }

    /// Returns a register, if it is known.
    #[inline]
    pub(crate) fn get(&self, number: u8) -> Option<u64> {
        let value = *self.values.get(usize::from(number))?;
        (self.known >> number & 1 != 0).then_some(value)
    }

    #[inline]
    pub(crate) fn set(&mut self, number: u8, value: u64) {
        if let Some(slot) = self.values.get_mut(usize::from(number)) {
            *slot = value;
            self.known |= 1 << number;
        }
    }

    /// Says that a register's value is not known.
    pub(crate) fn forget(&mut self, number: u8) {
        if usize::from(number) < COUNT {
            self.known &= !(1 << number);
        }
    }

    /// The frame's pc.
    pub(crate) fn pc(&self) -> u64 {
        self.values[usize::from(Self::RETURN_ADDRESS)]
    }

    /// The frame's stack pointer.
    pub(crate) fn sp(&self) -> u64 {
        self.values[usize::from(Self::SP)]
    }
}
