//! What naming may cost: memory that is given back, and steps that are not; and whether somebody said stop.

use crate::lookup::Reason;
use crate::work::Work;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// Steps that any image may take, however small: some tens of milliseconds.
const BASE_STEPS: u64 = 1 << 26;

/// Memory that any image may take, however little there is: for its headers, and some names.
const BASE_MEMORY: u64 = 256 << 10;

/// Steps that a byte on disk is worth: each is read, unpacked and looked at a few times.
const STEPS_PER_BYTE: u64 = 16;

/// Memory is taken in portions of this where more is likely to follow.
const PORTION: u64 = 64 << 10;

/// What all images of one call share.
#[derive(Debug)]
pub(crate) struct Limits {
    /// Steps that are left.
    steps: AtomicU64,
    /// Bytes that answers may still take.
    answers: AtomicU64,
    stop: Arc<AtomicBool>,
}

/// What naming one image may cost. All of its threads share it, and everything that is read for it.
#[derive(Clone, Debug)]
pub(crate) struct Allowance(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    memory: AtomicU64,
    steps: AtomicU64,
    /// How often memory was refused.
    refusals: AtomicU64,
    is_out_of_steps: AtomicBool,
    limits: Arc<Limits>,
}

/// Memory that may be used until this is dropped.
#[derive(Debug)]
pub(crate) struct Grant {
    allowance: Allowance,
    /// Bytes taken, and how many of them are not used yet.
    bytes: u64,
    spare: u64,
}

impl Limits {
    /// Steps and bytes of answers for one call, which ends early when `stop` is set.
    pub(crate) fn new(steps: u64, answer_bytes: u64, stop: Arc<AtomicBool>) -> Arc<Self> {
        Arc::new(Self { steps: steps.into(), answers: answer_bytes.into(), stop })
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Relaxed)
    }
}

impl Allowance {
    /// So much memory, beside what every image may take, and the steps of an image of which nothing has been read yet.
    pub(crate) fn new(memory_bytes: u64, limits: &Arc<Limits>) -> Self {
        Self(Arc::new(Shared {
            memory: memory_bytes.saturating_add(BASE_MEMORY).into(),
            steps: BASE_STEPS.into(),
            refusals: 0.into(),
            is_out_of_steps: false.into(),
            limits: Arc::clone(limits),
        }))
    }

    /// Adds the steps that a file of so many bytes on disk is worth.
    pub(crate) fn earn(&self, disk_bytes: u64) {
        let more = disk_bytes.saturating_mul(STEPS_PER_BYTE);
        let add = |steps: u64| Some(steps.saturating_add(more));
        // Never fails: the function always has an answer.
        let _ = self.0.steps.fetch_update(Relaxed, Relaxed, add);
    }

    /// Takes memory; `None` if there is not as much.
    pub(crate) fn grant(&self, bytes: u64) -> Option<Grant> {
        if take(&self.0.memory, bytes).is_none() {
            self.0.refusals.fetch_add(1, Relaxed);
            return None;
        }
        Some(Grant { allowance: self.clone(), bytes, spare: 0 })
    }

    /// Memory that is asked for in small pieces.
    pub(crate) fn empty_grant(&self) -> Grant {
        Grant { allowance: self.clone(), bytes: 0, spare: 0 }
    }

    /// Takes steps; `None` if there are not as many left, or somebody said stop.
    pub(crate) fn take(&self, steps: u64) -> Option<()> {
        let taken = self.try_take(steps);
        if taken.is_none() {
            self.0.is_out_of_steps.store(true, Relaxed);
        }
        taken
    }

    /// The same, where it does not matter if there are not as many.
    pub(crate) fn try_take(&self, steps: u64) -> Option<()> {
        let limits = &self.0.limits;
        if limits.is_stopped() {
            return None;
        }
        take(&self.0.steps, steps)?;
        take(&limits.steps, steps)
    }

    /// Gives steps back that were not used.
    pub(crate) fn give_back(&self, steps: u64) {
        self.0.steps.fetch_add(steps, Relaxed);
        self.0.limits.steps.fetch_add(steps, Relaxed);
    }

    /// Takes room for answers, for good; `None` if there is not as much.
    pub(crate) fn keep(&self, bytes: u64) -> Option<()> {
        take(&self.0.limits.answers, bytes)
    }

    /// The steps of one thread.
    pub(crate) fn work(&self) -> Work {
        Work::new(self.clone())
    }

