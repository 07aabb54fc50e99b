//! What a spool has defined so far in the current epoch.

use crate::record::{
    Frame, FrameId, Image, ImageId, ImageKind, Process, ProcessId, StackId, Thread, ThreadId,
};

/// Things numbered in order of definition, with holes where a damaged block took definitions along.
#[derive(Clone, Debug)]
pub(crate) struct Dense<T> {
    /// Runs of consecutive numbers; `first + items.len()` of one is below `first` of the next.
    segments: Vec<Segment<T>>,
    /// The number of the next definition.
    next: u32,
}

#[derive(Clone, Debug)]
struct Segment<T> {
    first: u32,
    items: Vec<T>,
}

impl<T> Default for Dense<T> {
    fn default() -> Self {
        Self { segments: Vec::new(), next: 0 }
    }
}

impl<T> Dense<T> {
    pub(crate) fn next(&self) -> u32 {
        self.next
    }

    pub(crate) fn push(&mut self, item: T) {
        match self.segments.last_mut() {
            Some(last) if last.end() == u64::from(self.next) => last.items.push(item),
            _ => self.segments.push(Segment { first: self.next, items: vec![item] }),
        }
        self.next = self.next.saturating_add(1);
    }

    /// Leaves the numbers up to `next` undefined.
    pub(crate) fn skip_to(&mut self, next: u32) {
        self.next = self.next.max(next);
    }

    #[inline]
    pub(crate) fn get(&self, id: u32) -> Option<&T> {
        if let [segment] = &self.segments[..] {
            return segment.items.get(id.checked_sub(segment.first)? as usize);
        }
        let after = self.segments.partition_point(|segment| segment.first <= id);
        let segment = self.segments.get(after.checked_sub(1)?)?;
        segment.items.get((id - segment.first) as usize)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        self.segments.iter().flat_map(|segment| (segment.first..).zip(&segment.items))
    }
}

impl<T> Segment<T> {
    fn end(&self) -> u64 {
        u64::from(self.first) + self.items.len() as u64
    }
}

/// An [`Image`] that owns its strings, as readers keep it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OwnedImage {
    /// See [`Image::kind`].
    pub kind: ImageKind,
    /// See [`Image::path`].
    pub path: Box<[u8]>,
    /// See [`Image::build_id`].
    pub build_id: Box<[u8]>,
    /// See [`Image::device`].
    pub device: (u32, u32),
    /// See [`Image::inode`].
    pub inode: u64,
    /// See [`Image::file_size`].
    pub file_size: u64,
    /// See [`Image::modified_ns`].
    pub modified_ns: u64,
}

impl From<&Image<'_>> for OwnedImage {
    fn from(image: &Image<'_>) -> Self {
        Self {
            kind: image.kind,
            path: image.path.into(),
            build_id: image.build_id.into(),
            device: image.device,
            inode: image.inode,
            file_size: image.file_size,
            modified_ns: image.modified_ns,
        }
    }
}

/// A stack node: a frame and the node of its callers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) parent: StackId,
    pub(crate) frame: FrameId,
}

/// How many things of each kind have been numbered in an epoch, those that damage took along included.
///
/// Right after a definition was read, it is the newest of its kind: its id is the count less one; that of a stack
/// node, which count from one, the count itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Images.
    pub images: u32,
    /// Processes.
    pub processes: u32,
    /// Threads.
    pub threads: u32,
    /// Frames.
    pub frames: u32,
    /// Stack nodes.
    pub nodes: u32,
}

impl Counts {
    /// How many more things `later` has than `self`; `None` if it has fewer of any kind.
    pub(crate) fn until(&self, later: &Self) -> Option<u64> {
        let pairs = self.as_array().into_iter().zip(later.as_array());
        pairs.map(|(before, after)| after.checked_sub(before).map(u64::from)).sum()
    }

    pub(crate) fn as_array(&self) -> [u32; 5] {
        [self.images, self.processes, self.threads, self.frames, self.nodes]
    }

    pub(crate) fn from_array([images, processes, threads, frames, nodes]: [u32; 5]) -> Self {
        Self { images, processes, threads, frames, nodes }
    }
}

