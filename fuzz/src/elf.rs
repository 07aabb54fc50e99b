//! Files for symbols to be looked for in.

#[path = "../../crates/stackpulse-symbolize/tests/it/elf_file.rs"]
mod elf_file;

pub use elf_file::{PACKED, TEXT_SVMA, file, stretch};
use std::path::Path;

/// Replaces a file's bytes.
///
/// # Panics
///
/// If it cannot be written.
pub fn write(path: &Path, bytes: &[u8]) {
    std::fs::write(path, bytes).expect("the directory is there");
}
