//! Facts of the machine, for the spool.

use stackpulse_spool::Host;
use std::fs;

/// The facts, owned.
#[derive(Debug, Default)]
pub(crate) struct HostFacts {
    kernel_release: String,
    boot_id: String,
    kernel_build_id: Vec<u8>,
    cpu_model: String,
    online_cpus: u32,
}

impl HostFacts {
    /// Reads them; what cannot be read stays empty.
    pub(crate) fn read() -> Self {
        let text = |path: &str| fs::read_to_string(path).unwrap_or_default().trim().to_owned();
        let cpus = text("/proc/cpuinfo");
        let model = cpus.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
        Self {
            kernel_release: text("/proc/sys/kernel/osrelease"),
            boot_id: text("/proc/sys/kernel/random/boot_id"),
            kernel_build_id: fs::read("/sys/kernel/notes")
                .ok()
                .and_then(|notes| gnu_build_id(&notes))
                .unwrap_or_default(),
            cpu_model: model.map(|(_, model)| model.to_owned()).unwrap_or_default(),
            online_cpus: std::thread::available_parallelism()
                .map_or(0, |cpus| u32::try_from(cpus.get()).unwrap_or(u32::MAX)),
        }
    }

    pub(crate) fn as_record(&self) -> Host<'_> {
        Host {
            architecture: std::env::consts::ARCH.as_bytes(),
            kernel_release: self.kernel_release.as_bytes(),
            boot_id: self.boot_id.as_bytes(),
            kernel_build_id: &self.kernel_build_id,
            cpu_model: self.cpu_model.as_bytes(),
            online_cpus: self.online_cpus,
        }
    }
}

/// Finds the note of type 3 and owner `GNU` (elf(5), Notes).
fn gnu_build_id(notes: &[u8]) -> Option<Vec<u8>> {
    let mut rest = notes;
    loop {
        let word =
            |at: usize| Some(u32::from_ne_bytes(rest.get(at..at + 4)?.try_into().ok()?) as usize);
        let (name_len, description_len, kind) = (word(0)?, word(4)?, word(8)?);
        let name = rest.get(12..12usize.checked_add(name_len)?)?;
        let start = 12 + name_len.next_multiple_of(4);
        let description = rest.get(start..start.checked_add(description_len)?)?;
        if kind == 3 && name == b"GNU\0" {
            return Some(description.to_vec());
        }
        rest = rest.get(start + description_len.next_multiple_of(4)..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_build_id_is_found_behind_other_notes() {
        let note = |kind: u32, name: &[u8], description: &[u8]| {
            let mut note = Vec::new();
            for number in [
                u32::try_from(name.len()).unwrap(),
                u32::try_from(description.len()).unwrap(),
                kind,
            ] {
                note.extend_from_slice(&number.to_ne_bytes());
            }
            for part in [name, description] {
                note.extend_from_slice(part);
                note.resize(note.len().next_multiple_of(4), 0);
            }
            note
        };
        let notes = [note(1, b"Xen\0", b"abc"), note(3, b"GNU\0", &[7; 20])].concat();
        assert_eq!(gnu_build_id(&notes), Some(vec![7; 20]));
        assert_eq!(gnu_build_id(&notes[..10]), None);
        assert_eq!(gnu_build_id(b""), None);
    }
}
