//! The call tree from the outermost function down.

use rustc_hash::FxHashMap;
use stackpulse_export::{Call, FunctionId, Profile};

/// Functions by who called them; node zero is the root, which is no function.
#[derive(Debug, Default)]
pub(crate) struct CallTree {
    nodes: Vec<TreeNode>,
    index: FxHashMap<(u32, FunctionId), u32>,
}

/// One function under one chain of others.
#[derive(Clone, Copy, Debug, Default)]
struct TreeNode {
    parent: u32,
    function: Option<FunctionId>,
    own: u64,
    total: u64,
}

/// One row of a tree, in the order to print.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TreeRow {
    /// How deep it lies, from zero.
    pub(crate) depth: usize,
    /// The function.
    pub(crate) function: FunctionId,
    /// Samples that end there.
    pub(crate) own: u64,
    /// Samples that go through it.
    pub(crate) total: u64,
}

/// Grows the tree of what each function called.
pub(crate) fn callee_tree(profile: &Profile) -> CallTree {
    let mut tree = CallTree::new();
    // A parent's index is smaller than its children's, so its place in the tree is known.
    let mut place_in_tree = vec![0u32; profile.stacks.nodes.len()];
    for (at, node) in profile.stacks.nodes.iter().enumerate().skip(1) {
        let calls = &profile.calls[node.place as usize];
        place_in_tree[at] = tree.descend(place_in_tree[node.parent as usize], calls);
    }
    for (&stack, &count) in &profile.stacks.counts {
        let calls = &profile.calls[stack.leaf as usize];
        let at = tree.descend(place_in_tree[stack.callers as usize], calls);
        tree.add(at, count);
    }
    tree.sum_up();
    tree
}

impl CallTree {
    pub(super) fn new() -> Self {
        Self { nodes: vec![TreeNode::default()], index: FxHashMap::default() }
    }

    /// Goes from a node to the innermost of these calls, which are innermost first.
    fn descend(&mut self, from: u32, calls: &[Call]) -> u32 {
        calls.iter().rev().fold(from, |at, call| self.child(at, call.function))
    }

    /// Returns the node of `function` under `parent`, made if there was none.
    pub(super) fn child(&mut self, parent: u32, function: FunctionId) -> u32 {
        let next = u32::try_from(self.nodes.len()).expect("a tree of fewer than 2^32 nodes");
        let at = *self.index.entry((parent, function)).or_insert(next);
        if at == next {
            self.nodes.push(TreeNode { parent, function: Some(function), own: 0, total: 0 });
        }
        at
    }

    /// Counts samples that end at a node.
    pub(super) fn add(&mut self, at: u32, samples: u64) {
        self.nodes[at as usize].own += samples;
    }

    /// Computes each node's total from those of its children.
    pub(super) fn sum_up(&mut self) {
        for at in (0..self.nodes.len()).rev() {
            let node = &mut self.nodes[at];
            node.total += node.own;
            let (parent, total) = (node.parent as usize, node.total);
            if at != 0 {
                self.nodes[parent].total += total;
            }
        }
    }

    /// Returns the nodes with at least `least` samples, each before its children, siblings by falling total.
    pub(crate) fn rows(&self, least: u64) -> Vec<TreeRow> {
        let mut children: FxHashMap<u32, Vec<u32>> = FxHashMap::default();
        for (at, node) in (0u32..).zip(&self.nodes).skip(1) {
            if node.total >= least.max(1) {
                children.entry(node.parent).or_default().push(at);
            }
        }
        for siblings in children.values_mut() {
            // The hottest is taken first, from the end.
            siblings.sort_by_key(|&at| (self.nodes[at as usize].total, std::cmp::Reverse(at)));
        }
        let mut rows = Vec::new();
        let mut pending: Vec<(u32, usize)> =
            children.get(&0).into_iter().flatten().map(|&at| (at, 0)).collect();
        while let Some((at, depth)) = pending.pop() {
            let node = self.nodes[at as usize];
            if let Some(function) = node.function {
                rows.push(TreeRow { depth, function, own: node.own, total: node.total });
            }
            pending.extend(children.get(&at).into_iter().flatten().map(|&at| (at, depth + 1)));
        }
        rows
    }
}
