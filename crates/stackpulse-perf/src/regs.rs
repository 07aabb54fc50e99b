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
}
