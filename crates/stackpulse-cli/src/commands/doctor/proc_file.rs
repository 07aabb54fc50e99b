//! Small files of `/proc` and `/sys`, read within bounds.

use std::fs::File;
use std::io::Read;

/// More than any of these files needs.
const MAX_BYTES: u64 = 64 << 10;

/// The beginning of a file as text.
pub(super) fn text(path: &str) -> Option<String> {
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(MAX_BYTES).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// A file that holds one number.
pub(super) fn number(path: &str) -> Option<i64> {
    text(path)?.trim().parse().ok()
}

/// A field of `/proc/PID/status`.
pub(super) fn status(pid: &str, field: &str) -> Option<String> {
    let status = text(&format!("/proc/{pid}/status"))?;
    let value = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'))?;
    Some(value.trim().to_owned())
}

/// Soft and hard limit of this process; `None` is unlimited.
pub(super) fn limit(name: &str) -> Option<(Option<u64>, Option<u64>)> {
    let limits = text("/proc/self/limits")?;
    let line = limits.lines().find_map(|line| line.strip_prefix(name))?;
    let mut words = line.split_whitespace().map(|word| word.parse().ok());
    Some((words.next()?, words.next()?))
}

/// Whether this process has a capability, by its number.
pub(super) fn has_capability(number: u32) -> bool {
    let set = status("self", "CapEff").and_then(|set| u64::from_str_radix(&set, 16).ok());
    set.unwrap_or_default() >> number & 1 == 1
}
