//! One process, from its start or attach to its end.

use crate::address_space::{AddressSpace, ImageIndex, Region, Shown};
use crate::image_cache::ImageCache;
use crate::maps;
use crate::memo::Memo;
use crate::stitch::Outer;
use rustc_hash::{FxHashMap, FxHashSet};
use stackpulse_perf::FileIdentity;
use stackpulse_spool::{Frame, ImageId, ProcessId, StackId, ThreadId};
use std::sync::Arc;

/// A process generation that lives.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) pid: u32,
    pub(crate) generation: u32,
    pub(crate) started_ns: u64,
    pub(crate) parent: Option<(u32, u32)>,
    /// Shared with a parent or child until one of them maps something.
    pub(crate) space: Arc<AddressSpace>,
    /// Counts the changes of the mappings.
    pub(crate) space_version: u64,
    pub(crate) comm: Box<[u8]>,
    pub(crate) threads: FxHashMap<u32, Thread>,
    /// Ids in the current epoch of the spool.
    pub(crate) ids: ProcessIds,
    pub(crate) refresh: Refresh,
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
    /// The thread's last stack, outermost first, and the node of each frame: the next stack often begins the same.
    pub(crate) last: Vec<(Frame, StackId)>,
    /// What the last stack depended on.
    pub(crate) memo: Memo,
    /// Frames too far out for the last stack.
    pub(crate) outer: Outer,
}

impl Thread {
    /// Forgets the stacks it had: the mappings, or the ids of the spool, are others now.
    pub(crate) fn forget_stacks(&mut self) {
        self.last.clear();
        self.memo.clear();
        self.outer.clear();
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
            space_version: 0,
            comm: Box::default(),
            threads: FxHashMap::default(),
            ids: ProcessIds::default(),
            refresh: Refresh::new(),
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
        self.space_version += 1;
        self.ids.mapped.clear();
        self.ids.last_mapped = None;
        self.ids.generated = None;
        self.ids.unknown = None;
        self.refresh = Refresh::new();
        self.names_read_ns = None;
        self.named.clear();
        for thread in self.threads.values_mut() {
            thread.forget_stacks();
        }
    }

    /// Maps a region, told by a record or a line of maps.
    pub(crate) fn map(&mut self, region: Region) {
        self.space_version += 1;
        Arc::make_mut(&mut self.space).map(region);
    }

    /// Takes a maps text for the whole truth, unless it is empty: a process that is ending shows none.
    pub(crate) fn reconcile(&mut self, text: &[u8], images: &mut ImageCache) {
        let regions: Vec<Region> = maps::parse(text)
            .filter(|line| line.executable)
            .map(|line| {
                region(
                    line.start_avma..line.end_avma,
                    line.file_offset,
                    &line.file,
                    &line.path,
                    images,
                )
            })
            .collect();
        if !regions.is_empty() {
            self.space_version += 1;
            Arc::make_mut(&mut self.space).replace(regions);
        }
    }
}

/// What a mapped range shows, by its path.
pub(crate) fn region(
    range: std::ops::Range<u64>,
    file_offset: u64,
    file: &FileIdentity,
    path: &[u8],
    images: &mut ImageCache,
) -> Region {
    let shown = if path == b"[vdso]" {
        Shown::Image { image: images.vdso(), file_offset: 0 }
    } else if is_file(path) {
        Shown::Image { image: images.of_mapping(path, file), file_offset }
    } else {
        Shown::Anonymous
    };
    Region { start_avma: range.start, end_avma: range.end, shown }
}

/// Files have absolute paths; `//anon` and the like are the kernel's names for memory of no file.
fn is_file(path: &[u8]) -> bool {
    let of_no_file: [&[u8]; 4] = [b"//anon", b"/dev/zero", b"/anon_hugepage", b"/SYSV"];
    path.first() == Some(&b'/') && !of_no_file.iter().any(|name| path.starts_with(name))
}
