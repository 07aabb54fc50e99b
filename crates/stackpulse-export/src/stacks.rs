//! Samples counted by distinct stack: plain data, apart from any spool.

use crate::timeline::Timeline;
use rustc_hash::FxHashMap;
use stackpulse_spool::{ImageId, OwnedImage, Truncation};

/// A place in a stack, its image counted over the whole profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// Code: an index into [`Stacks::images`] and the address in it.
    Code {
        /// Index of the image.
        image: u32,
        /// The address to look up.
        address: u64,
    },
    /// In the place of frames that are missing.
    Truncated(Truncation),
    /// Outside this, the frames come from an earlier stack of the thread.
    Joined,
}

/// A node of the tree of callers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node {
    /// The node of its callers: a smaller index; zero for the outermost.
    pub parent: u32,
    /// Index into [`Stacks::places`].
    pub place: u32,
}

/// A process of the profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProfileProcess {
    /// The pid in the recorder's namespace.
    pub pid: u32,
    /// How many earlier processes of the recording had the same pid.
    pub generation: u32,
    /// The parent: an index into [`Stacks::processes`].
    pub parent: Option<u32>,
    /// Its last comm.
    pub comm: Vec<u8>,
    /// Its last arguments, each ended by a NUL byte.
    pub command_line: Vec<u8>,
    /// When it was first seen.
    pub start_ns: u64,
    /// When its last thread ended, if it did.
    pub end_ns: Option<u64>,
}

/// A thread of the profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProfileThread {
    /// Index into [`Stacks::processes`].
    pub process: u32,
    /// The tid in the recorder's namespace.
    pub tid: u32,
    /// Its last name, if one was told apart from the process's comm.
    pub name: Option<Vec<u8>>,
    /// When it was first seen.
    pub start_ns: u64,
    /// When it ended, if it did.
    pub end_ns: Option<u64>,
}

/// Whose stack it is: the thread, and the comm it went by at that time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Actor {
    /// Index into [`Stacks::threads`].
    pub thread: u32,
    /// Index into [`Stacks::comms`].
    pub comm: u32,
}

/// One distinct stack of one actor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StackKey {
    /// Whose.
    pub actor: Actor,
    /// The node of the callers; zero: none.
    pub callers: u32,
    /// The innermost place: index into [`Stacks::places`].
    pub leaf: u32,
}

/// A name for code made at run time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedName {
    /// Index of the image.
    pub image: u32,
    /// First address.
    pub address: u64,
    /// Length in bytes; zero: up to the next name.
    pub size: u64,
    /// The name.
    pub name: Vec<u8>,
}

/// All samples of a spool, counted by distinct stack; ids of all epochs brought together.
#[derive(Clone, Debug)]
pub struct Stacks {
    /// Distinct images.
    pub images: Vec<OwnedImage>,
    /// For each image the epochs and ids by which the spool knew it.
    pub image_ids: Vec<Vec<(u32, ImageId)>>,
    /// Distinct places.
    pub places: Vec<Place>,
    /// The tree of callers. Node zero is the empty stack.
    pub nodes: Vec<Node>,
    /// Processes.
    pub processes: Vec<ProfileProcess>,
    /// Threads.
    pub threads: Vec<ProfileThread>,
    /// Distinct comms.
    pub comms: Vec<Vec<u8>>,
    /// Samples of each distinct stack.
    pub counts: FxHashMap<StackKey, u64>,
    /// Names recorded with the samples.
    pub names: Vec<RecordedName>,
    /// All samples that are counted.
    pub total: u64,
    /// Samples that a filter left out.
    pub left_out: u64,
    /// When the samples were taken, if the loader was asked for it.
    pub timeline: Option<Timeline>,
}

impl Default for Stacks {
    fn default() -> Self {
        Self {
            images: Vec::new(),
            image_ids: Vec::new(),
            places: Vec::new(),
            nodes: vec![Node { parent: 0, place: 0 }],
            processes: Vec::new(),
            threads: Vec::new(),
            comms: Vec::new(),
            counts: FxHashMap::default(),
            names: Vec::new(),
            total: 0,
            left_out: 0,
            timeline: None,
        }
    }
}

impl Stacks {
    /// Returns for each image its addresses, ascending, each with the index of its place.
    #[must_use]
    pub fn places_by_image(&self) -> Vec<Vec<(u64, u32)>> {
        let mut by_image = vec![Vec::new(); self.images.len()];
        for (at, place) in (0u32..).zip(&self.places) {
            if let Place::Code { image, address } = *place {
                by_image[image as usize].push((address, at));
            }
        }
        by_image.iter_mut().for_each(|places| places.sort_unstable());
        by_image
    }

    /// What to call a thread: its name, or its process's comm, with the tid.
    #[must_use]
    pub fn thread_label(&self, thread: usize) -> String {
        let ProfileThread { process, tid, ref name, .. } = self.threads[thread];
        let name = name.as_ref().unwrap_or(&self.processes[process as usize].comm);
        format!("{} ({tid})", String::from_utf8_lossy(name))
    }

    /// Returns a stack's places, innermost first.
    pub fn places_of(&self, stack: StackKey) -> impl Iterator<Item = u32> + '_ {
        let mut node = stack.callers;
        std::iter::once(stack.leaf).chain(std::iter::from_fn(move || {
            let at = *self.nodes.get(node as usize).filter(|_| node != 0)?;
            node = at.parent;
            Some(at.place)
        }))
    }
}
