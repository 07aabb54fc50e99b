//! How many processes had each pid.

use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// Pids counted together.
const PAGE: usize = 256;

/// Counts a byte a pid, by pages of neighbours: a machine gives pids out in turn, and a long recording of short processes sees
/// them all (up to 2^22, proc_sys_kernel(5), `pid_max`).
#[derive(Debug, Default)]
pub(crate) struct Generations {
    pages: BTreeMap<usize, Box<[u8; PAGE]>>,
    /// What a byte cannot count.
    more: FxHashMap<u32, u32>,
}

impl Generations {
    /// Counts a process that begins, and returns how many had its pid before.
    pub(crate) fn begin(&mut self, pid: u32) -> u32 {
        let at = pid as usize;
        let page = self.pages.entry(at / PAGE).or_insert_with(|| Box::new([0; PAGE]));
        let count = &mut page[at % PAGE];
        if *count < u8::MAX {
            *count += 1;
            return u32::from(*count - 1);
        }
        let more = self.more.entry(pid).or_default();
        let before = u32::from(u8::MAX).saturating_add(*more);
        *more = more.saturating_add(1);
        before
    }
}

#[cfg(test)]
mod tests {
    use super::Generations;

    #[test]
    fn each_pid_is_counted_for_itself_and_beyond_a_byte() {
        let mut generations = Generations::default();
        for expected in 0..1000 {
            assert_eq!(generations.begin(7), expected);
        }
        assert_eq!(generations.begin(8), 0);
        assert_eq!(generations.begin(u32::MAX), 0);
        assert_eq!(generations.begin(7), 1000);
    }
}
