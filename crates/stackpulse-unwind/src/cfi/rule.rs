//! How to get from one frame to its caller, at one address.

use crate::registers::RegisterSet;

/// The compiled row of call frame information that holds at an address.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Rule {
    pub(crate) cfa: Cfa,
    /// How each register that the row names is restored; the others keep their values.
    pub(crate) registers: Box<[(u8, Restore)]>,
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

impl Rule {
    /// The rule at a function's first instruction, and in a PLT stub: only the return address has been pushed.
    pub(crate) fn at_entry() -> Self {
        Self {
            cfa: Cfa::Register(RegisterSet::SP, 8),
            registers: Box::new([(RegisterSet::RETURN_ADDRESS, Restore::AtCfa(-8))]),
            is_outermost: false,
            is_signal_frame: false,
        }
    }
}
