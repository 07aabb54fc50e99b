//! Perf maps: `/tmp/perf-PID.map`, where runtimes write the names of the code they make
//! (`tools/perf/Documentation/jit-interface.txt` in the kernel's sources).

use crate::source::GeneratedCode;
use std::collections::HashMap;
use std::fs::{self, File, Metadata, OpenOptions};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

/// `O_NONBLOCK` and `O_NOFOLLOW` of open(2), on x86-64.
#[cfg(target_arch = "x86_64")]
const OPEN_FLAGS: i32 = 0o4000 | 0o400_000;
/// The same on AArch64.
#[cfg(not(target_arch = "x86_64"))]
const OPEN_FLAGS: i32 = 0o4000 | 0o100_000;

/// So much is read at a time, and of one process in all.
const MAX_READ: usize = 4 << 20;
const MAX_BYTES: u64 = 256 << 20;

/// More names of one process are not read at once.
const MAX_CODES: usize = 1 << 20;

/// Longer names are cut.
const MAX_NAME: usize = 4096;

/// How far the map of each process has been read.
#[derive(Debug, Default)]
pub(super) struct PerfMaps {
    offsets: HashMap<u32, u64>,
}

impl PerfMaps {
    /// Returns the names that were added to a process's map since the last call.
    pub(super) fn read_on(&mut self, pid: u32, restarted: bool) -> Vec<GeneratedCode> {
        if restarted {
            self.offsets.remove(&pid);
        }
        // Few processes have one, and only those are remembered.
        let Some(file) = open_of_process(pid) else { return Vec::new() };
        self.read_piece(pid, &file)
    }

    fn read_piece(&mut self, pid: u32, file: &File) -> Vec<GeneratedCode> {
        let offset = self.offsets.entry(pid).or_default();
        // A file that shrank was written anew.
        if file.metadata().is_ok_and(|metadata| metadata.len() < *offset) {
            *offset = 0;
        }
        if *offset >= MAX_BYTES {
            return Vec::new();
        }
        let mut bytes = vec![0; MAX_READ];
        let Ok(read) = file.read_at(&mut bytes, *offset) else { return Vec::new() };
        bytes.truncate(read);
        // The last line may still be being written.
        let whole = match bytes.iter().rposition(|&byte| byte == b'\n') {
            Some(end) => end + 1,
            None if read == MAX_READ => read,
            None => 0,
        };
        *offset += whole as u64;
        parse(&bytes[..whole]).collect()
    }
}

fn parse(text: &[u8]) -> impl Iterator<Item = GeneratedCode> + '_ {
    text.split(|&byte| byte == b'\n').filter_map(|line| {
        let mut words = line.splitn(3, |&byte| byte == b' ');
        let mut hex = || {
            let word = std::str::from_utf8(words.next()?).ok()?;
            u64::from_str_radix(word.strip_prefix("0x").unwrap_or(word), 16).ok()
        };
        let (start_avma, size) = (hex()?, hex()?);
        let name = words.next()?.trim_ascii();
        let name = name.get(..name.len().min(MAX_NAME))?;
        (!name.is_empty() && size > 0).then(|| GeneratedCode {
            start_avma,
            size,
            name: name.into(),
        })
    })
}

/// Reads a map that nobody writes any more.
pub(crate) fn read_whole(path: &Path) -> Vec<GeneratedCode> {
    let mut codes = Vec::new();
    if let Some((file, _)) = open(path) {
        let mut maps = PerfMaps::default();
        loop {
            let before = maps.offsets.get(&0).copied();
            codes.extend(maps.read_piece(0, &file));
            if maps.offsets.get(&0).copied() == before || codes.len() > MAX_CODES {
                break;
            }
        }
    }
    codes
}

/// Opens a regular file that is no symbolic link.
fn open(path: &Path) -> Option<(File, Metadata)> {
    let file = OpenOptions::new().read(true).custom_flags(OPEN_FLAGS).open(path).ok()?;
    let metadata = file.metadata().ok()?;
    metadata.is_file().then_some((file, metadata))
}

/// Opens a process's map: below its own root, by the pid it has in its own namespace, a regular file of its own user.
fn open_of_process(pid: u32) -> Option<File> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let inner =
        status.lines().find_map(|line| line.strip_prefix("NSpid:"))?.split_whitespace().last()?;
    let (file, metadata) = open(Path::new(&format!("/proc/{pid}/root/tmp/perf-{inner}.map")))?;
    let owner = fs::metadata(format!("/proc/{pid}")).ok()?.uid();
    (metadata.uid() == owner).then_some(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_start_size_and_name() {
        let text = b"7f00 20 py::main:/app/a b.py\n0x8000 10 hot\nzz 1 bad\n9000 0 empty\n9000 5\n";
        let codes: Vec<_> = parse(text).collect();
        assert_eq!(codes.len(), 2);
        assert_eq!((codes[0].start_avma, codes[0].size), (0x7f00, 0x20));
        assert_eq!(&*codes[0].name, b"py::main:/app/a b.py");
        assert_eq!(&*codes[1].name, b"hot");
    }
}
