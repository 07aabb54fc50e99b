//! Arbitrary lists of kernel symbols: any address has an answer, and no address has a name before the first.
#![no_main]

use libfuzzer_sys::fuzz_target;
use stackpulse_symbolize::KernelSymbols;

fuzz_target!(|bytes: &[u8]| {
    let Some(symbols) = KernelSymbols::read(bytes) else { return };
    assert_eq!(symbols.lookup(0), None);
    for address in (0..64).map(|bit| 1u64 << bit).chain([u64::MAX]) {
        if let Some(name) = symbols.lookup(address) {
            assert!(!name.is_empty() && name.len() <= 3 * 4096);
        }
    }
});
