//! One process, from its start or attach to its end.

use crate::by_id::ById;
use crate::images::Images;
use crate::maps;
use crate::moved_text;
use rustc_hash::FxHashSet;
use stackpulse_spool::{Frame, ImageId, ProcessId, StackId, ThreadId};
use stackpulse_unwind::{AddressSpace, ImageIndex, LastStack, Region};
use std::sync::Arc;

/// A program moves its text once, perhaps in pieces; one that maps over images again and again is no such program.
const MOVES: u32 = 64;

/// A process generation that lives.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) pid: u32,
    pub(crate) generation: u32,
    pub(crate) started_ns: u64,
    pub(crate) parent: Option<(u32, u32)>,
    /// Shared with a parent or child until one of them maps something.
    pub(crate) space: Arc<AddressSpace>,
    pub(crate) comm: Box<[u8]>,
    pub(crate) threads: ById<Thread>,
    /// Ids in the current epoch of the spool.
    pub(crate) ids: ProcessIds,
    pub(crate) refresh: Refresh,
    /// How often maps may still be read for memory that is mapped over an image.
    pub(crate) moves_left: u32,
    /// Where reading of names of generated code has got to; they are read again when code without a name is met.
    pub(crate) names_read_ns: Option<u64>,
    pub(crate) named: FxHashSet<(u64, u64)>,
}

/// What the spool calls a process and what belongs to it alone.
#[derive(Debug, Default)]
pub(crate) struct ProcessIds {
    pub(crate) process: Option<ProcessId>,
    pub(crate) generated: Option<ImageId>,
    pub(crate) unknown: Option<ImageId>,
    /// Mappings that have been written, by their first address and image.
    pub(crate) mapped: FxHashSet<(u64, ImageIndex)>,
    /// The one of these that was asked for last.
    pub(crate) last_mapped: Option<(u64, ImageIndex)>,
}

/// A thread of a process.
#[derive(Debug, Default)]
pub(crate) struct Thread {
    pub(crate) started_ns: u64,
    pub(crate) name: Option<Box<[u8]>>,
    pub(crate) id: Option<ThreadId>,
    /// The stack that was written last, outermost first without its innermost frame, and the node of each frame: the next
    /// stack often begins the same.
    pub(crate) written: Vec<(Frame, StackId)>,
    /// What the next walk may build on.
    pub(crate) last: LastStack<Frame>,
}

impl Thread {
    pub(crate) fn new(started_ns: u64) -> Self {
        Self { started_ns, ..Self::default() }
    }

    /// Forgets the stacks it had: the mappings, or the ids of the spool, are others now.
    pub(crate) fn forget_stacks(&mut self) {
        self.written.clear();
        self.last.clear();
    }
}

/// When maps were last read anew, and how often that may still happen for nothing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Refresh {
    pub(crate) last_ns: u64,
    pub(crate) left: u32,
}

impl Refresh {
    /// So often maps are read for an address that is then still not in them.
    const BUDGET: u32 = 16;
    /// At least so long between two readings.
    const INTERVAL_NS: u64 = 100_000_000;

    pub(crate) fn new() -> Self {
        Self { last_ns: 0, left: Self::BUDGET }
    }

    /// Whether maps may be read now; counts it.
    pub(crate) fn is_allowed(&mut self, now_ns: u64) -> bool {
        let allowed = self.left > 0
            && (self.last_ns == 0 || now_ns.saturating_sub(self.last_ns) >= Self::INTERVAL_NS);
        if allowed {
            self.left -= 1;
            self.last_ns = now_ns;
        }
        allowed
    }
}

impl Process {
    pub(crate) fn new(pid: u32, generation: u32, started_ns: u64) -> Self {
        Self {
            pid,
            generation,
            started_ns,
            parent: None,
            space: Arc::default(),
            comm: Box::default(),
            threads: ById::default(),
            ids: ProcessIds::default(),
            refresh: Refresh::new(),
            moves_left: MOVES,
            names_read_ns: None,
            named: FxHashSet::default(),
        }
    }

    /// A child as it is right after the fork.
    pub(crate) fn fork(&self, pid: u32, generation: u32, now_ns: u64) -> Self {
        Self {
            parent: Some((self.pid, self.generation)),
            space: Arc::clone(&self.space),
            comm: self.comm.clone(),
            ..Self::new(pid, generation, now_ns)
        }
    }

    /// Begins a new program: nothing that was mapped is left.
    pub(crate) fn exec(&mut self) {
        self.space = Arc::default();
        self.ids.mapped.clear();
        self.ids.last_mapped = None;
        self.ids.generated = None;
        self.ids.unknown = None;
        self.refresh = Refresh::new();
        self.moves_left = MOVES;
        self.names_read_ns = None;
        self.named.clear();
        for thread in self.threads.iter_mut() {
            thread.forget_stacks();
        }
    }

    /// Maps a region, told by a record or a line of maps.
    pub(crate) fn map(&mut self, region: Region) {
        Arc::make_mut(&mut self.space).map(region);
    }

    /// Takes an image that this process maps for what it turned out to be: code made at run time.
    pub(crate) fn make_anonymous(&mut self, image: ImageIndex) {
        Arc::make_mut(&mut self.space).make_anonymous(image);
    }

    /// Takes a maps text for the whole truth, unless it is empty: a process that is ending shows none.
    pub(crate) fn reconcile(&mut self, text: &[u8], images: &mut Images) {
        let lines: Vec<_> = maps::parse(text).collect();
        let regions: Vec<Region> = moved_text::shown(&lines, images)
            .map(|(line, shown)| Region {
                start_avma: line.start_avma,
                end_avma: line.end_avma,
                shown,
            })
            .collect();
        if !regions.is_empty() {
            Arc::make_mut(&mut self.space).replace(regions);
        }
    }
}
