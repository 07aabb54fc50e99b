//! Arbitrary bytes as a program: each address has an answer, in bounded memory.
#![no_main]

use libfuzzer_sys::fuzz_target;
use stackpulse_fuzz::elf::{TEXT_SVMA, write};
use stackpulse_symbolize::{ImageQuery, Symbolizer, SymbolizerOptions};
use std::sync::LazyLock;
use tempfile::TempDir;

static SCENE: LazyLock<TempDir> = LazyLock::new(|| TempDir::new().expect("a directory"));

fuzz_target!(|bytes: &[u8]| {
    let program = SCENE.path().join("program");
    write(&program, bytes);
    let options = SymbolizerOptions {
        threads: 1,
        max_memory_bytes: 16 << 20,
        ..SymbolizerOptions::default()
    };
    // Where linkers put code, and lowest of all.
    let addresses: Vec<u64> =
        (0..96).flat_map(|at| [at * 8, 0x1000 + at * 8, TEXT_SVMA - 0x1000 + at * 64]).collect();
    let answer = Symbolizer::new(options).answer(&ImageQuery::file(program), &addresses);
    assert_eq!(answer.lookups.len(), addresses.len());
});
