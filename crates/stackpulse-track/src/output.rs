//! The spool's side of the engine: ids given out, definitions written once.

use crate::images::{Images, NOTHING};
use crate::process::{Process, ProcessIds, Thread};
use stackpulse_spool::{
    Frame, FrameId, Image, ImageId, ImageKind, Interner, Mapping, ProcessId, Record, RecordSink,
    StackId, ThreadId,
};
use stackpulse_unwind::{ImageIndex, ImageSymbol, Region, Shown, WalkedFrame};

/// An epoch ends when it has this many stack nodes or frames: what a writer and a reader keep is bounded.
const EPOCH_NODES: usize = 1 << 22;
const EPOCH_FRAMES: usize = 1 << 20;
/// Or this many processes or threads.
const EPOCH_TASKS: u32 = 1 << 20;

/// Where records go, which ids come next in the current epoch, and what has one.
#[derive(Debug)]
pub(crate) struct Output<K> {
    pub(crate) sink: K,
    ids: Ids,
}

#[derive(Debug, Default)]
struct Ids {
    next_image: u32,
    next_process: u32,
    next_thread: u32,
    kernel: Option<ImageId>,
    /// By the image's number.
    images: Vec<Option<ImageId>>,
    interner: Interner,
}

impl<K: RecordSink> Output<K> {
    pub(crate) fn new(sink: K) -> Self {
        Self { sink, ids: Ids::default() }
    }

    /// Writes a record that defines nothing.
    pub(crate) fn record(&mut self, record: &Record<'_>) -> Result<(), K::Error> {
        self.sink.record(record)
    }

    /// Whether there are so many ids that they should start afresh.
    pub(crate) fn is_full(&self) -> bool {
        let (frames, nodes) = self.ids.interner.len();
        frames >= EPOCH_FRAMES
            || nodes >= EPOCH_NODES
            || self.ids.next_process >= EPOCH_TASKS
            || self.ids.next_thread >= EPOCH_TASKS
    }

    /// Starts ids afresh: nothing has one any more.
    pub(crate) fn start_epoch(&mut self) -> Result<(), K::Error> {
        self.ids = Ids::default();
        self.sink.record(&Record::Epoch)
    }

    /// Returns a process's id, defining it at first use. `parent` is its parent's, if that has one.
    pub(crate) fn process(
        &mut self,
        process: &mut Process,
        parent: Option<ProcessId>,
    ) -> Result<ProcessId, K::Error> {
        if let Some(id) = process.ids.process {
            return Ok(id);
        }
        self.sink.record(&Record::Process(stackpulse_spool::Process {
            pid: process.pid,
            generation: process.generation,
            parent,
            time_ns: process.started_ns,
        }))?;
        let id = ProcessId(self.ids.next_process);
        self.ids.next_process += 1;
        process.ids.process = Some(id);
        Ok(id)
    }

    /// Returns a thread's id, defining it, with its name, at first use.
    pub(crate) fn thread(
        &mut self,
        thread: &mut Thread,
        (process, tid): (ProcessId, u32),
        time_ns: u64,
    ) -> Result<ThreadId, K::Error> {
        if let Some(id) = thread.id {
            return Ok(id);
        }
        let record = stackpulse_spool::Thread { process, tid, time_ns: thread.started_ns };
        self.sink.record(&Record::Thread(record))?;
        let id = ThreadId(self.ids.next_thread);
        self.ids.next_thread += 1;
        thread.id = Some(id);
        if let Some(name) = &thread.name {
            self.sink.record(&Record::ThreadName { thread: id, time_ns, name })?;
        }
        Ok(id)
    }

    /// Returns a walked frame as the spool has it, defining its image and mapping at first use.
    pub(crate) fn frame(
        &mut self,
        ids: &mut ProcessIds,
        walked: &WalkedFrame,
        images: &Images,
        time_ns: u64,
    ) -> Result<Frame, K::Error> {
        let avma = walked.address.lookup_avma();
        match walked.region.map(|region| (region, region.shown)) {
            Some((region, Shown::Image { image: index, file_offset })) => {
                let image = self.image(index, images)?;
                self.mapping(ids, &region, (index, image), time_ns)?;
                let address = images.unwinder.svma(index, file_offset + (avma - region.start_avma));
                Ok(Frame::Code { image, address })
            }
            Some((_, Shown::Anonymous)) => {
                Ok(Frame::Code { image: self.generated(ids)?, address: avma })
            }
            None => {
                let image = self.own_image(ids.unknown, ImageKind::Unknown)?;
                ids.unknown = Some(image);
                Ok(Frame::Code { image, address: avma })
            }
        }
    }

