//! Self and total samples of anything a call belongs to.

use stackpulse_export::{Call, Profile};

/// Samples in which something ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Count {
    /// It was the innermost.
    pub(crate) own: u64,
    /// It was anywhere in the stack; recursion counts once.
    pub(crate) total: u64,
}

/// Sums the samples of `keys` things, where `key` says to which of them a call belongs.
///
/// The tree of callers is walked once, whatever the number of samples: a node's samples are those of all nodes
/// inside it, and they count for a thing unless one of the node's callers belongs to it already.
pub(crate) fn totals(profile: &Profile, keys: usize, key: impl Fn(&Call) -> usize) -> Vec<Count> {
    let mut leaves = leaves_by_node(profile);
    leaves.sort_unstable();
    let subtree = subtree_samples(profile, &leaves);
    let children = Children::of(profile);
    let mut walk = Walk { counts: vec![Count::default(); keys], on_path: vec![0; keys] };
    let keys_of = |place: u32| profile.calls[place as usize].iter().map(&key);

    // Each entry of the stack is a node to enter, or (second field) to leave.
    let mut pending = vec![(0u32, false)];
    while let Some((node, leaving)) = pending.pop() {
        let place = profile.stacks.nodes[node as usize].place;
        if leaving {
            keys_of(place).for_each(|key| walk.on_path[key] -= 1);
            continue;
        }
        if subtree[node as usize] == 0 {
            continue;
        }
        if node != 0 {
            pending.push((node, true));
            keys_of(place).for_each(|key| walk.enter(key, subtree[node as usize]));
        }
        let first = leaves.partition_point(|&(at, _, _)| at < node);
        for &(_, leaf, count) in leaves[first..].iter().take_while(|&&(at, _, _)| at == node) {
            keys_of(leaf).for_each(|key| walk.enter(key, count));
            keys_of(leaf).take(1).for_each(|key| walk.counts[key].own += count);
            keys_of(leaf).for_each(|key| walk.on_path[key] -= 1);
        }
        pending.extend(children.of_node(node).iter().map(|&child| (child, false)));
    }
    walk.counts
}

struct Walk {
    counts: Vec<Count>,
    /// How many of the calls on the way to the current node belong to the thing.
    on_path: Vec<u32>,
}

impl Walk {
    fn enter(&mut self, key: usize, samples: u64) {
        if self.on_path[key] == 0 {
            self.counts[key].total += samples;
        }
        self.on_path[key] += 1;
    }
}

/// Samples by the node of their callers and their leaf, actors brought together.
fn leaves_by_node(profile: &Profile) -> Vec<(u32, u32, u64)> {
    let counts = profile.stacks.counts.iter();
    counts.map(|(stack, &count)| (stack.callers, stack.leaf, count)).collect()
}

/// For each node the samples at it and inside it.
fn subtree_samples(profile: &Profile, leaves: &[(u32, u32, u64)]) -> Vec<u64> {
    let mut samples = vec![0; profile.stacks.nodes.len()];
    for &(node, _, count) in leaves {
        samples[node as usize] += count;
    }
    // A parent's index is smaller than its children's.
    for at in (1..samples.len()).rev() {
        samples[profile.stacks.nodes[at].parent as usize] += samples[at];
    }
    samples
}

/// The children of every node, in one allocation.
struct Children {
    /// Where each node's children begin in `nodes`; one more than there are nodes.
    starts: Vec<u32>,
    nodes: Vec<u32>,
}

impl Children {
    fn of(profile: &Profile) -> Self {
        let nodes = &profile.stacks.nodes;
        let mut starts = vec![0u32; nodes.len() + 1];
        for node in &nodes[1..] {
            starts[node.parent as usize + 1] += 1;
        }
        for at in 1..starts.len() {
            starts[at] += starts[at - 1];
        }
        let mut next = starts.clone();
        let mut children = vec![0; nodes.len() - 1];
        for (at, node) in (1u32..).zip(&nodes[1..]) {
            let slot = &mut next[node.parent as usize];
            children[*slot as usize] = at;
            *slot += 1;
        }
        Self { starts, nodes: children }
    }

    fn of_node(&self, node: u32) -> &[u32] {
        let node = node as usize;
        &self.nodes[self.starts[node] as usize..self.starts[node + 1] as usize]
    }
}
