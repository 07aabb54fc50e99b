//! Registers of a frame, of either architecture.
//!
//! They are numbered as DWARF does (System V ABI, AMD64 supplement, figure 3.36; DWARF for the Arm 64-bit Architecture, 4.1),
//! but that the stack pointer is 31 and the pc 32 on both.

use stackpulse_perf::regs::{Arch, UserRegs, aarch64, x86_64};

/// How many registers are followed.
const COUNT: usize = 33;

/// The registers of one frame, as far as they are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Registers {
    values: [u64; COUNT],
    /// Bit `n`: register `n` is known.
    known: u64,
    arch: Arch,
}

/// The perf number of each DWARF register of x86-64 but the return address.
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

/// User addresses of AArch64 have 48 bits; a signature of pointer authentication lies above.
const AARCH64_ADDRESS: u64 = (1 << 48) - 1;

impl Registers {
    /// The stack pointer: rsp, sp.
    pub const SP: u8 = 31;
    /// The frame's own pc.
    pub const PC: u8 = 32;
    /// The link register of AArch64.
    pub const LR: u8 = 30;

    /// Takes the registers that the kernel delivered with a sample; `None` without pc or sp, or of an architecture that is not
    /// followed.
    #[must_use]
    pub fn of_sample(regs: &UserRegs<'_>) -> Option<Self> {
        let mut set = Self::none(regs.arch());
        match regs.arch() {
            Arch::X86_64 => {
                for (number, &perf) in (0u16..).zip(&PERF_NUMBERS) {
                    set.take(number_of(Arch::X86_64, number), regs.get(perf));
                }
            }
            Arch::Aarch64 => {
                for number in 0u8..=Self::LR {
                    set.take(Some(number), regs.get(aarch64::X0 + u32::from(number)));
                }
            }
            _ => return None,
        }
        set.set(Self::SP, regs.sp()?);
        set.set(Self::PC, regs.pc()?);
        Some(set)
    }

    /// Makes the registers of a frame of which no more than these is known.
    #[must_use]
    pub fn of_frame(arch: Arch, pc: u64, sp: u64, fp: Option<u64>) -> Self {
        let mut set = Self::none(arch);
        set.set(Self::PC, pc);
        set.set(Self::SP, sp);
        set.take(Some(Self::fp_number(arch)), fp);
        set
    }

    /// A frame of which no register is known.
    pub(crate) fn none(arch: Arch) -> Self {
        Self { values: [0; COUNT], known: 0, arch }
    }

    fn take(&mut self, number: Option<u8>, value: Option<u64>) {
        if let (Some(number), Some(value)) = (number, value) {
            self.set(number, value);
        }
    }

    /// Returns whose registers they are.
    #[must_use]
    pub fn arch(&self) -> Arch {
        self.arch
    }

    /// Returns the number of the frame pointer: rbp, x29.
    #[inline]
    #[must_use]
    pub fn fp_number(arch: Arch) -> u8 {
        if arch == Arch::Aarch64 { 29 } else { 6 }
    }

    /// Returns a register, if it is known.
    #[inline]
    #[must_use]
    pub fn get(&self, number: u8) -> Option<u64> {
        let value = *self.values.get(usize::from(number))?;
        (self.known >> number & 1 != 0).then_some(value)
    }

    /// Returns a register by the number that DWARF gives it, if it is known.
    pub(crate) fn by_dwarf_number(&self, number: u16) -> Option<u64> {
        self.get(number_of(self.arch, number)?)
    }

    /// Says that a register has this value; a number that is none changes nothing.
    #[inline]
    pub fn set(&mut self, number: u8, value: u64) {
        if let Some(slot) = self.values.get_mut(usize::from(number)) {
            *slot = value;
            self.known |= 1 << number;
        }
    }

    /// Says that a register's value is not known.
    pub fn forget(&mut self, number: u8) {
        if usize::from(number) < COUNT {
            self.known &= !(1 << number);
        }
    }

    /// Returns the frame's pc.
    #[must_use]
    pub fn pc(&self) -> u64 {
        self.values[usize::from(Self::PC)]
    }

    /// Returns the frame's stack pointer; where it is not known, an address that it is not below.
    #[must_use]
    pub fn sp(&self) -> u64 {
        self.values[usize::from(Self::SP)]
    }
}

/// The number here of what DWARF calls register `number`; `None`: it is not followed.
pub(crate) fn number_of(arch: Arch, number: u16) -> Option<u8> {
    let number = u8::try_from(number).ok()?;
    match (arch, number) {
        (Arch::X86_64, 7) => Some(Registers::SP),
        (Arch::X86_64, 16) => Some(Registers::PC),
        (Arch::X86_64, 0..=15) | (Arch::Aarch64, 0..=31) => Some(number),
        _ => None,
    }
}

/// Takes the signature of pointer authentication off a return address.
#[inline]
pub(crate) fn without_signature(arch: Arch, address: u64) -> u64 {
    if arch == Arch::Aarch64 { address & AARCH64_ADDRESS } else { address }
}
