//! How to get from one frame to its caller, at one address.

use crate::registers::Registers;
use stackpulse_perf::regs::Arch;

/// The compiled row of call frame information that holds at an address.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Rule {
    pub(crate) cfa: Cfa,
    /// How each register that the row names is restored; the others keep their values.
    pub(crate) registers: Box<[(u8, Restore)]>,
    /// Where the caller's pc is.
    pub(crate) return_address: Restore,
    /// Whether the return address is signed (pointer authentication of AArch64).
    pub(crate) is_signed: bool,
    /// Whether the return address is said to be undefined: the frame is the outermost.
    pub(crate) is_outermost: bool,
    /// Whether the frame is a signal trampoline: its caller was interrupted, and its pc is exact.
    pub(crate) is_signal_frame: bool,
}

/// Where the frame's canonical address is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Cfa {
    /// A register and an offset.
    Register(u8, i64),
    /// A DWARF expression.
    Expression(Box<[u8]>),
}

/// Where a register's value in the caller is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Restore {
    /// It cannot be known.
    Undefined,
    /// In memory, at the CFA plus this.
    AtCfa(i64),
    /// The CFA plus this.
    CfaPlus(i64),
    /// In another register.
    InRegister(u8),
    /// In memory, where the expression says.
    AtExpression(Box<[u8]>),
    /// What the expression says.
    Expression(Box<[u8]>),
}

/// Where the registers x0 to x30, sp and pc lie in what the kernel of AArch64 puts on the stack for a signal: behind `siginfo` and
/// the beginning of `ucontext` (`arch/arm64/include/uapi/asm/sigcontext.h`).
const SIGNAL_REGISTERS: i64 = 312;

impl Rule {
    /// The rule at a function's first instruction, and in a PLT stub: only the return address is there.
    pub(crate) fn at_entry(arch: Arch) -> Self {
        let (cfa_offset, return_address) = match arch {
            Arch::Aarch64 => (0, Restore::InRegister(Registers::LR)),
            _ => (8, Restore::AtCfa(-8)),
        };
        Self {
            cfa: Cfa::Register(Registers::SP, cfa_offset),
            registers: Box::new([]),
            return_address,
            // The vDSO and stubs of AArch64 have nothing to say so.
            is_signed: arch == Arch::Aarch64,
            is_outermost: false,
            is_signal_frame: false,
        }
    }

    /// The rule in the signal trampoline of AArch64, which has no unwind information.
    pub(crate) fn of_signal_trampoline() -> Self {
        let at = |number: u8| Restore::AtCfa(SIGNAL_REGISTERS + 8 * i64::from(number));
        Self {
            cfa: Cfa::Register(Registers::SP, 0),
            registers: (0..=Registers::SP).map(|number| (number, at(number))).collect(),
            return_address: at(Registers::PC),
            is_signed: false,
            is_outermost: false,
            is_signal_frame: true,
        }
    }
}
