//! A small cache in front of all tables, where an address is found without a search.

use super::simple::Simple;

/// How many addresses it holds: what fits into a processor's second cache.
const ENTRIES: usize = 1 << ENTRY_BITS;
const ENTRY_BITS: u32 = 15;

/// Where the walk goes from an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Jump {
    /// By a simple rule.
    Simple(Simple),
    /// Nowhere: the frame is the outermost.
    Outermost,
    /// By another rule, or none.
    Other,
}

/// Jumps by image and byte of its file.
#[derive(Debug)]
pub(crate) struct Front {
    /// The key and its jump; key zero: none.
    entries: Box<[(u64, Jump)]>,
}

impl Default for Front {
    fn default() -> Self {
        Self { entries: vec![(0, Jump::Other); ENTRIES].into() }
    }
}

impl Front {
    #[inline]
    pub(crate) fn get(&self, key: u64) -> Option<Jump> {
        let &(found, jump) = self.entries.get(slot(key))?;
        (found == key).then_some(jump)
    }

    pub(crate) fn insert(&mut self, key: u64, jump: Jump) {
        if let Some(entry) = self.entries.get_mut(slot(key)) {
            *entry = (key, jump);
        }
    }

    /// The key of a byte of an image's file; `None` for offsets that no file has.
    #[inline]
    pub(crate) fn key(image: u32, file_offset: u64) -> Option<u64> {
        let image = u64::from(image).saturating_add(1);
        (file_offset < 1 << 40 && image < 1 << 24).then_some(image << 40 | file_offset)
    }
}

#[inline]
fn slot(key: u64) -> usize {
    // Multiplicative hashing (Knuth, The Art of Computer Programming, 6.4): the high bits are the best mixed.
    let hash = key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - ENTRY_BITS);
    usize::try_from(hash).unwrap_or_default()
}
