//! Frames and stacks that were seen before keep their ids.

use crate::record::{Frame, FrameId, Record, StackId, StackRun};
use crate::sink::RecordSink;
use rustc_hash::FxHashMap;

/// Gives frames and stacks their ids, and defines new ones in a sink.
///
/// An interner belongs to one sink and one epoch: after [`Record::Epoch`] call [`clear`](Self::clear).
#[derive(Clone, Debug, Default)]
pub struct Interner {
    frames: FxHashMap<Frame, FrameId>,
    /// From a node and the frame it called to the node of that frame.
    nodes: FxHashMap<(StackId, FrameId), StackId>,
    /// The frames of the run being defined.
    run: Vec<FrameId>,
    places: Vec<Frame>,
}

impl Interner {
    /// Makes an empty one, for the start of a spool.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns a frame's id, defining it if it is new.
    ///
    /// # Errors
    ///
    /// Those of the sink.
    pub fn frame<S: RecordSink + ?Sized>(
        &mut self,
        frame: Frame,
        sink: &mut S,
    ) -> Result<FrameId, S::Error> {
        if let Some(&id) = self.frames.get(&frame) {
            return Ok(id);
        }
        let id = FrameId(number(self.frames.len()));
        sink.record(&Record::Frame(frame))?;
        self.frames.insert(frame, id);
        Ok(id)
    }

    /// Returns the node of `frames`, outermost first, called one by the other from `parent`, defining
    /// what is new of it as one run.
    ///
    /// # Errors
    ///
    /// Those of the sink; then the interner no longer fits it.
    pub fn stack<S: RecordSink + ?Sized>(
        &mut self,
        parent: StackId,
        frames: impl IntoIterator<Item = Frame>,
        sink: &mut S,
    ) -> Result<StackId, S::Error> {
        self.stack_with(parent, frames, sink, |_, _| {})
    }

    /// As [`stack`](Self::stack), and tells the node of each frame on the way.
    ///
    /// # Errors
    ///
    /// Those of the sink; then the interner no longer fits it.
    pub fn stack_with<S: RecordSink + ?Sized>(
        &mut self,
        parent: StackId,
        frames: impl IntoIterator<Item = Frame>,
        sink: &mut S,
        mut told: impl FnMut(Frame, StackId),
    ) -> Result<StackId, S::Error> {
        let mut node = parent;
        let mut frames = frames.into_iter();
        self.run.clear();
        self.places.clear();
        for place in frames.by_ref() {
            let frame = self.frame(place, sink)?;
            match self.nodes.get(&(node, frame)) {
                Some(&known) => {
                    node = known;
                    told(place, node);
                }
                None => {
                    self.run.push(frame);
                    self.places.push(place);
                    break;
                }
            }
        }
        if self.run.is_empty() {
            return Ok(node);
        }
        for place in frames {
            let frame = self.frame(place, sink)?;
            self.run.push(frame);
            self.places.push(place);
        }
        sink.record(&Record::Stack(StackRun { parent: node, frames: &self.run }))?;
        for (&frame, &place) in self.run.iter().zip(&self.places) {
            let next = StackId(number(self.nodes.len()).saturating_add(1));
            self.nodes.insert((node, frame), next);
            node = next;
            told(place, node);
        }
        Ok(node)
    }

    /// Returns how many frames and how many nodes have ids.
    #[must_use]
    pub fn len(&self) -> (usize, usize) {
        (self.frames.len(), self.nodes.len())
    }

    /// Whether nothing has an id yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// Forgets all ids; memory is kept.
    pub fn clear(&mut self) {
        self.frames.clear();
        self.nodes.clear();
    }
}

/// Ids are 32 bits: a sink refuses definitions long before they run out.
fn number(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}
