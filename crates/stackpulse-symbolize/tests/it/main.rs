//! Names of programs compiled here, compared with what other tools say of them.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test says what failed, and why it was skipped"
)]

mod bad_input;
mod batches;
mod bombs;
mod dwarf_bytes;
#[allow(unreachable_pub, reason = "the fuzz targets make it public")]
mod elf_file;
mod harness;
mod hostile;
mod opening;
mod oracle;
mod sources_of_names;
