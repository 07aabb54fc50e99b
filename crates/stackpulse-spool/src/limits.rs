//! The format's limits: what a writer never exceeds and a reader never believes.
//!
//! Together they bound a reader's memory whatever the file says: the definitions of one epoch, the columns
//! of one block, and one table of names.

/// Largest stored payload of a block, in bytes.
pub const MAX_PAYLOAD: u32 = 64 << 20;

/// Largest sum of the decompressed columns of a block of records, in bytes.
pub const MAX_RECORDS_RAW: usize = 8 << 20;

/// Largest sum of the decompressed columns of a block of names, in bytes.
pub const MAX_NAMES_RAW: usize = 64 << 20;

/// Longest string (path, comm, command line, name, value), in bytes.
pub const MAX_STRING: usize = 1 << 20;

/// Most images of an epoch.
pub const MAX_IMAGES: u32 = 1 << 20;

/// Most process generations of an epoch.
pub const MAX_PROCESSES: u32 = 1 << 22;

/// Most threads of an epoch.
pub const MAX_THREADS: u32 = 1 << 22;

/// Most frames of an epoch.
pub const MAX_FRAMES: u32 = 1 << 22;

/// Most stack nodes of an epoch.
pub const MAX_NODES: u32 = 1 << 24;

/// Longest index a writer keeps and writes, in bytes; a longer one is left out, and readers look through the blocks.
pub const MAX_INDEX: usize = 16 << 20;

/// Most damaged places a reader tells apart; those beyond are told together with the one before them.
pub const MAX_DAMAGED: usize = 4096;

/// Most frames of one stack run.
pub const MAX_RUN: usize = 1 << 16;

/// Coarsest unit of time is 2^20 nanoseconds, about a millisecond.
pub const MAX_TIME_SHIFT: u32 = 20;
