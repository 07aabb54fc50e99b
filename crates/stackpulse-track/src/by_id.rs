//! Things found by a number that the kernel gave them.

use rustc_hash::FxHashMap;
use std::ops::{Index, IndexMut};

/// Where a thing is kept, until it is removed: found once, it is reached without a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot(usize);

/// Things by pid or tid.
#[derive(Debug)]
pub(crate) struct ById<T> {
    slots: Vec<Option<T>>,
    free: Vec<usize>,
    index: FxHashMap<u32, usize>,
}

impl<T> Default for ById<T> {
    fn default() -> Self {
        Self { slots: Vec::new(), free: Vec::new(), index: FxHashMap::default() }
    }
}

impl<T> ById<T> {
    /// Returns where the thing of this number is.
    #[inline]
    pub(crate) fn find(&self, id: u32) -> Option<Slot> {
        self.index.get(&id).copied().map(Slot)
    }

    /// Adds a thing, or replaces the one of the same number.
    pub(crate) fn insert(&mut self, id: u32, thing: T) -> Slot {
        let known = self.index.get(&id).copied();
        let at = known.or_else(|| self.free.pop()).unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        });
        self.slots[at] = Some(thing);
        self.index.insert(id, at);
        Slot(at)
    }

    /// Returns where the thing of this number is, and makes it if there is none.
    #[inline]
    pub(crate) fn find_or_insert(&mut self, id: u32, make: impl FnOnce() -> T) -> Slot {
        match self.find(id) {
            Some(slot) => slot,
            None => self.insert(id, make()),
        }
    }

    /// Takes a thing out.
    pub(crate) fn remove(&mut self, id: u32) -> Option<T> {
        let at = self.index.remove(&id)?;
        self.free.push(at);
        self.slots.get_mut(at)?.take()
    }

    /// Returns all things, in no order.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.slots.iter_mut().flatten()
    }
}

impl<T> Index<Slot> for ById<T> {
    type Output = T;

    #[inline]
    fn index(&self, slot: Slot) -> &T {
        self.slots[slot.0].as_ref().expect("a slot is used no longer than its thing is there")
    }
}

impl<T> IndexMut<Slot> for ById<T> {
    #[inline]
    fn index_mut(&mut self, slot: Slot) -> &mut T {
        self.slots[slot.0].as_mut().expect("a slot is used no longer than its thing is there")
    }
}

#[cfg(test)]
mod tests {
    use super::ById;

    #[test]
    fn numbers_that_are_used_again_find_the_new_thing_in_little_room() {
        let mut things = ById::default();
        let first = things.insert(7, 'a');
        assert_eq!(things[first], 'a');
        assert_eq!(things.remove(7), Some('a'));
        assert_eq!(things.find(7), None);
        for round in 0..100 {
            let slot = things.insert(round, 'b');
            assert_eq!(things.find(round), Some(slot));
            things.remove(round);
        }
        assert_eq!(things.slots.len(), 1);
        let slot = things.find_or_insert(3, || 'c');
        assert_eq!(things.find_or_insert(3, || 'd'), slot);
        assert_eq!(things.insert(3, 'e'), slot);
        assert_eq!(things.iter_mut().map(|it| *it).collect::<String>(), "e");
    }
}
