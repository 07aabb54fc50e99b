//! Events of many rings, in the order of their times.
//!
//! Each ring is nearly sorted, but rings are read one after the other, so an early event may be read late:
//!
//! ```text
//! round 1   read ring A: 10, 30     (20 is being written to B, not yet visible)
//!           read ring B: -          30 must wait: B may still show something earlier
//! round 2   read ring A: 40
//!           read ring B: 20         every ring was read again since 30 arrived
//! now       release 10, 20, 30      40 waits for round 3
//! ```
//!
//! So after a round everything up to the latest time of the round *before* is released.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Merges nearly sorted queues by the two-round rule.
///
/// Call [`push`](Self::push) for what each ring showed, [`end_round`](Self::end_round) when every ring has been read, then
/// [`pop`](Self::pop) until it returns `None`.
#[derive(Debug)]
pub struct Sorter<K, V> {
    queues: Vec<VecDeque<(K, V)>>,
    /// The key at the front of each queue that is not empty, and the queue. Rebuilt with each round.
    fronts: BinaryHeap<Reverse<(K, usize)>>,
    previous_latest: Option<K>,
    current_latest: Option<K>,
    /// What may be released: keys up to this.
    bound: Option<K>,
    len: usize,
}

impl<K: Copy + Ord, V> Sorter<K, V> {
    /// Makes one for that many rings.
    #[must_use]
    pub fn new(rings: usize) -> Self {
        Self {
            queues: std::iter::repeat_with(VecDeque::new).take(rings).collect(),
            fronts: BinaryHeap::new(),
            previous_latest: None,
            current_latest: None,
            bound: None,
            len: 0,
        }
    }

    /// Takes an event that `ring` showed. Events of one ring with the same key stay in order of arrival.
    ///
    /// # Panics
    ///
    /// If there is no such ring.
    pub fn push(&mut self, ring: usize, key: K, value: V) {
        let queue = &mut self.queues[ring];
        // Nearly sorted: the right place is at or near the end.
        let after = queue.iter().rev().take_while(|(other, _)| *other > key).count();
        if after == 0 {
            queue.push_back((key, value));
        } else {
            queue.insert(queue.len() - after, (key, value));
        }
        self.len += 1;
        self.current_latest = self.current_latest.max(Some(key));
    }

    /// Says that every ring has been read once more.
    pub fn end_round(&mut self) {
        self.bound = self.bound.max(self.previous_latest);
        self.previous_latest = self.current_latest;
        self.rebuild();
    }

    /// Says that nothing more will come: everything may be released.
    pub fn end(&mut self) {
        self.bound = self.bound.max(self.current_latest);
        self.rebuild();
    }

    /// Returns the earliest event that may be released.
    pub fn pop(&mut self) -> Option<(K, V)> {
        let &Reverse((key, ring)) = self.fronts.peek()?;
        if Some(key) > self.bound {
            return None;
        }
        self.fronts.pop();
        let queue = &mut self.queues[ring];
        let event = queue.pop_front()?;
        if let Some(&(next, _)) = queue.front() {
            self.fronts.push(Reverse((next, ring)));
        }
        self.len -= 1;
        Some(event)
    }

    /// Returns the events that wait, in no order, to be changed in place.
    pub fn waiting_mut(&mut self) -> impl Iterator<Item = &mut V> {
        self.queues.iter_mut().flatten().map(|(_, value)| value)
    }

    /// Returns how many events wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether no event waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    fn rebuild(&mut self) {
        self.fronts.clear();
        let fronts = self.queues.iter().enumerate();
        self.fronts
            .extend(fronts.filter_map(|(ring, queue)| Some(Reverse((queue.front()?.0, ring)))));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn released(sorter: &mut Sorter<u64, &'static str>) -> Vec<(u64, &'static str)> {
        std::iter::from_fn(|| sorter.pop()).collect()
    }

    #[test]
    fn the_timeline_of_the_module_page_is_kept() {
        let mut sorter = Sorter::new(2);
        sorter.push(0, 10, "a");
        sorter.push(0, 30, "c");
        sorter.end_round();
        assert_eq!(released(&mut sorter), []);
        sorter.push(0, 40, "d");
        sorter.push(1, 20, "b");
        sorter.end_round();
        assert_eq!(released(&mut sorter), [(10, "a"), (20, "b"), (30, "c")]);
        sorter.end_round();
        assert_eq!(released(&mut sorter), [(40, "d")]);
        assert!(sorter.is_empty());
    }

    #[test]
    fn equal_times_of_a_ring_stay_in_order_of_arrival() {
        let mut sorter = Sorter::new(1);
        for (key, value) in [(5, "first"), (7, "later"), (5, "second"), (5, "third")] {
            sorter.push(0, key, value);
        }
        sorter.end();
        assert_eq!(
            released(&mut sorter),
            [(5, "first"), (5, "second"), (5, "third"), (7, "later")]
        );
    }

    #[test]
    fn an_idle_round_releases_what_waited() {
        let mut sorter = Sorter::new(3);
        sorter.push(2, 9, "x");
        sorter.end_round();
        assert_eq!(sorter.pop(), None);
        sorter.end_round();
        assert_eq!(sorter.pop(), Some((9, "x")));
    }
}
