//! Records that no kernel should write: each is counted in its place, and those after it are read.

use super::super::ring::tests::Kernel;
use super::{Exits, Followed, Pool, Reader, Ring, Sorter, Source, Statistics, Which};
use crate::event::{Event, EventKind};
use crate::layout::SampleLayout;
use crate::regs::Arch;

const LAYOUT: SampleLayout = SampleLayout {
    fields: crate::field::IP | crate::field::TID | crate::field::TIME | crate::field::STACK_USER,
    user_regs_mask: 0,
    arch: Arch::X86_64,
    id_all: true,
    read_format: 0,
    branch_format: 0,
};

fn record(kind: u32, words: &[u64]) -> Vec<u8> {
    let size = u16::try_from(8 + words.len() * 8).unwrap();
    let mut bytes = [&kind.to_ne_bytes()[..], &[0, 0], &size.to_ne_bytes()].concat();
    bytes.extend(words.iter().flat_map(|word| word.to_ne_bytes()));
    bytes
}

/// A sample at a time, with that many words of stack.
fn sample(time_ns: u64, stack_words: u64) -> Vec<u8> {
    let mut words = vec![0x1000, 7 | 8 << 32, time_ns, stack_words * 8];
    words.extend((0..stack_words).map(|at| at * time_ns));
    words.push(stack_words * 8);
    record(9, &words)
}

/// Reads a ring once and again, and returns what it told, in order.
fn read(ring: &mut Ring, leases: bool) -> (Vec<Event>, Statistics) {
    let mut sorter = Sorter::new(2);
    let mut statistics = Statistics::default();
    let mut reader = Reader {
        sorter: &mut sorter,
        pool: &mut Pool::new(1 << 20),
        statistics: &mut statistics,
        exits: &mut Exits::default(),
        followed: &mut Followed::default(),
        layouts: [LAYOUT; 2],
        follows_children: true,
        queue: 0,
        source: Source { cpu: 3, which: Which::Samples, leases },
    };
    reader.read_ring(ring);
    reader.read_ring(ring);
    sorter.end();
    (std::iter::from_fn(|| sorter.pop()).map(|(_, event)| event).collect(), statistics)
}

fn times(events: &[Event]) -> Vec<u64> {
    events.iter().map(|event| event.time_ns).collect()
}

#[test]
fn records_of_no_interest_and_broken_ones_are_counted_and_passed_over() {
    let (mut kernel, mut ring) = Kernel::new(1, 0);
    let mut early = sample(20, 4);
    early.truncate(8 + 3 * 8);
    let len = u16::try_from(early.len()).unwrap();
    early[6..8].copy_from_slice(&len.to_ne_bytes());
    let mut longer_stack = sample(30, 4);
    longer_stack[8 + 3 * 8..][..8].copy_from_slice(&u64::MAX.to_ne_bytes());
    for record in [
        sample(10, 4),
        record(77, &[1, 2, 3]),
        early,
        longer_stack,
        record(3, &[]),
        // An exit in the ring of samples, and nothing but a header that ends with no time.
        record(4, &[1, 2, 7 | 8 << 32, 40]),
        record(5, &[]),
        sample(50, 4),
    ] {
        assert!(kernel.write_record(&record));
    }
    let (events, statistics) = read(&mut ring, true);
    assert_eq!(times(&events), [10, 40, 50]);
    let expected = Statistics {
        samples: 2,
        other_records: 1,
        bad_records: 3,
        without_time: 1,
        ..Statistics::default()
    };
    assert_eq!(statistics, expected);
}

#[test]
fn a_ring_whose_head_makes_no_sense_is_counted_and_read_on() {
    let (mut kernel, mut ring) = Kernel::new(1, 4096);
    assert!(kernel.write_record(&sample(10, 4)));
    let sound = kernel.head();
    // Behind the tail, further ahead than the ring is long, and between records.
    for head in [8, sound + 8192, sound + 3] {
        kernel.show_head(head);
        let (events, statistics) = read(&mut ring, true);
        assert!(events.iter().all(|event| event.time_ns == 10), "head {head}");
        // It is looked at twice, and one that lies between records makes no sense the second time either.
        assert_eq!(statistics.bad_rings, 1 + u64::from(head % 8 != 0), "head {head}");
        kernel.show_head(head & !7);
        assert!(kernel.write_record(&sample(20, 4)));
        let (events, statistics) = read(&mut ring, true);
        assert_eq!((times(&events), statistics.bad_rings), (vec![20], 0), "head {head}");
    }
}

#[test]
fn a_record_whose_size_makes_no_sense_costs_what_the_ring_holds_and_no_more() {
    for size in [0, 4, 12, 16_384] {
        let (mut kernel, mut ring) = Kernel::new(1, 0);
        assert!(kernel.write_record(&sample(10, 4)));
        let mut bad = sample(20, 4);
        bad[6..8].copy_from_slice(&u16::to_ne_bytes(size));
        assert!(kernel.write_record(&bad));
        assert!(kernel.write_record(&sample(30, 4)));
        let (events, statistics) = read(&mut ring, true);
        assert_eq!((times(&events), statistics.bad_rings), (vec![10], 1), "size {size}");
        drop(events);
        assert!(kernel.write_record(&sample(40, 4)));
        assert_eq!(times(&read(&mut ring, true).0), [40], "size {size}");
    }
}

#[test]
fn bytes_are_the_same_from_the_ring_from_a_copy_and_around_the_end() {
    for leases in [true, false] {
        let (mut kernel, mut ring) = Kernel::new(1, 0);
        let mut seen = 0;
        for time_ns in 1..200u64 {
            assert!(kernel.write_record(&sample(time_ns, 50)));
            let (events, statistics) = read(&mut ring, leases);
            let [Event { kind: EventKind::Sample(sample), cpu: Some(3), .. }] = &events[..] else {
                panic!("one sample: {events:?}");
            };
            let words: Vec<u64> = sample
                .user_stack()
                .chunks_exact(8)
                .map(|word| u64::from_ne_bytes(word.try_into().unwrap()))
                .collect();
            assert_eq!(words, (0..50).map(|at| at * time_ns).collect::<Vec<_>>());
            seen += statistics.copied_samples;
        }
        // One in nine or so lies around the end of a ring that holds nine.
        assert!(if leases { (10..40).contains(&seen) } else { seen == 199 }, "{seen} copies");
    }
}
