//! Sizes for pages of every kind.

use super::{Budget, MAX_RING_BYTES, RingCounts};
use crate::capture::options::CaptureOptions;
use crate::error::OpenError;
use crate::layout::SampleLayout;
use crate::regs::Arch;

fn plan(
    stack_size_bytes: u32,
    ring_buffer_stacks: u32,
    page: usize,
    lockable_bytes: Option<u64>,
) -> Result<Budget, OpenError> {
    let options = CaptureOptions { stack_size_bytes, ring_buffer_stacks, ..Default::default() };
    let layout = SampleLayout::for_recording(Arch::Aarch64, stack_size_bytes, true);
    Budget::within(
        &options,
        &layout,
        page,
        RingCounts { lifecycle: 2, samples: 2, are_of_cpus: false },
        lockable_bytes,
    )
}

#[test]
fn rings_hold_the_stacks_asked_for_and_at_least_one_largest_sample() {
    for page in [4 << 10, 16 << 10, 64 << 10] {
        for (stack, stacks) in [(0, 1), (0, 32), (8, 1), (32_768, 1), (32_768, 32), (65_528, 100)] {
            let budget = plan(stack, stacks, page, None).unwrap();
            let bytes = budget.sample_ring_bytes();
            let largest =
                SampleLayout::for_recording(Arch::Aarch64, stack, true).largest_sample_bytes(stack);
            assert!(bytes >= largest && bytes >= stack as usize * stacks as usize);
            assert!(budget.sample_pages.is_power_of_two() && bytes.is_multiple_of(page));
            assert!(budget.lifecycle_pages.is_power_of_two());
            assert!(!budget.is_reduced);
        }
    }
}

#[test]
fn rings_are_halved_until_they_may_be_locked_but_not_below_a_sample() {
    for page in [4 << 10, 16 << 10, 64 << 10] {
        for lockable in [0u64, 1 << 20, 3 << 20, 10 << 20, 1 << 30] {
            let budget = plan(32_768, 256, page, Some(lockable)).unwrap();
            let bytes = budget.sample_ring_bytes();
            assert!(bytes > 32_768 + 8 * 33, "page {page}, {lockable}");
            let least = plan(32_768, 1, page, Some(0)).unwrap();
            assert!(budget.bytes() <= lockable || budget.sample_pages == least.sample_pages);
            assert_eq!(budget.is_reduced, bytes < 8 << 20);
            assert_eq!(budget.lockable_bytes, Some(lockable));
        }
    }
}

#[test]
fn more_than_the_limits_is_refused_with_both_numbers() {
    for page in [4 << 10, 64 << 10] {
        let error = plan(65_528, u32::MAX, page, None).unwrap_err();
        let OpenError::RingTooLarge { wanted_bytes, limit_bytes } = error else {
            panic!("{error}")
        };
        assert!(wanted_bytes > limit_bytes && limit_bytes == MAX_RING_BYTES);
    }
}
