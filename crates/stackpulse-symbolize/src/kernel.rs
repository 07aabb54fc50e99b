//! The running kernel's symbols: `/proc/kallsyms`.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::sync::Arc;

/// More symbols than any kernel has.
const MAX_SYMBOLS: usize = 4 << 20;

/// Function symbols, sorted by address.
#[derive(Debug, Default)]
pub(crate) struct KernelSymbols(Vec<(u64, Arc<str>)>);

impl KernelSymbols {
    /// Reads the running kernel's symbols, if it is the one of that boot; `None` if not, or if addresses are hidden.
    pub(crate) fn of_boot(boot_id: &[u8]) -> Option<Self> {
        let running = std::fs::read("/proc/sys/kernel/random/boot_id").ok()?;
        if boot_id.is_empty() || running.trim_ascii() != boot_id {
            return None;
        }
        Self::parse(BufReader::new(File::open("/proc/kallsyms").ok()?))
    }

    /// Reads `ADDRESS TYPE NAME [MODULE]` lines; `None` if no address is told (kernel.kptr_restrict).
    pub(crate) fn parse(text: impl BufRead) -> Option<Self> {
        let mut symbols = Vec::new();
        for line in text.split(b'\n').take(MAX_SYMBOLS) {
            let Ok(line) = line else { break };
            let line = String::from_utf8_lossy(&line);
            let mut words = line.split_ascii_whitespace();
            let (Some(address), Some(kind), Some(name)) =
                (words.next(), words.next(), words.next())
            else {
                continue;
            };
            if let Ok(address) = u64::from_str_radix(address, 16)
                && address != 0
                && matches!(kind, "t" | "T" | "w" | "W")
            {
                symbols.push((address, name.into()));
            }
        }
        symbols.sort_by_key(|&(address, _)| address);
        (!symbols.is_empty()).then_some(Self(symbols))
    }

    /// Returns the function that an address lies in: its bare name.
    pub(crate) fn lookup(&self, address: u64) -> Option<Arc<str>> {
        let after = self.0.partition_point(|&(start, _)| start <= address);
        self.0.get(after.checked_sub(1)?).map(|(_, name)| Arc::clone(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_found_by_any_address_in_them() {
        let text = b"ffff0020 t b\t[mod]\nffff0010 T a\nffff0018 d data\nbad line\n" as &[u8];
        let symbols = KernelSymbols::parse(text).unwrap();
        assert_eq!(symbols.lookup(0xffff_001f).as_deref(), Some("a"));
        assert_eq!(symbols.lookup(0xffff_0020).as_deref(), Some("b"));
        assert_eq!(symbols.lookup(0xffff_000f), None);
    }

    #[test]
    fn hidden_addresses_are_no_symbols() {
        assert!(
            KernelSymbols::parse(b"0000000000000000 T a\n0000000000000000 t b\n" as &[u8])
                .is_none()
        );
    }
}
