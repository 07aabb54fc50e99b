//! The arithmetic of positions, on memory that this test writes as the kernel would.

use super::{BadRing, DATA_HEAD, DATA_TAIL, Found, Ring};
use proptest::prelude::*;
use std::fs::File;
use std::os::unix::fs::FileExt;

const PAGE: usize = 4096;

/// The kernel's side of a ring: writes records if the reader's tail leaves room.
pub(in super::super) struct Kernel {
    file: File,
    page: u64,
    data_len: u64,
    head: u64,
}

impl Kernel {
    /// A ring whose positions begin at `start`.
    pub(in super::super) fn new(pages: u64, start: u64) -> (Self, Ring) {
        Self::with_pages_of(PAGE, pages, start)
    }

    /// The same with pages of another size.
    fn with_pages_of(page: usize, pages: u64, start: u64) -> (Self, Ring) {
        let file = tempfile::tempfile().unwrap();
        let data_len = pages * page as u64;
        file.set_len(page as u64 + data_len).unwrap();
        let mut kernel = Self { file, page: page as u64, data_len, head: start };
        kernel.store(DATA_TAIL, start);
        kernel.show_head(start);
        let ring = Ring::map(&kernel.file, page, usize::try_from(pages).unwrap(), 64).unwrap();
        (kernel, ring)
    }

    fn store(&self, offset: usize, value: u64) {
        self.file.write_all_at(&value.to_ne_bytes(), offset as u64).unwrap();
    }

    fn tail(&self) -> u64 {
        let mut bytes = [0; 8];
        self.file.read_exact_at(&mut bytes, DATA_TAIL as u64).unwrap();
        u64::from_ne_bytes(bytes)
    }

    /// Writes a record of `len` bytes, all but its header being `fill`; `false` if there is no room.
    fn write(&mut self, len: u16, fill: u8) -> bool {
        let mut record = vec![fill; usize::from(len)];
        record[..8].copy_from_slice(&header(len));
        self.write_record(&record)
    }

    /// Writes a record; `false` if there is no room.
    pub(in super::super) fn write_record(&mut self, record: &[u8]) -> bool {
        let len = record.len() as u64;
        if self.head.wrapping_sub(self.tail()) + len > self.data_len {
            return false;
        }
        for (at, byte) in (self.head..).zip(record) {
            let place = self.page + at % self.data_len;
            self.file.write_all_at(&[*byte], place).unwrap();
        }
        self.show_head(self.head + len);
        true
    }

    pub(in super::super) fn show_head(&mut self, head: u64) {
        self.head = head;
        self.store(DATA_HEAD, head);
    }

    pub(in super::super) fn head(&self) -> u64 {
        self.head
    }
}

fn header(len: u16) -> [u8; 8] {
    let [low, high] = len.to_ne_bytes();
    [9, 0, 0, 0, 0, 0, low, high]
}

/// Reads everything there is; each record's length and fill.
fn read_all(ring: &mut Ring) -> Vec<(usize, u8)> {
    let head = ring.head();
    let mut seen = Vec::new();
    while let Some(found) = ring.find(head).unwrap() {
        let (bytes, end) = match found {
            Found::Whole { offset, len, end } => (ring.whole(offset, len).to_vec(), end),
            Found::Wrapped { offset, first_len, rest_len, end } => {
                (ring.pieces(offset, first_len, rest_len).concat(), end)
            }
        };
        let fill = bytes.get(8).copied().unwrap_or_default();
        assert!(bytes[8..].iter().all(|&byte| byte == fill), "one record, whole");
        seen.push((bytes.len(), fill));
        ring.pass(end);
    }
    ring.reclaim();
    seen
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_record_is_read_once_and_whole_wherever_the_ring_begins(
        start in prop_oneof![Just(0u64), Just((1 << 32) - 64), Just((1 << 63) - 4096), any::<u32>().prop_map(u64::from)],
        lens in proptest::collection::vec(1u16..200, 1..120),
        reads in proptest::collection::vec(any::<bool>(), 120),
    ) {
        let (mut kernel, mut ring) = Kernel::new(1, start & !7);
        let mut written = Vec::new();
        let mut seen = Vec::new();
        for ((len, read), fill) in lens.into_iter().zip(reads).zip((0..=255u8).cycle()) {
            let len = len * 8;
            if !kernel.write(len, fill) {
                seen.extend(read_all(&mut ring));
                prop_assert!(kernel.write(len, fill), "a ring that was read has room");
            }
            written.push((usize::from(len), if len > 8 { fill } else { 0 }));
            if read {
                seen.extend(read_all(&mut ring));
            }
        }
        seen.extend(read_all(&mut ring));
        prop_assert_eq!(seen, written);
        prop_assert_eq!(kernel.tail(), kernel.head);
    }

    #[test]
    fn no_head_and_no_size_makes_the_reader_panic_or_stay(head in any::<u64>(), size in any::<u16>(), at in 0u64..512) {
        let (mut kernel, mut ring) = Kernel::new(1, at * 8);
        kernel.file.write_all_at(&header(size), PAGE as u64 + at * 8).unwrap();
        kernel.show_head(head);
        let mut finds = 0;
        while let Ok(Some(found)) = ring.find(head) {
            let (Found::Whole { end, .. } | Found::Wrapped { end, .. }) = found;
            ring.pass(end);
            finds += 1;
            prop_assert!(finds <= PAGE / 8);
        }
        ring.reclaim();
        prop_assert!(ring.find(head & !7).unwrap_or(None).is_none(), "everything was passed over");
    }
}

