//! A section's bytes: read piece by piece where they lie, or all in memory.

use crate::allowance::Allowance;
use crate::input::{Input, Piece};
use crate::unpack::{Packed, Packing};
use std::ops::Deref;
use std::sync::Arc;

/// A section, or nothing: then its length is zero.
#[derive(Clone, Debug, Default)]
pub(crate) struct Section(Option<Extent>);

#[derive(Clone, Debug)]
struct Extent {
    input: Arc<Input>,
    offset: u64,
    len: u64,
}

/// A section that is in memory as a whole.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table(Section);

impl Section {
    /// A part of an input; `None` if it is not all there.
    pub(crate) fn new(input: Arc<Input>, offset: u64, len: u64) -> Option<Self> {
        let is_there = offset.checked_add(len)? <= input.len();
        is_there.then_some(Self(Some(Extent { input, offset, len })))
    }

    pub(crate) fn len(&self) -> u64 {
        self.0.as_ref().map_or(0, |extent| extent.len)
    }

    /// What reading it may cost; `None`: nothing.
    pub(crate) fn allowance(&self) -> Option<&Allowance> {
        self.0.as_ref().map(|extent| extent.input.allowance())
    }

    /// Returns exactly these bytes.
    pub(crate) fn read(&self, offset: u64, len: u64) -> Option<Piece<'_>> {
        match &self.0 {
            Some(extent) => extent.read(offset, len),
            None => (offset == 0 && len == 0).then_some(Piece::Borrowed(&[])),
        }
    }

    /// Returns up to `len` bytes from `offset`, fewer at the section's end.
    pub(crate) fn read_up_to(&self, offset: u64, len: u64) -> Option<Piece<'_>> {
        self.read(offset, len.min(self.len().checked_sub(offset)?))
    }

    /// Reads it all.
    pub(crate) fn all(&self) -> Option<Piece<'_>> {
        self.read(0, self.len())
    }

    /// A part of it.
    pub(crate) fn part(&self, offset: u64, len: u64) -> Option<Self> {
        let end = offset.checked_add(len)?;
        let Some(extent) = self.0.as_ref().filter(|extent| end <= extent.len) else {
            return (end == 0).then(Self::default);
        };
        let offset = extent.offset.checked_add(offset)?;
        Some(Self(Some(Extent { input: Arc::clone(&extent.input), offset, len })))
    }

    /// Fills as much of `out` as there is from `offset`.
    pub(crate) fn read_into(&self, offset: u64, out: &mut [u8]) -> Option<usize> {
        let left = usize::try_from(self.len().checked_sub(offset)?).unwrap_or(usize::MAX);
        let wanted = out.len().min(left);
        let Some(extent) = &self.0 else { return Some(0) };
        let offset = extent.offset.checked_add(offset)?;
        extent.input.read_into(offset, &mut out[..wanted]).ok()
    }

    /// Its bytes as they are packed.
    pub(crate) fn packed(&self, packing: Packing) -> Option<Packed> {
        let Extent { input, offset, len } = self.0.clone()?;
        Some(Packed { input, offset, len, packing })
    }
}

impl Extent {
    fn read(&self, offset: u64, len: u64) -> Option<Piece<'_>> {
        if offset.checked_add(len)? > self.len {
            return None;
        }
        self.input.read(self.offset.checked_add(offset)?, len)
    }
}

impl From<Input> for Section {
    fn from(input: Input) -> Self {
        let len = input.len();
        Self(Some(Extent { input: Arc::new(input), offset: 0, len }))
    }
}

impl Table {
    /// Brings a section into memory, if it is not there already; `None` if it costs too much.
    pub(crate) fn of(section: Section) -> Option<Self> {
        match &section.0 {
            Some(Extent { input, offset, len }) if input.in_memory().is_none() => {
                Some(Self(input.load(*offset, *len)?.into()))
            }
            _ => Some(Self(section)),
        }
    }
}

impl Deref for Table {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        let bytes = self.0.0.as_ref().and_then(|Extent { input, offset, len }| {
            let start = usize::try_from(*offset).ok()?;
            input.in_memory()?.get(start..start.checked_add(usize::try_from(*len).ok()?)?)
        });
        bytes.unwrap_or_default()
    }
}