    pub(crate) fn memory_left(&self) -> u64 {
        self.0.memory.load(Relaxed)
    }

    /// How often memory was refused.
    pub(crate) fn refusals(&self) -> u64 {
        self.0.refusals.load(Relaxed)
    }

    /// Forgets refusals after the first so many: what they were for is tried again.
    pub(crate) fn forget_refusals(&self, after: u64) {
        self.0.refusals.store(after, Relaxed);
    }

    /// Why not all was read, if something was refused.
    pub(crate) fn shortage(&self) -> Option<Reason> {
        let is_short = self.refusals() > 0 || self.0.is_out_of_steps.load(Relaxed);
        match self.0.limits.is_stopped() {
            true => Some(Reason::Stopped),
            false => is_short.then_some(Reason::OverBudget),
        }
    }
}

impl Grant {
    /// Takes some bytes more; `None` if there are not as many.
    #[inline]
    pub(crate) fn grow(&mut self, bytes: u64) -> Option<()> {
        match self.spare.checked_sub(bytes) {
            Some(spare) => self.spare = spare,
            None => self.refill(bytes)?,
        }
        Some(())
    }

    pub(crate) fn allowance(&self) -> &Allowance {
        &self.allowance
    }

    #[cold]
    fn refill(&mut self, bytes: u64) -> Option<()> {
        let missing = bytes - self.spare;
        let shared = &self.allowance.0;
        let Some(taken) = [missing.max(PORTION), missing]
            .into_iter()
            .find(|&wanted| take(&shared.memory, wanted).is_some())
        else {
            shared.refusals.fetch_add(1, Relaxed);
            return None;
        };
        self.bytes += taken;
        self.spare = taken - missing;
        Some(())
    }
}

impl Drop for Grant {
    fn drop(&mut self) {
        self.allowance.0.memory.fetch_add(self.bytes, Relaxed);
    }
}

/// Takes off as much as asked for, or nothing. Nothing else is ordered by these counters.
fn take(from: &AtomicU64, amount: u64) -> Option<()> {
    from.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(amount)).ok().map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowance(memory: u64, steps: u64) -> Allowance {
        Allowance::new(memory, &Limits::new(steps, 0, Arc::default()))
    }

    #[test]
    fn memory_comes_back_and_steps_do_not() {
        let allowance = allowance(100, 10);
        let most = BASE_MEMORY + 100;
        let grant = allowance.grant(most - 40).unwrap();
        assert!(allowance.grant(60).is_none());
        drop(grant);
        assert!(allowance.grant(most).is_some());
        assert_eq!((allowance.take(8), allowance.take(8)), (Some(()), None));
        assert_eq!(allowance.shortage(), Some(Reason::OverBudget));
    }

    #[test]
    fn a_grant_grows_by_portions_and_at_last_by_what_there_is() {
        let allowance = allowance(PORTION + 10, 0);
        let _base = allowance.grant(BASE_MEMORY).unwrap();
        let mut grant = allowance.empty_grant();
        assert!(grant.grow(1).is_some() && grant.grow(PORTION - 1).is_some());
        assert_eq!(allowance.memory_left(), 10);
        assert!(grant.grow(10).is_some() && grant.grow(1).is_none());
        assert_eq!(allowance.refusals(), 1);
        drop(grant);
        assert_eq!(allowance.memory_left(), PORTION + 10);
    }

    #[test]
    fn images_share_the_steps_of_a_call() {
        let limits = Limits::new(BASE_STEPS + 5, 7, Arc::default());
        let (one, other) = (Allowance::new(0, &limits), Allowance::new(0, &limits));
        assert_eq!((one.take(BASE_STEPS), one.take(1)), (Some(()), None));
        assert_eq!((other.take(5), other.take(1)), (Some(()), None));
        assert_eq!((one.keep(7), other.keep(1)), (Some(()), None));
    }

    #[test]
    fn nothing_is_done_after_a_stop() {
        let limits = Limits::new(100, 0, Arc::default());
        let allowance = Allowance::new(0, &limits);
        let work = allowance.work();
        assert_eq!((work.take(1), allowance.shortage()), (Some(()), None));
        limits.stop.store(true, Relaxed);
        assert_eq!(allowance.take(1), None);
        assert_eq!(allowance.shortage(), Some(Reason::Stopped));
    }
}
