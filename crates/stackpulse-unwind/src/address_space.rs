//! What a process's executable addresses show.

/// An image that an [`Unwinder`](crate::Unwinder) knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ImageIndex(pub(crate) u32);

impl ImageIndex {
    /// Returns the number: images are counted from zero in the order they were made known.
    #[must_use]
    pub fn number(self) -> u32 {
        self.0
    }
}

/// What a range of addresses shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// A file, or the vDSO.
    Image {
        /// Which image.
        image: ImageIndex,
        /// The byte of its file that the range begins with.
        file_offset: u64,
    },
    /// Memory of no file: code made at run time.
    Anonymous,
}

/// A range of executable addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// First address.
    pub start_avma: u64,
    /// First address after it.
    pub end_avma: u64,
    /// What is there.
    pub shown: Shown,
}

impl Region {
    /// Returns whether an address lies in it.
    #[inline]
    #[must_use]
    pub fn contains(&self, avma: u64) -> bool {
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
pub struct AddressSpace {
    /// Sorted by start; ranges never overlap.
    regions: Vec<Region>,
    version: u64,
}

impl AddressSpace {
    /// Returns the region that covers an address.
    #[inline]
    #[must_use]
    pub fn find(&self, avma: u64) -> Option<&Region> {
        let after = self.regions.partition_point(|region| region.start_avma <= avma);
        self.regions.get(after.checked_sub(1)?).filter(|region| avma < region.end_avma)
    }

    /// Returns the regions that lie in a range, if only in part, in the order of their addresses.
    #[must_use]
    pub fn within(&self, start_avma: u64, end_avma: u64) -> &[Region] {
        let first = self.regions.partition_point(|region| region.end_avma <= start_avma);
        let last = self.regions.partition_point(|region| region.start_avma < end_avma);
        self.regions.get(first..last).unwrap_or_default()
    }

    /// Returns a number that is another one after each change.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Maps a region over whatever was there: what it overlaps is cut off.
    pub fn map(&mut self, region: Region) {
        self.version += 1;
        if region.start_avma >= region.end_avma {
            return;
        }
        self.cut_out(region.start_avma, region.end_avma);
        let at = self.regions.partition_point(|other| other.start_avma < region.start_avma);
        self.regions.insert(at, region);
    }

    /// Takes a range of addresses away from whatever is there.
    fn cut_out(&mut self, start_avma: u64, end_avma: u64) {
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

    /// Takes what shows an image for memory of no file: the image turned out to be code made at run time.
    pub fn make_anonymous(&mut self, image: ImageIndex) {
        self.version += 1;
        for region in &mut self.regions {
            if matches!(region.shown, Shown::Image { image: shown, .. } if shown == image) {
                region.shown = Shown::Anonymous;
            }
        }
    }

    /// Takes these regions, sorted or not, for all there is.
    pub fn replace(&mut self, regions: impl IntoIterator<Item = Region>) {
        let mut new = Self { regions: Vec::new(), version: self.version };
        regions.into_iter().for_each(|region| new.map(region));
        new.version = self.version + 1;
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
