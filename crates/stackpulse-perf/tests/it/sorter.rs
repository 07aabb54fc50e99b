//! What the sorter promises, for any events.

use proptest::prelude::*;
use stackpulse_perf::Sorter;

/// What was pushed: its ring, its place in the order of arrival, and the round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Arrival {
    ring: usize,
    number: usize,
    round: usize,
}

/// Pushes rounds of (ring, time), takes out what may be taken after each round, and the rest at the end. Checks what holds for
/// any input, and returns each release with the round it came after.
fn sort(rings: usize, rounds: &[Vec<(usize, u64)>]) -> Vec<(u64, Arrival, usize)> {
    let mut sorter = Sorter::new(rings);
    let mut pushed = Vec::new();
    let mut released = Vec::new();
    // The latest time seen in the rounds before the one that is read.
    let (mut latest_before, mut latest) = (None, None);
    for (round, events) in rounds.iter().enumerate() {
        for &(ring, time) in events {
            let arrival = Arrival { ring, number: pushed.len(), round };
            sorter.push(ring, time, arrival);
            pushed.push((time, arrival));
            latest = latest.max(Some(time));
        }
        sorter.end_round();
        while let Some((time, arrival)) = sorter.pop() {
            assert!(
                Some(time) <= latest_before,
                "every ring was read after a time as late was seen"
            );
            released.push((time, arrival, round));
        }
        latest_before = latest;
        assert_eq!(sorter.len(), pushed.len() - released.len());
    }
    sorter.end();
    while let Some((time, arrival)) = sorter.pop() {
        released.push((time, arrival, rounds.len()));
    }
    assert!(sorter.is_empty());
    let mut all: Vec<_> = released.iter().map(|&(time, arrival, _)| (time, arrival)).collect();
    all.sort_unstable_by_key(|&(_, arrival)| arrival.number);
    assert_eq!(all, pushed, "a permutation");
    for pair in released.windows(2) {
        let [(time, first, _), (next_time, second, _)] = pair else {
            unreachable!("windows of two")
        };
        if time == next_time && first.ring == second.ring {
            assert!(first.number < second.number, "ties keep the order of arrival");
        }
    }
    released
}

proptest! {
    #[test]
    fn any_input_comes_out_once_ties_in_order_and_nothing_early(
        rounds in proptest::collection::vec(proptest::collection::vec((0usize..5, 0u64..40), 0..12), 0..10),
    ) {
        sort(5, &rounds);
    }

    /// Rings as the kernel fills them: a record shows at most `lag` after its time, and rings are read one after the other.
    #[test]
    fn what_rings_show_in_time_comes_out_in_order(
        events in proptest::collection::vec((0usize..4, 0u64..2000, 0u64..=50), 0..200),
    ) {
        const ROUND: u64 = 100;
        let mut rounds = Vec::new();
        let mut shown = vec![false; events.len()];
        for round in 1..=21 {
            let mut read = Vec::new();
            for ring in 0..4usize {
                // Reading begins with the round, and takes ten a ring: the last is read well before the next round.
                let now = round * ROUND + ring as u64 * 10;
                let visible = events.iter().zip(&mut shown).filter(|((at, time, lag), shown)| {
                    *at == ring && !**shown && time + lag <= now
                });
                let mut visible: Vec<_> = visible.map(|((_, time, lag), shown)| { *shown = true; (*time, *lag) }).collect();
                // Records lie in a ring in the order they were written, which is nearly that of their times.
                visible.sort_by_key(|(time, lag)| time + lag);
                read.extend(visible.into_iter().map(|(time, _)| (ring, time)));
            }
            rounds.push(read);
        }
        let released = sort(4, &rounds);
        prop_assert_eq!(released.len(), events.len());
        prop_assert!(released.windows(2).all(|pair| pair[0].0 <= pair[1].0), "{:?}", released);
    }
}

#[test]
fn an_event_waits_for_a_round_in_which_nothing_may_come_before_it() {
    let released = sort(2, &[vec![(0, 10), (0, 30)], vec![(0, 40), (1, 20)], vec![], vec![]]);
    let rounds: Vec<_> = released.iter().map(|&(time, _, round)| (time, round)).collect();
    assert_eq!(rounds, [(10, 1), (20, 1), (30, 1), (40, 2)]);
}
