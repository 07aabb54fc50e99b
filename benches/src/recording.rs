//! Recordings made up from a seed.

use stackpulse_spool::{
    Frame, Image, ImageId, ImageKind, Interner, Process, ProcessId, Record, RecordSink, Sample,
    StackId, Thread, ThreadId,
};

/// What the samples of a recording look like.
#[derive(Clone, Copy, Debug)]
pub enum Shape {
    /// One thread in one of four stacks of 12 frames.
    HotLoop,
    /// Two threads with 129 frames, of which the inner ones change in a random walk.
    RandomWalk,
}

/// A small random generator; the same numbers for the same seed.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Starts at a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// Returns a number below `limit`.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// Samples of a recording whose process, threads and image are defined; frames and stacks are defined on the way.
#[derive(Debug)]
pub struct Source {
    shape: Shape,
    random: Random,
    interner: Interner,
    time_ns: u64,
    stacks: Vec<Vec<Frame>>,
}

const IMAGE: ImageId = ImageId(0);

impl Source {
    /// Defines what all samples refer to.
    ///
    /// # Errors
    ///
    /// Those of the sink.
    pub fn start<S: RecordSink>(shape: Shape, sink: &mut S) -> Result<Self, S::Error> {
        sink.record(&Record::Process(Process {
            pid: 100,
            generation: 0,
            parent: None,
            time_ns: 1,
        }))?;
        for tid in [100, 101] {
            sink.record(&Record::Thread(Thread { process: ProcessId(0), tid, time_ns: 1 }))?;
        }
        sink.record(&Record::Image(Image {
            kind: ImageKind::Elf,
            path: b"/usr/bin/workload",
            build_id: &[7; 20],
            device: (254, 0),
            inode: 1,
            file_size: 1 << 20,
            modified_ns: 1,
        }))?;
        let (stacks, depth) = match shape {
            Shape::HotLoop => (4, 12),
            Shape::RandomWalk => (2, 129),
        };
        let stacks = (0..stacks).map(|stack| (0..depth).map(|at| place(at, stack)).collect());
        Ok(Self {
            shape,
            random: Random::new(1),
            interner: Interner::new(),
            time_ns: 1_000_000_000,
            stacks: stacks.collect(),
        })
    }

    /// Writes the next sample, and first what it needs that is new.
    ///
    /// # Errors
    ///
    /// Those of the sink.
    pub fn next<S: RecordSink>(&mut self, sink: &mut S) -> Result<Sample, S::Error> {
        let at = usize::try_from(self.random.below(self.stacks.len() as u64)).unwrap_or_default();
        let stack = &mut self.stacks[at];
        let thread = match self.shape {
            Shape::HotLoop => 0,
            Shape::RandomWalk => {
                walk(stack, &mut self.random);
                at
            }
        };
        let thread = u32::from(thread > 0);
        self.time_ns += 250_000 + self.random.below(3000);
        let (&leaf, callers) = stack.split_last().unwrap_or((&Frame::Joined, &[]));
        let leaf = self.interner.frame(leaf, sink)?;
        let callers = self.interner.stack(StackId::EMPTY, callers.iter().copied(), sink)?;
        let sample = Sample {
            time_ns: self.time_ns,
            thread: ThreadId(thread),
            cpu: thread,
            weight: 250_000,
            leaf,
            callers,
        };
        sink.record(&Record::Sample(sample))?;
        Ok(sample)
    }
}

/// Replaces a few of the innermost frames.
fn walk(stack: &mut [Frame], random: &mut Random) {
    // Mostly the leaf alone; rarely deep.
    let deep = (0..6).take_while(|_| random.below(3) == 0).count();
    let from = stack.len().saturating_sub(1 + deep);
    for (at, frame) in stack.iter_mut().enumerate().skip(from) {
        *frame = place(at as u64, random.below(3));
    }
}

fn place(depth: u64, choice: u64) -> Frame {
    Frame::Code { image: IMAGE, address: 0x1000 + 0x100 * (depth % 7) + 0x10 * choice }
}
