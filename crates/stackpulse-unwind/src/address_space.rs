//! What a process's executable addresses show.

/// Index of an image in the engine's cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ImageIndex(pub(crate) u32);

/// What a range of addresses shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shown {
    /// A file, or the vDSO: `file_offset` is that of the range's start.
    Image { image: ImageIndex, file_offset: u64 },
    /// Memory of no file: code made at run time.
    Anonymous,
}

/// A range of executable addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Region {
    pub(crate) start_avma: u64,
    pub(crate) end_avma: u64,
    pub(crate) shown: Shown,
}

impl Region {
    pub(crate) fn contains(&self, avma: u64) -> bool {
        (self.start_avma..self.end_avma).contains(&avma)
    }

    /// The part from `start_avma` to `end_avma`, which must lie within.
    fn part(&self, start_avma: u64, end_avma: u64) -> Self {
        let shown = match self.shown {
            Shown::Image { image, file_offset } => {
                Shown::Image { image, file_offset: file_offset + (start_avma - self.start_avma) }
            }
            Shown::Anonymous => Shown::Anonymous,
        };
        Self { start_avma, end_avma, shown }
    }
}

/// The executable mappings of a process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct AddressSpace {
    /// Sorted by start; ranges never overlap.
    regions: Vec<Region>,
}

impl AddressSpace {
    /// Returns the region that covers an address.
    #[inline]
    pub(crate) fn find(&self, avma: u64) -> Option<&Region> {
        let after = self.regions.partition_point(|region| region.start_avma <= avma);
        self.regions.get(after.checked_sub(1)?).filter(|region| avma < region.end_avma)
    }

    /// Maps a region over whatever was there: what it overlaps is cut off.
    pub(crate) fn map(&mut self, region: Region) {
        if region.start_avma >= region.end_avma {
            return;
        }
        self.unmap(region.start_avma, region.end_avma);
        let at = self.regions.partition_point(|other| other.start_avma < region.start_avma);
        self.regions.insert(at, region);
    }

    /// Takes a range of addresses away from whatever is there.
    pub(crate) fn unmap(&mut self, start_avma: u64, end_avma: u64) {
        let first = self.regions.partition_point(|region| region.end_avma <= start_avma);
        let last = self.regions.partition_point(|region| region.start_avma < end_avma);
        if first >= last {
            return;
        }
        let mut kept = Vec::new();
        let (head, tail) = (self.regions[first], self.regions[last - 1]);
        if head.start_avma < start_avma {
            kept.push(head.part(head.start_avma, start_avma));
        }
        if tail.end_avma > end_avma {
            kept.push(tail.part(end_avma, tail.end_avma));
        }
        self.regions.splice(first..last, kept);
    }

    /// Takes these regions, sorted or not, for all there is.
    pub(crate) fn replace(&mut self, regions: impl IntoIterator<Item = Region>) {
        let mut new = Self::default();
        regions.into_iter().for_each(|region| new.map(region));
        *self = new;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(start: u64, end: u64, image: u32, file_offset: u64) -> Region {
        let shown = Shown::Image { image: ImageIndex(image), file_offset };
        Region { start_avma: start, end_avma: end, shown }
    }

    #[test]
    fn a_mapping_over_the_middle_of_another_splits_it() {
        let mut space = AddressSpace::default();
        space.map(image(0x1000, 0x5000, 1, 0x10000));
        space.map(image(0x2000, 0x3000, 2, 0));
        let expected = [
            image(0x1000, 0x2000, 1, 0x10000),
            image(0x2000, 0x3000, 2, 0),
            image(0x3000, 0x5000, 1, 0x12000),
        ];
        assert_eq!(space.regions, expected);
        assert_eq!(space.find(0x2fff), Some(&expected[1]));
        assert_eq!(space.find(0x3000), Some(&expected[2]));
        assert_eq!(space.find(0x5000), None);
    }

    #[test]
    fn a_mapping_over_several_retires_them() {
        let mut space = AddressSpace::default();
        for at in 0..4 {
            space.map(image(at * 0x1000, (at + 1) * 0x1000, u32::try_from(at).unwrap(), 0));
        }
        space.map(image(0x800, 0x2800, 9, 0));
        let expected = [
            image(0, 0x800, 0, 0),
            image(0x800, 0x2800, 9, 0),
            image(0x2800, 0x3000, 2, 0x800),
            image(0x3000, 0x4000, 3, 0),
        ];
        assert_eq!(space.regions, expected);
    }
}