/// The definitions of the current epoch, by id.
#[derive(Clone, Debug, Default)]
pub struct Tables {
    epoch: u32,
    images: Dense<OwnedImage>,
    processes: Dense<Process>,
    threads: Dense<Thread>,
    frames: Dense<Frame>,
    nodes: Dense<Node>,
    /// Whether a number below the counts may be without definition.
    have_holes: bool,
}

impl Tables {
    /// Returns the number of the current epoch: how many [`Record::Epoch`](crate::Record::Epoch)s there were.
    #[must_use]
    pub fn epoch(&self) -> u32 {
        self.epoch
    }

    /// Returns an image.
    #[must_use]
    pub fn image(&self, id: ImageId) -> Option<Image<'_>> {
        self.images.get(id.0).map(OwnedImage::as_image)
    }

    /// Returns the images in order of definition.
    pub fn images(&self) -> impl Iterator<Item = (ImageId, Image<'_>)> {
        self.images.iter().map(|(id, image)| (ImageId(id), image.as_image()))
    }

    /// Returns a process.
    #[must_use]
    pub fn process(&self, id: ProcessId) -> Option<Process> {
        self.processes.get(id.0).copied()
    }

    /// Returns a thread.
    #[must_use]
    pub fn thread(&self, id: ThreadId) -> Option<Thread> {
        self.threads.get(id.0).copied()
    }

    /// Returns a frame.
    #[must_use]
    pub fn frame(&self, id: FrameId) -> Option<Frame> {
        self.frames.get(id.0).copied()
    }

    /// Returns the frame of a stack node and the node of its callers; `None` for the empty stack.
    #[must_use]
    pub fn node(&self, id: StackId) -> Option<(FrameId, StackId)> {
        let node = self.nodes.get(id.0.checked_sub(1)?)?;
        Some((node.frame, node.parent))
    }

    /// Returns a stack's frames, innermost first.
    pub fn frames_of(&self, stack: StackId) -> impl Iterator<Item = FrameId> + '_ {
        let mut next = stack;
        std::iter::from_fn(move || {
            let (frame, parent) = self.node(next)?;
            next = parent;
            Some(frame)
        })
    }

    pub(crate) fn start_epoch(&mut self, number: u32) {
        *self = Self { epoch: number, ..Self::default() };
    }

    /// Returns how many things of each kind the epoch has numbered so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        Counts {
            images: self.images.next(),
            processes: self.processes.next(),
            threads: self.threads.next(),
            frames: self.frames.next(),
            nodes: self.nodes.next(),
        }
    }

    /// Leaves everything up to `counts` undefined.
    pub(crate) fn skip_to(&mut self, counts: &Counts) {
        self.have_holes |= self.counts() != *counts;
        self.images.skip_to(counts.images);
        self.processes.skip_to(counts.processes);
        self.threads.skip_to(counts.threads);
        self.frames.skip_to(counts.frames);
        self.nodes.skip_to(counts.nodes);
    }

    /// Whether everything below the counts is defined.
    #[inline]
    pub(crate) fn are_whole(&self) -> bool {
        !self.have_holes
    }

    pub(crate) fn define_image(&mut self, image: &Image<'_>) {
        self.images.push(OwnedImage::from(image));
    }

    pub(crate) fn define_process(&mut self, process: Process) {
        self.processes.push(process);
    }

    pub(crate) fn define_thread(&mut self, thread: Thread) {
        self.threads.push(thread);
    }

    pub(crate) fn define_frame(&mut self, frame: Frame) {
        self.frames.push(frame);
    }

    /// Defines a node and returns its id.
    pub(crate) fn define_node(&mut self, node: Node) -> StackId {
        self.nodes.push(node);
        StackId(self.nodes.next())
    }
}

impl OwnedImage {
    /// Returns the image as records state it.
    #[must_use]
    pub fn as_image(&self) -> Image<'_> {
        Image {
            kind: self.kind,
            path: &self.path,
            build_id: &self.build_id,
            device: self.device,
            inode: self.inode,
            file_size: self.file_size,
            modified_ns: self.modified_ns,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_skipped_by_damage_stay_undefined() {
        let mut dense = Dense::default();
        dense.push('a');
        dense.push('b');
        dense.skip_to(5);
        dense.push('f');
        let found: Vec<_> = (0..7).map(|id| dense.get(id).copied()).collect();
        assert_eq!(found, [Some('a'), Some('b'), None, None, None, Some('f'), None]);
        assert_eq!(dense.next(), 6);
    }
}
