//! Stacks as one tree of calls, whatever the addresses in them: each distinct stack is walked once.

use crate::profile::Profile;
use crate::stacks::StackKey;
use rustc_hash::FxHashMap;

/// What a node of the tree shows: a function, or a comm as the root of its stacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Label(pub(crate) u32);

/// A tree of calls, grown as stacks are added. Node zero is above all; a parent's index is smaller than its children's.
#[derive(Debug)]
pub(crate) struct CallTree<'a> {
    profile: &'a Profile,
    pub(crate) parents: Vec<u32>,
    pub(crate) labels: Vec<Label>,
    pub(crate) depths: Vec<u32>,
    children: FxHashMap<(u32, Label), u32>,
    /// Where the callers of a stack end, by the node they start from.
    known: FxHashMap<(u32, u32), u32>,
    pending: Vec<u32>,
}

impl<'a> CallTree<'a> {
    pub(crate) fn new(profile: &'a Profile) -> Self {
        Self {
            profile,
            parents: vec![0],
            labels: vec![Label(u32::MAX)],
            depths: vec![0],
            children: FxHashMap::default(),
            known: FxHashMap::default(),
            pending: Vec::new(),
        }
    }

    /// The label of a comm.
    pub(crate) fn comm(&self, comm: u32) -> Label {
        let functions = u32::try_from(self.profile.functions.len()).unwrap_or(u32::MAX);
        Label(functions.saturating_add(comm))
    }

    /// Returns the child with this label, made if there is none.
    pub(crate) fn child(&mut self, parent: u32, label: Label) -> u32 {
        let next = u32::try_from(self.parents.len()).expect("fewer than 2^32 nodes");
        let at = *self.children.entry((parent, label)).or_insert(next);
        if at == next {
            self.parents.push(parent);
            self.labels.push(label);
            self.depths.push(self.depths[parent as usize].saturating_add(1));
        }
        at
    }

    /// Adds a stack below `root` and returns the node of its innermost call.
    pub(crate) fn add(&mut self, root: u32, stack: StackKey) -> u32 {
        let profile = self.profile;
        let mut node = stack.callers;
        let mut at = loop {
            if node == 0 {
                break root;
            }
            if let Some(&at) = self.known.get(&(root, node)) {
                break at;
            }
            self.pending.push(node);
            node = profile.stacks.nodes[node as usize].parent;
        };
        while let Some(node) = self.pending.pop() {
            at = self.descend(at, profile.stacks.nodes[node as usize].place);
            self.known.insert((root, node), at);
        }
        self.descend(at, stack.leaf)
    }

    fn descend(&mut self, mut at: u32, place: u32) -> u32 {
        for call in self.profile.calls[place as usize].iter().rev() {
            at = self.child(at, Label(call.function.0));
        }
        at
    }

    /// Calls `close` for each node left and then `open` for each node entered on the way from one node to another.
    pub(crate) fn go(
        &self,
        from: u32,
        to: u32,
        mut step: impl FnMut(Step, Label) -> std::io::Result<()>,
    ) -> std::io::Result<()> {
        let (mut left, mut entered, mut path) = (from, to, Vec::new());
        while left != entered {
            if self.depths[left as usize] >= self.depths[entered as usize] {
                step(Step::Close, self.labels[left as usize])?;
                left = self.parents[left as usize];
            } else {
                path.push(entered);
                entered = self.parents[entered as usize];
            }
        }
        path.iter().rev().try_for_each(|&node| step(Step::Open, self.labels[node as usize]))
    }
}

/// A step between two stacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// A call has ended.
    Close,
    /// A call has begun.
    Open,
}
