//! The engine's side of the spool: ids given out, definitions written once.

use crate::address_space::{ImageIndex, Region, Shown};
use crate::image_cache::ImageCache;
use crate::process::Process;
use rustc_hash::FxHashMap;
use stackpulse_spool::{
    Frame, Image, ImageId, ImageKind, Interner, Mapping, ProcessId, Record, RecordSink, StackId,
    Thread, ThreadId,
};

/// An epoch ends when it has this many stack nodes or frames: what a writer and a reader keep is bounded.
const EPOCH_NODES: usize = 1 << 22;
const EPOCH_FRAMES: usize = 1 << 20;
/// Or this many processes or threads.
const EPOCH_TASKS: u32 = 1 << 20;

/// Which ids come next in the current epoch, and what has one.
#[derive(Debug, Default)]
pub(crate) struct Output {
    next_image: u32,
    next_process: u32,
    next_thread: u32,
    kernel: Option<ImageId>,
    interner: Interner,
}

impl Output {
    /// Starts ids afresh when there are too many.
    pub(crate) fn start_epoch_if_full<K: RecordSink>(
        &mut self,
        processes: &mut FxHashMap<u32, Process>,
        images: &mut ImageCache,
        sink: &mut K,
    ) -> Result<(), K::Error> {
        let (frames, nodes) = self.interner.len();
        let full = frames >= EPOCH_FRAMES
            || nodes >= EPOCH_NODES
            || self.next_process >= EPOCH_TASKS
            || self.next_thread >= EPOCH_TASKS;
        if !full {
            return Ok(());
        }
        sink.record(&Record::Epoch)?;
        *self = Self::default();
        images.start_epoch();
        for process in processes.values_mut() {
            process.ids = Default::default();
            for thread in process.threads.values_mut() {
                thread.id = None;
                thread.forget_stacks();
            }
        }
        Ok(())
    }

    /// Returns a process's id, defining it at first use.
    pub(crate) fn process<K: RecordSink>(
        &mut self,
        processes: &mut FxHashMap<u32, Process>,
        pid: u32,
        sink: &mut K,
    ) -> Result<ProcessId, K::Error> {
        let Some(process) = processes.get(&pid) else { return Ok(ProcessId(u32::MAX)) };
        if let Some(id) = process.ids.process {
            return Ok(id);
        }
        // A parent that has ended and has no id in this epoch is not defined for this alone.
        let parent = process.parent.and_then(|(pid, generation)| {
            let parent = processes.get(&pid).filter(|parent| parent.generation == generation)?;
            parent.ids.process
        });
        let record = stackpulse_spool::Process {
            pid,
            generation: process.generation,
            parent,
            time_ns: process.started_ns,
        };
        sink.record(&Record::Process(record))?;
        let id = ProcessId(self.next_process);
        self.next_process += 1;
        if let Some(process) = processes.get_mut(&pid) {
            process.ids.process = Some(id);
        }
        Ok(id)
    }

    /// Returns a thread's id, defining it, with its name, at first use.
    pub(crate) fn thread<K: RecordSink>(
        &mut self,
        owner: ProcessId,
        process: &mut Process,
        tid: u32,
        time_ns: u64,
        sink: &mut K,
    ) -> Result<ThreadId, K::Error> {
        let thread = process.threads.entry(tid).or_insert_with(|| crate::engine::started(time_ns));
        if let Some(id) = thread.id {
            return Ok(id);
        }
        sink.record(&Record::Thread(Thread { process: owner, tid, time_ns: thread.started_ns }))?;
        let id = ThreadId(self.next_thread);
        self.next_thread += 1;
        thread.id = Some(id);
        if let Some(name) = &thread.name {
            sink.record(&Record::ThreadName { thread: id, time_ns, name })?;
        }
        Ok(id)
    }

