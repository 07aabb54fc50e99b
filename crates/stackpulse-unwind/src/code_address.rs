//! What an address of code stands for: the instruction itself, or the place to return to.

/// An address in code, and what it says of the instruction that the frame is at.
///
/// A return address is one past the call: it may belong to the next line, or to the next function. Whoever looks up names, lines or unwind rules
/// takes [`lookup_avma`](Self::lookup_avma).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CodeAddress {
    /// Execution was interrupted at this instruction: the innermost frame, or one interrupted by a signal.
    InstructionPointer(u64),
    /// Execution goes on here when the callee returns.
    ReturnAddress(u64),
}

impl CodeAddress {
    /// Returns the address as it stands in the register or on the stack.
    #[inline]
    #[must_use]
    pub fn avma(self) -> u64 {
        let (Self::InstructionPointer(avma) | Self::ReturnAddress(avma)) = self;
        avma
    }

    /// Returns an address within the instruction that is being executed.
    #[inline]
    #[must_use]
    pub fn lookup_avma(self) -> u64 {
        match self {
            Self::InstructionPointer(avma) => avma,
            Self::ReturnAddress(avma) => avma.wrapping_sub(1),
        }
    }

    /// Whether execution was interrupted there, so that any instruction of the function may be next.
    #[inline]
    #[must_use]
    pub fn is_interrupted(self) -> bool {
        matches!(self, Self::InstructionPointer(_))
    }
}
