//! Samples in order of time, and what else happened meanwhile.

use crate::stacks::StackKey;
use rustc_hash::FxHashMap;

/// When each sample was taken. Distinct stacks are listed once, so that a form converts each of them once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timeline {
    /// Distinct stacks.
    pub stacks: Vec<StackKey>,
    /// Samples, in the order of the spool, which is that of time.
    pub samples: Vec<TimedSample>,
    /// Losses, gaps and pauses, in the order of the spool.
    pub marks: Vec<Mark>,
    /// The recording's first moment, nanoseconds of `CLOCK_MONOTONIC`; zero if the spool does not tell.
    pub start_ns: u64,
    /// The same moment, nanoseconds since 1970-01-01 UTC; zero if the spool does not tell.
    pub start_realtime_ns: u64,
    /// Its last moment: its end, or the last that was recorded.
    pub end_ns: u64,
    /// The event sampled, such as `cpu-clock`; empty if the spool does not tell.
    pub event: String,
    /// Samples per second and CPU asked for; zero if the spool does not tell.
    pub rate_hz: u32,
    pub(crate) index: FxHashMap<StackKey, u32>,
}

/// One sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimedSample {
    /// When: nanoseconds of `CLOCK_MONOTONIC`.
    pub time_ns: u64,
    /// How much it stands for, in the event's unit: nanoseconds of CPU time for `cpu-clock`.
    pub weight: u64,
    /// Index into [`Timeline::stacks`].
    pub stack: u32,
    /// On which CPU.
    pub cpu: u32,
}

/// Something other than a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// From when, nanoseconds of `CLOCK_MONOTONIC`.
    pub start_ns: u64,
    /// Until when; the same for what is told as a moment.
    pub end_ns: u64,
    /// What it was.
    pub kind: MarkKind,
}

/// What a mark stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkKind {
    /// The kernel dropped so many events, on this CPU where that is known.
    Lost {
        /// How many.
        events: u64,
        /// The CPU.
        cpu: Option<u32>,
    },
    /// Lifecycle events may be missing.
    Gap,
    /// The kernel slowed sampling, on this CPU where that is known.
    Throttled(Option<u32>),
    /// Sampling was paused by request.
    Paused,
}

impl MarkKind {
    /// Says what it was in a few words.
    #[must_use]
    pub fn label(self) -> String {
        let on = |cpu: Option<u32>| cpu.map(|cpu| format!(" on CPU {cpu}")).unwrap_or_default();
        match self {
            Self::Lost { events: 1, cpu } => format!("1 event lost{}", on(cpu)),
            Self::Lost { events, cpu } => format!("{events} events lost{}", on(cpu)),
            Self::Gap => "gap after loss".to_owned(),
            Self::Throttled(cpu) => format!("throttled{}", on(cpu)),
            Self::Paused => "paused".to_owned(),
        }
    }
}

impl Timeline {
    /// Whether weights are nanoseconds of CPU time.
    #[must_use]
    pub fn is_cpu_time(&self) -> bool {
        matches!(self.event.as_str(), "cpu-clock" | "task-clock")
    }

    /// The time that one sample stands for when nothing else tells, in nanoseconds.
    #[must_use]
    pub fn interval_ns(&self) -> u64 {
        1_000_000_000 / u64::from(self.rate_hz.max(1))
    }

    /// Returns a moment as nanoseconds after the recording's start.
    #[must_use]
    pub fn since_start_ns(&self, time_ns: u64) -> u64 {
        time_ns.saturating_sub(self.start_ns)
    }

    /// Returns for each thread the indices of its samples, in order.
    #[must_use]
    pub fn by_thread(&self, threads: usize) -> Vec<Vec<u32>> {
        let mut by_thread = vec![Vec::new(); threads];
        for (at, sample) in (0u32..).zip(&self.samples) {
            let thread = self.stacks[sample.stack as usize].actor.thread;
            by_thread[thread as usize].push(at);
        }
        by_thread
    }

    pub(crate) fn push(&mut self, time_ns: u64, weight: u64, cpu: u32, stack: StackKey) {
        let next = u32::try_from(self.stacks.len()).expect("fewer than 2^32 stacks");
        let at = *self.index.entry(stack).or_insert(next);
        if at == next {
            self.stacks.push(stack);
        }
        self.samples.push(TimedSample { time_ns, weight, stack: at, cpu });
    }

    /// Begins (`true`) or ends something that lasts.
    pub(crate) fn switch(&mut self, time_ns: u64, kind: MarkKind, is_on: bool) {
        if is_on {
            self.marks.push(Mark { start_ns: time_ns, end_ns: u64::MAX, kind });
            return;
        }
        let open = |mark: &&mut Mark| mark.kind == kind && mark.end_ns == u64::MAX;
        if let Some(mark) = self.marks.iter_mut().rev().find(open) {
            mark.end_ns = time_ns;
        }
    }

    /// Ends what was never told to end.
    pub(crate) fn close(&mut self) {
        if self.start_ns == 0 {
            self.start_ns = self.samples.first().map_or(0, |sample| sample.time_ns);
        }
        for mark in &mut self.marks {
            if mark.end_ns == u64::MAX {
                mark.end_ns = self.end_ns.max(mark.start_ns);
            }
        }
        self.index = FxHashMap::default();
    }

    /// Keeps the samples of the stacks for which `keeps` says yes.
    pub(crate) fn retain(&mut self, keeps: impl Fn(StackKey) -> bool) {
        let kept: Vec<bool> = self.stacks.iter().map(|&stack| keeps(stack)).collect();
        self.samples.retain(|sample| kept[sample.stack as usize]);
    }
}
