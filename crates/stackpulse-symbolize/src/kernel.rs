//! The kernel's symbols: `/proc/kallsyms`, or `System.map` where that holds for the running kernel.

use crate::files;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::sync::Arc;

/// More functions than any kernel has.
const MAX_SYMBOLS: usize = 1 << 20;

/// Longer lists are cut: those of kernels with all there is have some 50 MB.
const MAX_TEXT: u64 = 64 << 20;

/// A file that tells one fact of the kernel is not longer.
const MAX_FACT: u64 = 64 << 10;

/// Longer lines are cut: the kernel's own names have at most 512 bytes.
const MAX_LINE: u64 = 4096;

/// No function of a kernel is longer: an address farther behind a symbol lies in code without one.
const MAX_FUNCTION: u64 = 1 << 20;

/// A kernel's functions, by address.
#[derive(Clone, Debug, Default)]
pub struct KernelSymbols {
    /// Sorted by address.
    functions: Vec<(u64, Arc<str>)>,
}

impl KernelSymbols {
    /// Reads `ADDRESS TYPE NAME [MODULE]` lines, as in `/proc/kallsyms` and `System.map`: 64 MiB of them at most. Lines of
    /// another form are passed over, and what follows an error of reading is missing. `None` if no function has an address: they are hidden
    /// (`kernel.kptr_restrict`).
    #[must_use]
    pub fn read(text: impl BufRead) -> Option<Self> {
        let mut text = text.take(MAX_TEXT);
        let mut functions = Vec::new();
        let mut line = Vec::new();
        while functions.len() < MAX_SYMBOLS {
            line.clear();
            match text.by_ref().take(MAX_LINE).read_until(b'\n', &mut line) {
                Ok(0) | Err(_) => break,
                Ok(_) => functions.extend(function(&line)),
            }
        }
        // Of several at one address the first counts.
        functions.sort_by_key(|&(address, _)| address);
        functions.dedup_by_key(|&mut (address, _)| address);
        (!functions.is_empty()).then_some(Self { functions })
    }

    /// Returns the function that an address of the running kernel lies in: its bare name.
    #[must_use]
    pub fn lookup(&self, address: u64) -> Option<Arc<str>> {
        let after = self.functions.partition_point(|&(start, _)| start <= address);
        let (start, name) = self.functions.get(after.checked_sub(1)?)?;
        (address - start < MAX_FUNCTION).then(|| Arc::clone(name))
    }

    /// Reads the symbols of the kernel that runs below `root`, if it was booted as `boot_id`.
    pub(crate) fn of_boot(boot_id: &[u8], root: &Path) -> Option<Self> {
        let text = |path: &str| {
            let (file, _) = files::open_any(&root.join(path))?;
            let mut text = Vec::new();
            file.take(MAX_FACT).read_to_end(&mut text).ok()?;
            Some(text)
        };
        let running = text("proc/sys/kernel/random/boot_id")?;
        if boot_id.is_empty() || running.trim_ascii() != boot_id {
            return None;
        }
        let open = |path: &str| Some(BufReader::new(files::open_any(&root.join(path))?.0));
        if let Some(symbols) = open("proc/kallsyms").and_then(Self::read) {
            return Some(symbols);
        }
        // Its addresses are those of this boot only where the kernel was not moved to a random place.
        let is_in_place =
            text("proc/cmdline")?.split(u8::is_ascii_whitespace).any(|it| it == b"nokaslr");
        let release = text("proc/sys/kernel/osrelease").filter(|_| is_in_place)?;
        let release = std::str::from_utf8(release.trim_ascii()).ok()?;
        open(&format!("boot/System.map-{release}")).and_then(Self::read)
    }
}

/// The function that a line tells of.
fn function(line: &[u8]) -> Option<(u64, Arc<str>)> {
    let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let (address, kind, name) = (words.next()?, words.next()?, words.next()?);
    let address = u64::from_str_radix(std::str::from_utf8(address).ok()?, 16).ok()?;
    let is_function = address != 0 && matches!(kind, b"t" | b"T" | b"w" | b"W");
    is_function.then(|| (address, String::from_utf8_lossy(name).into()))
}

#[cfg(test)]
mod tests;
