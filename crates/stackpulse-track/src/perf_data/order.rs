//! Records of several rings, brought into the order of their times.

use std::collections::VecDeque;

/// Holds records back until nothing earlier can come.
///
/// A recording is written in rounds: in each, every ring is read once. What a round showed is complete when the next one is,
/// so after a round everything up to the latest time of the round before is released.
#[derive(Debug)]
pub(super) struct Rounds<T> {
    /// Time and record. A sort puts each round's in order; it is fast on runs that are sorted already, as each ring's is.
    waiting: Vec<(u64, T)>,
    ready: VecDeque<(u64, T)>,
    previous_latest: u64,
    latest: u64,
}

impl<T> Rounds<T> {
    pub(super) fn new() -> Self {
        Self { waiting: Vec::new(), ready: VecDeque::new(), previous_latest: 0, latest: 0 }
    }

    /// Takes a record in; those of the same time stay in the order they came in.
    pub(super) fn push(&mut self, time_ns: u64, record: T) {
        self.latest = self.latest.max(time_ns);
        self.waiting.push((time_ns, record));
    }

    /// Says that every ring has been read once more.
    pub(super) fn end_round(&mut self) {
        let bound = self.previous_latest;
        self.previous_latest = self.latest;
        self.release(bound);
    }

    /// Says that nothing more will come.
    pub(super) fn end(&mut self) {
        self.release(u64::MAX);
    }

    pub(super) fn pop(&mut self) -> Option<(u64, T)> {
        self.ready.pop_front()
    }

    fn release(&mut self, bound_ns: u64) {
        self.waiting.sort_by_key(|&(time_ns, _)| time_ns);
        let end = self.waiting.partition_point(|&(time_ns, _)| time_ns <= bound_ns);
        self.ready.extend(self.waiting.drain(..end));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drained(rounds: &mut Rounds<char>) -> String {
        std::iter::from_fn(|| rounds.pop()).map(|(_, name)| name).collect()
    }

    #[test]
    fn a_record_waits_for_the_round_after_its_own() {
        let mut rounds = Rounds::new();
        rounds.push(10, 'a');
        rounds.push(30, 'c');
        rounds.end_round();
        assert_eq!(drained(&mut rounds), "");
        // Another ring shows late what came before.
        rounds.push(20, 'b');
        rounds.push(40, 'd');
        rounds.end_round();
        assert_eq!(drained(&mut rounds), "abc");
        rounds.end();
        assert_eq!(drained(&mut rounds), "d");
    }

    #[test]
    fn records_of_one_time_keep_their_order() {
        let mut rounds = Rounds::new();
        for name in ['x', 'y', 'z'] {
            rounds.push(5, name);
        }
        rounds.end();
        assert_eq!(drained(&mut rounds), "xyz");
    }
}
