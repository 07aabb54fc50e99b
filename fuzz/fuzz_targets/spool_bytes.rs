//! Arbitrary bytes into every reader, with and without a file header before them.
#![no_main]

use libfuzzer_sys::fuzz_target;
use stackpulse_fuzz::{check_readers, header};

fuzz_target!(|bytes: &[u8]| {
    check_readers(bytes);
    let mut file = header();
    file.extend_from_slice(bytes);
    check_readers(&file);
});
