//! Names out of string sections that may be large: only what is asked for is read.

use crate::allowance::{Allowance, Grant};
use crate::section::Section;
use std::sync::Arc;

/// Names are cut here: longer ones are damage, or nobody reads them.
pub(crate) const MAX_NAME: usize = 64 << 10;

/// What a name takes in memory beside its text, with a place in a table.
pub(crate) const NAME_BYTES: u64 = 64;

/// How much is read at first.
const FIRST_READ: usize = 512;

/// How far apart two names may be to be read at once.
const WINDOW: usize = 32 << 10;

/// Reads NUL-ended names of one section; fast in ascending order.
#[derive(Debug)]
pub(crate) struct Strings {
    section: Section,
    window: Vec<u8>,
    /// Offset of the window, and how much of it is filled.
    start: u64,
    filled: usize,
    read_len: usize,
    /// The memory of the names that were given.
    given: Option<Grant>,
}

impl Strings {
    pub(crate) fn new(section: Section) -> Self {
        let given = section.allowance().map(Allowance::empty_grant);
        Self { section, window: vec![0; WINDOW], start: 0, filled: 0, read_len: FIRST_READ, given }
    }

    /// Returns the name at an offset; `None` if it is outside the section, or empty, or costs too much.
    pub(crate) fn get(&mut self, offset: u64) -> Option<Arc<str>> {
        let name = self.bytes(offset)?;
        let text: Option<Arc<str>> =
            (!name.is_empty()).then(|| String::from_utf8_lossy(name).into());
        let text = text?;
        self.given.as_mut()?.grow(text.len() as u64 + NAME_BYTES)?;
        Some(text)
    }

    fn bytes(&mut self, offset: u64) -> Option<&[u8]> {
        if let Some(at) = self.position(offset)
            && let Some(len) = self.window[at..self.filled].iter().position(|&byte| byte == 0)
        {
            return Some(&self.window[at..at + len]);
        }
        // Names near to each other are worth reading in one go.
        let end = self.start + self.filled as u64;
        let is_near = offset >= self.start && offset - self.start < WINDOW as u64 * 2;
        self.read_len = match is_near && self.filled > 0 && offset <= end + WINDOW as u64 {
            true => (self.read_len * 2).min(WINDOW),
            false => (self.read_len / 2).max(FIRST_READ),
        };
        let mut wanted = self.read_len;
        loop {
            if self.window.len() < wanted {
                self.window.resize(wanted, 0);
            }
            self.filled = self.section.read_into(offset, &mut self.window[..wanted])?;
            self.start = offset;
            let filled = &self.window[..self.filled];
            if let Some(len) = filled.iter().position(|&byte| byte == 0) {
                return Some(&self.window[..len]);
            }
            if self.filled < wanted || wanted > MAX_NAME {
                return Some(&self.window[..self.filled.min(MAX_NAME)]);
            }
            wanted = (wanted * 4).min(MAX_NAME + 1);
        }
    }

    fn position(&self, offset: u64) -> Option<usize> {
        let at = usize::try_from(offset.checked_sub(self.start)?).ok()?;
        (at < self.filled).then_some(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::allowance::Limits;
    use crate::input::Input;

    fn strings_of(bytes: Vec<u8>) -> Strings {
        let allowance = Allowance::new(1 << 30, &Limits::new(1 << 40, 0, Arc::default()));
        allowance.earn(bytes.len() as u64);
        let grant = allowance.grant(bytes.len() as u64).unwrap();
        Strings::new(Input::memory(bytes, grant).into())
    }

    #[test]
    fn names_are_found_in_any_order() {
        let mut bytes = vec![0];
        let names: Vec<String> =
            (0..5000).map(|at| format!("name_{at}_{}", "x".repeat(at % 900))).collect();
        let mut offsets = Vec::new();
        for name in &names {
            offsets.push(bytes.len() as u64);
            bytes.extend_from_slice(name.as_bytes());
            bytes.push(0);
        }
        let mut strings = strings_of(bytes);
        let order = (0..names.len())
            .chain((0..names.len()).rev())
            .chain((0..300).map(|at| at * 7919 % 5000));
        for at in order {
            assert_eq!(strings.get(offsets[at]).as_deref(), Some(names[at].as_str()));
        }
        assert_eq!(strings.get(0), None);
        assert_eq!(strings.get(1 << 40), None);
    }

    #[test]
    fn names_without_an_end_are_cut() {
        let mut strings = strings_of(vec![b'a'; 3 << 20]);
        assert_eq!(strings.get(5).unwrap().len(), MAX_NAME);
        let mut strings = strings_of(b"abc".to_vec());
        assert_eq!(strings.get(1).as_deref(), Some("bc"));
    }
}
