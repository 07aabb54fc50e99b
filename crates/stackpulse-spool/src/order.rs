//! The order of blocks, by their sequence numbers.

/// What is known of the block that must come next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// It has this sequence number.
    Next(u32),
    /// Bytes were passed over: it has this number or a later one.
    NotBefore(u32),
    /// The reader has just gone to another place: any, and whatever it builds on is taken as it says.
    Any,
}

/// Where a block stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Where it must.
    Here,
    /// Others are missing before it, and nothing else tells so.
    AfterMissing,
    /// It has been there: this is a copy.
    Again,
}

impl Order {
    /// Takes the number of the next block.
    pub(crate) fn place(&mut self, sequence: u32) -> Place {
        let (least, is_exact) = match *self {
            Self::Any => return Place::Here,
            Self::Next(least) => (least, true),
            Self::NotBefore(least) => (least, false),
        };
        if sequence < least {
            return Place::Again;
        }
        *self = Self::Next(sequence.saturating_add(1));
        if is_exact && sequence > least { Place::AfterMissing } else { Place::Here }
    }

    /// Passes over bytes that may have been blocks.
    pub(crate) fn pass_unknown(&mut self) {
        if let Self::Next(sequence) = *self {
            *self = Self::NotBefore(sequence);
        }
    }
}
