//! Steps that need the stack pointer and the frame pointer alone: nearly all there are.

use super::rule::{Cfa, Restore, Rule};
use crate::registers::Registers;
use stackpulse_perf::regs::Arch;

/// A rule that the pc, the stack pointer and the frame pointer are enough for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Simple {
    /// Whether the CFA is told by the frame pointer, not by the stack pointer.
    pub(crate) cfa_by_fp: bool,
    pub(crate) cfa_offset: i32,
    /// Where the return address lies, from the CFA.
    pub(crate) return_offset: i32,
    /// Where the caller's frame pointer lies, from the CFA; `None`: it is still in its register.
    pub(crate) fp_offset: Option<i32>,
    pub(crate) is_signed: bool,
}

impl Simple {
    /// Takes a rule for a simple one, if it is.
    pub(crate) fn of(rule: &Rule, arch: Arch) -> Option<Self> {
        let Cfa::Register(register, cfa_offset) = rule.cfa else { return None };
        let fp = Registers::fp_number(arch);
        let Restore::AtCfa(return_offset) = rule.return_address else { return None };
        let is_other = register != Registers::SP && register != fp;
        if is_other || rule.is_outermost || rule.is_signal_frame {
            return None;
        }
        let mut fp_offset = None;
        for (number, restore) in &rule.registers {
            match restore {
                Restore::AtCfa(offset) if *number == fp => {
                    fp_offset = Some((*offset).try_into().ok()?);
                }
                _ if *number == fp || *number == Registers::SP => return None,
                _ => {}
            }
        }
        Some(Self {
            cfa_by_fp: register == fp,
            cfa_offset: cfa_offset.try_into().ok()?,
            return_offset: return_offset.try_into().ok()?,
            fp_offset,
            is_signed: rule.is_signed,
        })
    }
}
