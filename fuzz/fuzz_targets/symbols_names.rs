//! Arbitrary names made readable: in bounded time and length.
#![no_main]

use libfuzzer_sys::fuzz_target;
use stackpulse_symbolize::demangle;

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    for prefix in ["", "_Z", "_R", "_ZN"] {
        let name = format!("{prefix}{text}");
        let readable = demangle(&name);
        assert!(readable.len() <= name.len().max(256 << 10), "{} bytes", readable.len());
    }
});
