//! User registers of a sample, named per architecture.
//!
//! The bit numbers are those of `PERF_SAMPLE_REGS_USER`: `arch/x86/include/uapi/asm/perf_regs.h` and
//! `arch/arm64/include/uapi/asm/perf_regs.h` in the kernel's sources.

/// The instruction set whose register numbers a sample uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Arch {
    /// x86-64.
    X86_64,
    /// AArch64.
    Aarch64,
}

impl Arch {
    /// The architecture of this program, where it is supported.
    #[must_use]
    pub const fn native() -> Option<Self> {
        if cfg!(target_arch = "x86_64") {
            Some(Self::X86_64)
        } else if cfg!(target_arch = "aarch64") {
            Some(Self::Aarch64)
        } else {
            None
        }
    }

    /// The `sample_regs_user` mask that asks for every general register.
    #[must_use]
    pub const fn general_mask(self) -> u64 {
        match self {
            // AX..SS (0-11), R8..R15 (16-23): without the segments DS, ES, FS, GS, which the kernel refuses.
            Self::X86_64 => 0x00ff_0fff,
            // X0..X29, LR, SP, PC.
            Self::Aarch64 => 0x1_ffff_ffff,
        }
    }

    /// Returns a code address as it lies in memory: without the code that pointer authentication puts into the upper bits of
    /// return addresses, in registers and on stacks, where programs are built with it.
    ///
    /// Addresses are taken to have 48 bits; with another number, [`aarch64::strip_pac`] takes it.
    #[must_use]
    pub const fn code_avma(self, avma: u64) -> u64 {
        match self {
            Self::X86_64 => avma,
            Self::Aarch64 => aarch64::strip_pac(avma, 48),
        }
    }
}

/// x86-64 register numbers of `PERF_SAMPLE_REGS_USER`.
pub mod x86_64 {
    /// rax
    pub const AX: u32 = 0;
    /// rbx
    pub const BX: u32 = 1;
    /// rcx
    pub const CX: u32 = 2;
    /// rdx
    pub const DX: u32 = 3;
    /// rsi
    pub const SI: u32 = 4;
    /// rdi
    pub const DI: u32 = 5;
    /// rbp
    pub const BP: u32 = 6;
    /// rsp
    pub const SP: u32 = 7;
    /// rip
    pub const IP: u32 = 8;
    /// r8; r9 to r15 follow.
    pub const R8: u32 = 16;
}

/// AArch64 register numbers of `PERF_SAMPLE_REGS_USER`.
pub mod aarch64 {
    /// x0; x1 to x28 follow.
    pub const X0: u32 = 0;
    /// x29, the frame pointer.
    pub const FP: u32 = 29;
    /// x30, the link register.
    pub const LR: u32 = 30;
    /// sp
    pub const SP: u32 = 31;
    /// pc
    pub const PC: u32 = 32;

    /// Returns an address of `address_bits` bits (39 to 52, as the kernel is built) without a pointer authentication code in
    /// the bits above: these become what bit 55 is, which tells the kernel's addresses from those of programs.
    #[must_use]
    pub const fn strip_pac(avma: u64, address_bits: u32) -> u64 {
        let above = u64::MAX.unbounded_shl(address_bits);
        if avma & 1 << 55 == 0 { avma & !above } else { avma | above }
    }
}

/// The width of the interrupted user code (`enum perf_sample_regs_abi`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RegsAbi {
    /// 32-bit code.
    Bits32,
    /// 64-bit code.
    Bits64,
}

/// The user registers of one sample, read in place.
#[derive(Clone, Copy, Debug)]
pub struct UserRegs<'a> {
    arch: Arch,
    abi: RegsAbi,
    mask: u64,
    /// Eight bytes for each bit set in `mask`, in ascending order of the bits.
    values: &'a [u8],
}