#[test]
fn nonsense_is_refused_and_passed_over() {
    let check = |size: u16, head: u64| {
        let (mut kernel, mut ring) = Kernel::new(1, 4096);
        kernel.file.write_all_at(&header(size), PAGE as u64).unwrap();
        kernel.show_head(head);
        assert_eq!(ring.find(head).err(), Some(BadRing), "size {size}, head {head}");
        ring.reclaim();
        // What comes after is read again.
        kernel.show_head(head & !7);
        assert!(kernel.write(16, 5));
        assert_eq!(read_all(&mut ring), [(16, 5)]);
    };
    check(0, 4096 + 64);
    check(4, 4096 + 64);
    check(12, 4096 + 64);
    check(72, 4096 + 64);
    check(16, 4096 + 4096 + 8);
    check(16, 4096 - 64);
    check(16, 4096 + 61);
}

#[test]
fn a_wrap_within_a_record_and_at_its_end_is_read_whole() {
    for first in [4096 - 8, 4096 - 16, 4096 - 64] {
        let (mut kernel, mut ring) = Kernel::new(1, 0);
        assert!(kernel.write(first, 1));
        assert_eq!(read_all(&mut ring), [(usize::from(first), 1)]);
        assert!(kernel.write(64, 2));
        assert_eq!(read_all(&mut ring), [(64, 2)]);
    }
}

#[test]
fn leases_keep_the_kernel_out_until_they_are_dropped() {
    let (mut kernel, mut ring) = Kernel::new(1, 0);
    assert!(kernel.write(1024, 1));
    let head = ring.head();
    let Some(Found::Whole { offset, len, end }) = ring.find(head).unwrap() else { panic!("whole") };
    let lease = ring.lease(offset, len, end).unwrap();
    ring.reclaim();
    assert_eq!(kernel.tail(), 0);
    assert!(kernel.write(3072, 2));
    assert!(!kernel.write(8, 3), "the leased record is in the way");
    assert_eq!(lease.bytes()[8..], [1; 1016]);
    assert_eq!(read_all(&mut ring), [(3072, 2)]);
    assert!(ring.is_crowded());
    std::thread::spawn(move || drop(lease)).join().unwrap();
    ring.reclaim();
    assert_eq!(kernel.tail(), 4096);
    assert!(!ring.is_crowded());
}

#[test]
fn pages_of_16_and_64_kib_are_read_as_those_of_4() {
    for page in [4 << 10, 16 << 10, 64 << 10] {
        let (mut kernel, mut ring) = Kernel::with_pages_of(page, 2, 0);
        let mut fills = (1..=255u8).cycle();
        for round in 0..5 {
            let mut written = Vec::new();
            while let Some(fill) = fills.next().filter(|&fill| kernel.write(5000, fill)) {
                written.push((5000, fill));
            }
            assert_eq!(read_all(&mut ring), written, "page {page}, round {round}");
        }
    }
}
