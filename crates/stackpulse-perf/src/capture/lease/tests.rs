//! The protocol under every interleaving, and its bookkeeping.

use super::{Flag, Ledger};
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, Ordering};
use std::sync::atomic::AtomicBool as StdBool;

/// The model checker's atomic, with the orderings of the real one.
#[derive(Debug, Default)]
struct Modelled(AtomicBool);

impl Flag for Modelled {
    fn is_set(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn clear(&self) {
        self.0.store(false, Ordering::Release);
    }
}

/// Ring memory, one cell a record: the model checker fails when a write may meet a read.
fn memory(records: usize) -> Vec<Arc<UnsafeCell<()>>> {
    (0..records).map(|_| Arc::new(UnsafeCell::new(()))).collect()
}

fn read(record: &UnsafeCell<()>) {
    record.with(|_| ());
}

fn overwrite(record: &UnsafeCell<()>) {
    record.with_mut(|_| ());
}

#[test]
fn the_kernel_never_writes_where_a_lease_is_read() {
    loom::model(|| {
        let memory = memory(2);
        let mut ledger = Ledger::<Modelled>::new(2);
        let holds = [1, 2].map(|end| ledger.hold(end).expect("two slots"));
        let readers: Vec<_> = memory
            .iter()
            .zip(holds)
            .map(|(record, hold)| {
                let record = Arc::clone(record);
                loom::thread::spawn(move || {
                    read(&record);
                    drop(hold);
                })
            })
            .collect();
        // The capture thread, in the middle of it all: whatever it is told is free, the kernel overwrites.
        let mut overwritten = 0;
        for _ in 0..2 {
            if let Some(end) = ledger.reclaim() {
                let end = usize::try_from(end).unwrap();
                memory[overwritten..end].iter().for_each(|record| overwrite(record));
                overwritten = end;
            }
        }
        for reader in readers {
            reader.join().unwrap();
        }
        // All are back now, and seen to be.
        assert!(overwritten == 2 || ledger.reclaim() == Some(2));
    });
}

#[test]
fn a_slot_used_again_does_not_free_its_first_record_early() {
    loom::model(|| {
        let memory = memory(1);
        let mut ledger = Ledger::<Modelled>::new(1);
        let first = ledger.hold(1).expect("one slot");
        let record = Arc::clone(&memory[0]);
        let reader = loom::thread::spawn(move || {
            read(&record);
            drop(first);
        });
        // The slot can be had again only once its hold is back.
        let second = ledger.hold(2);
        if let Some(end) = ledger.reclaim() {
            assert!(end == 1 && second.is_none(), "the second record is held");
            overwrite(&memory[0]);
        }
        reader.join().unwrap();
        drop(second);
    });
}

#[test]
fn the_tail_moves_over_returned_leases_in_the_order_of_the_ring() {
    let mut ledger = Ledger::<StdBool>::new(8);
    let a = ledger.hold(10);
    ledger.pass(12);
    let b = ledger.hold(20);
    let c = ledger.hold(30);
    assert_eq!(ledger.reclaim(), None);
    drop(c);
    assert_eq!(ledger.reclaim(), None, "earlier ones are out");
    drop(a);
    assert_eq!(ledger.reclaim(), Some(12));
    drop(b);
    assert_eq!(ledger.reclaim(), Some(30));
    assert_eq!(ledger.reclaim(), None);
}

#[test]
fn no_more_leases_go_out_than_there_are_slots() {
    let mut ledger = Ledger::<StdBool>::new(2);
    let first = ledger.hold(1);
    let second = ledger.hold(2);
    assert!(ledger.hold(3).is_none());
    drop(first);
    assert!(ledger.hold(3).is_some());
    drop(second);
    assert!(Ledger::<StdBool>::new(0).hold(1).is_none());
}