impl<'a> UserRegs<'a> {
    /// Takes registers as the kernel lays them out: eight bytes, in native order, for each bit of `mask`.
    ///
    /// `None` if `values` is shorter than that.
    #[must_use]
    pub fn new(arch: Arch, abi: RegsAbi, mask: u64, values: &'a [u8]) -> Option<Self> {
        let values = values.get(..mask.count_ones() as usize * 8)?;
        Some(Self { arch, abi, mask, values })
    }

    /// Returns the architecture whose register numbers [`get`](Self::get) takes.
    #[must_use]
    pub fn arch(&self) -> Arch {
        self.arch
    }

    /// Returns the width of the interrupted code.
    #[must_use]
    pub fn abi(&self) -> RegsAbi {
        self.abi
    }

    /// Returns the register with this number, if it was sampled.
    #[must_use]
    pub fn get(&self, register: u32) -> Option<u64> {
        let bit = 1u64.checked_shl(register)?;
        if self.mask & bit == 0 {
            return None;
        }
        let index = (self.mask & (bit - 1)).count_ones() as usize * 8;
        let bytes = self.values.get(index..index + 8)?;
        Some(u64::from_ne_bytes(bytes.try_into().ok()?))
    }

    /// Returns the program counter, if it was sampled.
    #[must_use]
    pub fn pc(&self) -> Option<u64> {
        self.get(match self.arch {
            Arch::X86_64 => x86_64::IP,
            Arch::Aarch64 => aarch64::PC,
        })
    }

    /// Returns the stack pointer, if it was sampled.
    #[must_use]
    pub fn sp(&self) -> Option<u64> {
        self.get(match self.arch {
            Arch::X86_64 => x86_64::SP,
            Arch::Aarch64 => aarch64::SP,
        })
    }

    /// Returns the return address that a link register holds, as it lies in memory: `None` where the architecture has no such
    /// register, or it was not sampled.
    #[must_use]
    pub fn link_avma(&self) -> Option<u64> {
        match self.arch {
            Arch::X86_64 => None,
            Arch::Aarch64 => Some(self.arch.code_avma(self.get(aarch64::LR)?)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn authentication_codes_are_stripped_from_addresses_of_programs_and_of_the_kernel() {
        let check = |avma, expected| assert_eq!(Arch::Aarch64.code_avma(avma), expected);
        check(0x0000_aaaa_bbbb_cccc, 0x0000_aaaa_bbbb_cccc);
        check(0xff7f_aaaa_bbbb_cccc, 0x0000_aaaa_bbbb_cccc);
        check(0x003b_ffff_ffff_fff0, 0x0000_ffff_ffff_fff0);
        check(0xffff_8000_1234_5678, 0xffff_8000_1234_5678);
        check(0x5a95_8000_1234_5678, 0xffff_8000_1234_5678);
        assert_eq!(aarch64::strip_pac(0x005a_ab7f_1234_5678, 39), 0x0000_007f_1234_5678);
        assert_eq!(aarch64::strip_pac(0x002a_aaaa_bbbb_cccc, 52), 0x000a_aaaa_bbbb_cccc);
        assert_eq!(Arch::X86_64.code_avma(u64::MAX), u64::MAX);
    }

    #[test]
    fn aarch64_registers_are_found_by_their_numbers() {
        let values: Vec<u8> = (0..33u64).flat_map(|at| (at | 0x7f << 48).to_ne_bytes()).collect();
        let mask = Arch::Aarch64.general_mask();
        let regs = UserRegs::new(Arch::Aarch64, RegsAbi::Bits64, mask, &values).unwrap();
        let is = |at: u64| Some(at | 0x7f << 48);
        assert_eq!(regs.get(aarch64::X0), is(0));
        assert_eq!(regs.get(aarch64::FP), is(29));
        assert_eq!((regs.sp(), regs.pc()), (is(31), is(32)));
        assert_eq!(regs.link_avma(), Some(30), "without the code above it");
        assert_eq!(regs.get(33), None);
        assert!(UserRegs::new(Arch::Aarch64, RegsAbi::Bits64, mask, &values[1..]).is_none());
    }
}
