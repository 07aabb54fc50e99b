//! Closing the events of threads that have ended: a long recording that attaches to many must not keep them all.

use super::topology::Topology;
use std::io;

/// How often to look for them, in nanoseconds.
const EVERY_NS: u64 = 1_000_000_000;

/// When to look for them next.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Retirement {
    next_ns: u64,
}

impl Retirement {
    /// Closes events that will tell nothing more, if it is time. What inherited them has ended as well, so nothing is cut
    /// short. The rings must be read afterwards: asking takes their wake-ups.
    pub(crate) fn look(&mut self, topology: &mut Topology, now_ns: u64) -> io::Result<()> {
        // The first events keep the rings and stay.
        if topology.len() < 2 || now_ns < self.next_ns {
            return Ok(());
        }
        self.next_ns = now_ns.saturating_add(EVERY_NS);
        // A thread has events on every CPU, in the same places: all must be over.
        let mut dead = vec![true; topology.len()];
        for cpu in topology.cpus.iter().filter(|cpu| cpu.len() > 0) {
            dead.iter_mut().zip(cpu.dead()?).for_each(|(dead, here)| *dead &= here);
        }
        if !dead.contains(&true) {
            return Ok(());
        }
        let counts_lost = topology.attributes.granted.counts_lost;
        topology.cpus.iter_mut().try_for_each(|cpu| cpu.retire(&dead, counts_lost))
    }
}
