//! The call tree from the hottest function up to its callers.

use super::tree::CallTree;
use rustc_hash::FxHashMap;
use stackpulse_export::{FunctionId, Profile, StackKey};

/// Grows the tree of who called each function, leaving out branches of fewer than `least` samples.
///
/// A level is grown only where enough samples go on, so that rare stacks cost one step each.
pub(crate) fn caller_tree(profile: &Profile, least: u64) -> CallTree {
    let mut tree = CallTree::new();
    let stacks = profile.stacks.counts.iter();
    let branch = Branch {
        at: 0,
        stacks: stacks.map(|(&stack, &count)| (Cursor::at_leaf(stack), count)).collect(),
    };
    let mut pending = vec![branch];
    while let Some(branch) = pending.pop() {
        let mut next: FxHashMap<FunctionId, Vec<(Cursor, u64)>> = FxHashMap::default();
        for (cursor, count) in branch.stacks {
            match cursor.call(profile) {
                Some((function, outer)) => next.entry(function).or_default().push((outer, count)),
                None => tree.add(branch.at, count),
            }
        }
        for (function, stacks) in next {
            let samples: u64 = stacks.iter().map(|&(_, count)| count).sum();
            let at = tree.child(branch.at, function);
            if samples < least {
                tree.add(at, samples);
            } else {
                pending.push(Branch { at, stacks });
            }
        }
    }
    tree.sum_up();
    tree
}

/// Stacks that share their inner part.
struct Branch {
    at: u32,
    stacks: Vec<(Cursor, u64)>,
}

/// A place in one stack, on its way outwards.
#[derive(Clone, Copy)]
struct Cursor {
    /// The node of the callers still to come.
    callers: u32,
    /// The place, and how many of its calls have been passed.
    place: Option<u32>,
    call: usize,
}

impl Cursor {
    fn at_leaf(stack: StackKey) -> Self {
        Self { callers: stack.callers, place: Some(stack.leaf), call: 0 }
    }

    /// Returns the function here and the cursor of its caller; `None` outside the outermost.
    fn call(self, profile: &Profile) -> Option<(FunctionId, Self)> {
        let calls = &profile.calls[self.place? as usize];
        let function = calls.get(self.call)?.function;
        if self.call + 1 < calls.len() {
            return Some((function, Self { call: self.call + 1, ..self }));
        }
        let outer = match self.callers {
            0 => Self { place: None, ..self },
            node => {
                let node = profile.stacks.nodes[node as usize];
                Self { callers: node.parent, place: Some(node.place), call: 0 }
            }
        };
        Some((function, outer))
    }
}
