//! What can be wrong with a spool, and with writing one.

use std::io;
use thiserror::Error;

/// Why a spool could not be opened or read on.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The file could not be read.
    #[error("read the spool at offset {offset}: {source}")]
    Io {
        /// Where in the file.
        offset: u64,
        /// Why.
        source: io::Error,
    },
    /// The file has no bytes.
    #[error("the file is empty")]
    Empty,
    /// The file does not begin as a spool does.
    #[error("the file is not a spool: it begins with {found:02x?}")]
    NotASpool {
        /// Its first bytes.
        found: Vec<u8>,
    },
    /// The file began as a spool, and was then changed by a transfer in text mode.
    #[error("the spool was damaged by a transfer in text mode (its line ends were changed)")]
    TextMode,
    /// The file header's checksum is wrong.
    #[error("the spool's header is damaged")]
    DamagedHeader,
    /// The spool was written in a later version of the format.
    #[error("the spool has version {found}, and only {supported} is known here")]
    NewerVersion {
        /// The file's version.
        found: u16,
        /// The latest known one.
        supported: u16,
    },
    /// A block of a kind that is not known here, and that may not be skipped.
    #[error(
        "the block at offset {offset} has kind {kind}, which is not known here and may not be skipped"
    )]
    UnknownBlock {
        /// Where it begins.
        offset: u64,
        /// Its kind.
        kind: u8,
    },
    /// The file became shorter, or another file, while it was followed.
    #[error("the spool was truncated or replaced while it was read (at offset {offset})")]
    Replaced {
        /// How far it had been read.
        offset: u64,
    },
}

/// What is wrong with a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
pub enum Damage {
    /// The bytes at a block's place are no block header.
    #[error("no block header where one must be")]
    BadBlockHeader,
    /// The payload's checksum is wrong.
    #[error("the payload's checksum is wrong")]
    BadChecksum,
    /// A length or count is beyond the format's limits.
    #[error("a length or count is beyond the limit")]
    OverLimit,
    /// A compressed column does not decompress to what it says.
    #[error("a column does not decompress")]
    BadCompression,
    /// A number is longer than 64 bits or than it need be.
    #[error("a number is malformed")]
    BadNumber,
    /// A column ends in the middle of a record.
    #[error("a column ends in the middle of a record")]
    EndOfColumn,
    /// Bytes are left over after the last record.
    #[error("bytes are left over after the last record")]
    TrailingBytes,
    /// A record has a tag or a flag that does not exist.
    #[error("a record has an unknown tag or flag")]
    BadTag,
    /// A record refers to something not defined before it.
    #[error("a record refers to something not defined before it")]
    ForwardReference,
    /// A record's fields contradict each other.
    #[error("a record's fields contradict each other")]
    BadRecord,
    /// The block's number or its counts do not go on from those of the blocks before it.
    #[error("the block does not follow the one before it")]
    BadSequence,
    /// Blocks that came before this one are not in the file.
    #[error("blocks that came before this one are missing")]
    MissingBlocks,
    /// Records come after the end of the recording.
    #[error("records come after the end of the recording")]
    AfterEnd,
}

/// A stretch of a spool that could not be read, and what that costs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DamagedBlock {
    /// Where it begins in the file.
    pub offset: u64,
    /// How many bytes were passed over.
    pub len: u64,
    /// What is wrong.
    pub damage: Damage,
    /// The block's kind, where its header could be read.
    pub kind: Option<u8>,
    /// What depends on it.
    pub lost: LostWith,
}

/// What a damaged block takes with it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LostWith {
    /// Samples in the block itself, as far as its preface could be believed.
    pub samples: u64,
    /// Definitions missing for later blocks: samples that use them are left out.
    pub definitions: u64,
    /// The time its records span, nanoseconds, as far as its preface could be believed.
    pub span_ns: Option<(u64, u64)>,
}

/// Why a record could not be written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The output refused; the spool ends at its last whole block.
    #[error("write the spool: {0}")]
    Io(#[from] io::Error),
    /// An earlier write failed, and the failure was reported then.
    #[error("the spool ended with an earlier failure to write")]
    Ended,
    /// The record breaks a rule of the format.
    #[error("the record breaks a rule of the spool: {0}")]
    Invalid(#[from] Damage),
}
