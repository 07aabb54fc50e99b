// A Rust program with an inlined call. usage: nested SECONDS
use std::hint::black_box;
use std::time::{Duration, Instant};

mod work {
    #[inline(always)]
    pub fn inlined_sum(values: &[u64]) -> u64 {
        values.iter().fold(0, |sum, value| sum.wrapping_mul(31).wrapping_add(*value))
    }
}

#[inline(never)]
fn rust_leaf(values: &[u64]) -> u64 {
    work::inlined_sum(black_box(values))
}

#[inline(never)]
fn rust_outer(end: Instant) {
    let values: Vec<u64> = (0..4096).collect();
    while Instant::now() < end {
        black_box(rust_leaf(&values));
    }
}

fn main() {
    let seconds = std::env::args().nth(1).and_then(|word| word.parse().ok()).unwrap_or(1.0);
    rust_outer(Instant::now() + Duration::from_secs_f64(seconds));
}