    /// Returns the id of a file's image, defining it, and the symbols of a vDSO, at first use.
    fn image(&mut self, index: ImageIndex, images: &Images) -> Result<ImageId, K::Error> {
        let at = index.number() as usize;
        if let Some(&Some(id)) = self.ids.images.get(at) {
            return Ok(id);
        }
        let id = self.define(&images.record(index))?;
        if self.ids.images.len() <= at {
            self.ids.images.resize(at + 1, None);
        }
        self.ids.images[at] = Some(id);
        for ImageSymbol { svma, size, name } in images.symbols(index) {
            let (address, size) = (*svma, *size);
            self.sink.record(&Record::Symbol { image: id, address, size, name })?;
        }
        Ok(id)
    }

    /// Writes a mapping the first time that a frame lies in it.
    fn mapping(
        &mut self,
        ids: &mut ProcessIds,
        region: &Region,
        (index, image): (ImageIndex, ImageId),
        time_ns: u64,
    ) -> Result<(), K::Error> {
        let mapped = (region.start_avma, index);
        // The next frame is mostly in the same mapping.
        if ids.last_mapped.replace(mapped) == Some(mapped) || !ids.mapped.insert(mapped) {
            return Ok(());
        }
        let (Some(process), Shown::Image { file_offset, .. }) = (ids.process, region.shown) else {
            return Ok(());
        };
        let Region { start_avma, end_avma, .. } = *region;
        let mapping = Mapping { process, time_ns, start_avma, end_avma, file_offset, image };
        self.sink.record(&Record::Mapping(mapping))
    }

    /// Returns the image of the kernel, defining it at first use.
    pub(crate) fn kernel(&mut self) -> Result<ImageId, K::Error> {
        let id = self.own_image(self.ids.kernel, ImageKind::Kernel)?;
        self.ids.kernel = Some(id);
        Ok(id)
    }

    /// Returns the process's image of generated code, defining it at first use.
    pub(crate) fn generated(&mut self, ids: &mut ProcessIds) -> Result<ImageId, K::Error> {
        let id = self.own_image(ids.generated, ImageKind::Generated)?;
        ids.generated = Some(id);
        Ok(id)
    }

    /// An image that is no file.
    fn own_image(&mut self, known: Option<ImageId>, kind: ImageKind) -> Result<ImageId, K::Error> {
        match known {
            Some(id) => Ok(id),
            None => self.define(&Image { kind, ..NOTHING }),
        }
    }

    fn define(&mut self, image: &Image<'_>) -> Result<ImageId, K::Error> {
        self.sink.record(&Record::Image(*image))?;
        let id = ImageId(self.ids.next_image);
        self.ids.next_image += 1;
        Ok(id)
    }

    /// Returns a frame's id and the node of its callers. `frames` is the stack, innermost first, without its outermost `kept`
    /// frames: those are the ones of `written`, the same thread's stack before. Further frames that are the same keep their
    /// nodes without a search.
    pub(crate) fn stack(
        &mut self,
        frames: &[Frame],
        (written, kept): (&mut Vec<(Frame, StackId)>, usize),
    ) -> Result<Option<(FrameId, StackId)>, K::Error> {
        let Some((&leaf, callers)) = frames.split_first() else { return Ok(None) };
        let outermost_first = callers.iter().rev();
        let same = outermost_first
            .clone()
            .zip(written.iter().skip(kept))
            .take_while(|(new, (old, _))| *new == old)
            .count();
        written.truncate(kept + same);
        let parent = written.last().map_or(StackId::EMPTY, |&(_, node)| node);
        let new = outermost_first.skip(same).copied();
        let Self { sink, ids } = self;
        let node = ids.interner.stack_with(parent, new, sink, |frame, node| {
            written.push((frame, node));
        })?;
        Ok(Some((ids.interner.frame(leaf, sink)?, node)))
    }
}