    /// Returns the frame of an address, defining its image and mapping at first use.
    pub(crate) fn frame<K: RecordSink>(
        &mut self,
        process: &mut Process,
        images: &mut ImageCache,
        at: (u64, Option<Region>),
        time_ns: u64,
        sink: &mut K,
    ) -> Result<Frame, K::Error> {
        let (avma, region) = at;
        match region.map(|region| (region, region.shown)) {
            Some((region, Shown::Image { image, file_offset })) => {
                let id = images.id(image, &mut self.next_image, sink)?;
                self.mapping(process, region, image, id, time_ns, sink)?;
                let address = images.address(image, file_offset + (avma - region.start_avma));
                Ok(Frame::Code { image: id, address })
            }
            Some((_, Shown::Anonymous)) => {
                let image =
                    self.own_image(&mut process.ids.generated, ImageKind::Generated, sink)?;
                Ok(Frame::Code { image, address: avma })
            }
            None => {
                let image = self.own_image(&mut process.ids.unknown, ImageKind::Unknown, sink)?;
                Ok(Frame::Code { image, address: avma })
            }
        }
    }

    /// Writes a mapping the first time that a frame lies in it.
    fn mapping<K: RecordSink>(
        &mut self,
        process: &mut Process,
        region: Region,
        image: ImageIndex,
        id: ImageId,
        time_ns: u64,
        sink: &mut K,
    ) -> Result<(), K::Error> {
        let mapped = (region.start_avma, image);
        // The next frame is mostly in the same mapping.
        if process.ids.last_mapped.replace(mapped) == Some(mapped)
            || !process.ids.mapped.insert(mapped)
        {
            return Ok(());
        }
        let (Some(owner), Shown::Image { file_offset, .. }) = (process.ids.process, region.shown)
        else {
            return Ok(());
        };
        sink.record(&Record::Mapping(Mapping {
            process: owner,
            time_ns,
            start_avma: region.start_avma,
            end_avma: region.end_avma,
            file_offset,
            image: id,
        }))
    }

    /// Returns the image of the kernel, defining it at first use.
    pub(crate) fn kernel<K: RecordSink>(&mut self, sink: &mut K) -> Result<ImageId, K::Error> {
        let mut kernel = self.kernel;
        let id = self.own_image(&mut kernel, ImageKind::Kernel, sink)?;
        self.kernel = kernel;
        Ok(id)
    }

    /// Returns the process's image of generated code.
    pub(crate) fn generated<K: RecordSink>(
        &mut self,
        process: &mut Process,
        sink: &mut K,
    ) -> Result<ImageId, K::Error> {
        self.own_image(&mut process.ids.generated, ImageKind::Generated, sink)
    }

    /// An image that is no file.
    fn own_image<K: RecordSink>(
        &mut self,
        slot: &mut Option<ImageId>,
        kind: ImageKind,
        sink: &mut K,
    ) -> Result<ImageId, K::Error> {
        if let Some(id) = *slot {
            return Ok(id);
        }
        sink.record(&Record::Image(Image {
            kind,
            path: b"",
            build_id: b"",
            device: (0, 0),
            inode: 0,
            file_size: 0,
            modified_ns: 0,
        }))?;
        let id = ImageId(self.next_image);
        self.next_image += 1;
        *slot = Some(id);
        Ok(id)
    }

    /// Returns a frame's id and the node of its callers. `frames` is the stack, innermost first, without its outermost `kept`
    /// frames: those are the ones of `last`, the same thread's stack before. Further frames that are the same keep their
    /// nodes without a search.
    pub(crate) fn stack<K: RecordSink>(
        &mut self,
        frames: &[Frame],
        (last, kept): (&mut Vec<(Frame, StackId)>, usize),
        sink: &mut K,
    ) -> Result<Option<(stackpulse_spool::FrameId, StackId)>, K::Error> {
        let Some((&leaf, callers)) = frames.split_first() else { return Ok(None) };
        let outermost_first = callers.iter().rev();
        let same = outermost_first
            .clone()
            .zip(last.iter().skip(kept))
            .take_while(|(new, (old, _))| *new == old)
            .count();
        last.truncate(kept + same);
        let mut node = last.last().map_or(StackId::EMPTY, |&(_, node)| node);
        node = self.interner.stack_with(
            node,
            outermost_first.skip(same).copied(),
            sink,
            |frame, node| {
                last.push((frame, node));
            },
        )?;
        Ok(Some((self.interner.frame(leaf, sink)?, node)))
    }
}
