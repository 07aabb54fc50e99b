//! What is known of an address, or why nothing is.

use std::sync::Arc;

/// One call at an address: that of the machine code itself, or one inlined into it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Call {
    /// The function's name as the file has it, not demangled; `None` where there is none.
    pub function: Option<Arc<str>>,
    /// The source file.
    pub file: Option<Arc<str>>,
    /// The line in it, from one.
    pub line: Option<u32>,
    /// The column, from one.
    pub column: Option<u32>,
}

/// What a name comes from, the best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Origin {
    /// Debug information: function, line and inlined calls.
    DebugInformation,
    /// A symbol table: the function alone.
    SymbolTable,
    /// The symbol table that distributions pack into a stripped file, `.gnu_debugdata`.
    MiniDebugInformation,
    /// The symbols that a library offers to others.
    DynamicSymbols,
    /// A stub of the procedure linkage table, named after what it jumps to.
    Stub,
    /// The running kernel's list of symbols.
    Kallsyms,
    /// The recording itself.
    Recording,
}

/// Why an address has no name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// The file is not there any more.
    NoFile,
    /// There is a file of that path, but not the recorded one.
    FileDiffers,
    /// The file has no symbol for the address.
    NoSymbol,
    /// The file is damaged, or none that can be read.
    Damaged,
    /// The kernel's symbols may not be read, or belong to another boot.
    NoKernelSymbols,
    /// The address lies in no file: code made at run time without a name, or nothing that is known.
    UnknownCode,
    /// The file has neither symbols nor debug information: they were stripped, and no debug file was found.
    Stripped,
    /// The file ends before what its headers promise.
    Truncated,
    /// Reading the file takes more memory or work than naming may.
    OverBudget,
    /// Naming was stopped before.
    Stopped,
}

/// The answer for one address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// The calls there, innermost first; never empty.
    Resolved {
        /// The calls.
        calls: Vec<Call>,
        /// Where the names are from.
        origin: Origin,
    },
    /// No name.
    Unresolved {
        /// Why.
        reason: Reason,
        /// The first address of the function, in the same space as the address, where unwind tables tell it.
        start: Option<u64>,
    },
}

impl Lookup {
    /// No name, for a reason.
    #[must_use]
    pub fn unresolved(reason: Reason) -> Self {
        Self::Unresolved { reason, start: None }
    }

    /// Where the names are from; `None` if there are none.
    #[must_use]
    pub fn origin(&self) -> Option<Origin> {
        match self {
            Self::Resolved { origin, .. } => Some(*origin),
            Self::Unresolved { .. } => None,
        }
    }
}

impl Origin {
    const NUMBERS: [(Self, u8); 7] = [
        (Self::DebugInformation, 1),
        (Self::SymbolTable, 2),
        (Self::Kallsyms, 3),
        (Self::Recording, 4),
        (Self::MiniDebugInformation, 5),
        (Self::DynamicSymbols, 6),
        (Self::Stub, 7),
    ];

    /// The number by which a spool stores it.
    #[must_use]
    pub fn number(self) -> u8 {
        Self::NUMBERS.iter().find(|(origin, _)| *origin == self).map_or(0, |&(_, number)| number)
    }

    /// The origin of a stored number.
    #[must_use]
    pub fn from_number(number: u8) -> Option<Self> {
        Self::NUMBERS.iter().find(|(_, known)| *known == number).map(|&(origin, _)| origin)
    }
}

impl Reason {
    const NUMBERS: [(Self, u8); 10] = [
        (Self::NoFile, 1),
        (Self::FileDiffers, 2),
        (Self::NoSymbol, 3),
        (Self::Damaged, 4),
        (Self::NoKernelSymbols, 5),
        (Self::UnknownCode, 6),
        (Self::Stripped, 7),
        (Self::Truncated, 8),
        (Self::OverBudget, 9),
        (Self::Stopped, 10),
    ];

    /// The number by which a spool stores it.
    #[must_use]
    pub fn number(self) -> u8 {
        Self::NUMBERS.iter().find(|(reason, _)| *reason == self).map_or(0, |&(_, number)| number)
    }

    /// The reason in a few words, to follow the name of a file.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::NoFile => "is not there any more",
            Self::FileDiffers => "is not the recorded file any more",
            Self::NoSymbol => "has no symbol for it",
            Self::Damaged => "is damaged, or no ELF file",
            Self::NoKernelSymbols => "hides its symbols, or was booted again",
            Self::UnknownCode => "is code of no file",
            Self::Stripped => "is stripped, and there is no debug file for it",
            Self::Truncated => "ends before its headers say",
            Self::OverBudget => "takes more memory or work to read than naming may",
            Self::Stopped => "was not read, for naming was stopped",
        }
    }

    /// The reason of a stored number.
    #[must_use]
    pub fn from_number(number: u8) -> Option<Self> {
        Self::NUMBERS.iter().find(|(_, known)| *known == number).map(|&(reason, _)| reason)
    }
}
