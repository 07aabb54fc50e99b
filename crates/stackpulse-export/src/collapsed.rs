//! Collapsed stacks: `comm;root;...;leaf COUNT`, one line a distinct stack, as flame graph tools read them.

use crate::names::one_name;
use crate::profile::{Function, Mode, Profile};
use crate::tree::CallTree;
use std::io::{self, Write};

/// Writes the profile's distinct stacks, those of one caller together, callees sorted by name.
///
/// Kernel functions end in `_[k]`; a function without a name shows its module and address. Semicolons
/// and control characters in names are replaced, since they end names here.
///
/// # Errors
///
/// Those of `out`.
pub fn write_collapsed(profile: &Profile, mut out: impl Write) -> io::Result<()> {
    Counted::new(profile).lines(1, |line| {
        out.write_all(line.as_bytes())?;
        out.write_all(b"\n")
    })?;
    out.flush()
}

/// A tree of calls with comms as roots, and samples at each node.
pub(crate) struct Counted<'a> {
    tree: CallTree<'a>,
    names: Vec<String>,
    own: Vec<u64>,
    total: Vec<u64>,
}

impl<'a> Counted<'a> {
    pub(crate) fn new(profile: &'a Profile) -> Self {
        let mut tree = CallTree::new(profile);
        let mut own = Vec::new();
        for (&stack, &count) in &profile.stacks.counts {
            let comm = tree.comm(stack.actor.comm);
            let root = tree.child(0, comm);
            let leaf = tree.add(root, stack) as usize;
            if own.len() <= leaf {
                own.resize(leaf + 1, 0);
            }
            own[leaf] += count;
        }
        own.resize(tree.parents.len(), 0);
        let mut total = own.clone();
        for at in (1..total.len()).rev() {
            total[tree.parents[at] as usize] += total[at];
        }
        let comm = |comm: &Vec<u8>| match &*String::from_utf8_lossy(comm) {
            "" => "[unknown]".to_owned(),
            comm => one_name(comm),
        };
        let names =
            profile.functions.iter().map(label).chain(profile.stacks.comms.iter().map(comm));
        Self { names: names.collect(), tree, own, total }
    }

    /// Samples in all.
    pub(crate) fn samples(&self) -> u64 {
        self.total[0]
    }

    /// Tells each stack as a line. What fewer than `least` samples share is told as its caller.
    pub(crate) fn lines(
        &self,
        least: u64,
        mut tell: impl FnMut(&str) -> io::Result<()>,
    ) -> io::Result<()> {
        let children = self.children();
        let mut line = String::new();
        // Nodes to visit, each with the length of its caller's line.
        let mut pending: Vec<(u32, usize)> = vec![(0, 0)];
        while let Some((node, length)) = pending.pop() {
            let at = node as usize;
            line.truncate(length);
            if node != 0 {
                if length > 0 {
                    line.push(';');
                }
                line.push_str(&self.names[self.tree.labels[at].0 as usize]);
            }
            let inside = line.len();
            let mut own = self.own[at];
            for &child in children.of(node).iter().rev() {
                if self.total[child as usize] >= least {
                    pending.push((child, inside));
                } else {
                    own += self.total[child as usize];
                }
            }
            if own > 0 && node != 0 {
                line.push_str(&format!(" {own}"));
                tell(&line)?;
                line.truncate(inside);
            }
        }
        Ok(())
    }

    fn children(&self) -> Children {
        let mut sorted: Vec<u32> = (1u32..).take(self.tree.parents.len() - 1).collect();
        let name = |node: u32| &self.names[self.tree.labels[node as usize].0 as usize];
        sorted.sort_unstable_by(|&a, &b| {
            let parent = |node: u32| self.tree.parents[node as usize];
            (parent(a), name(a), a).cmp(&(parent(b), name(b), b))
        });
        let mut starts = vec![0u32; self.tree.parents.len() + 1];
        for &parent in &self.tree.parents[1..] {
            starts[parent as usize + 1] += 1;
        }
        for at in 1..starts.len() {
            starts[at] += starts[at - 1];
        }
        Children { sorted, starts }
    }
}

/// The children of each node.
struct Children {
    sorted: Vec<u32>,
    /// Where those of each node begin.
    starts: Vec<u32>,
}

impl Children {
    fn of(&self, node: u32) -> &[u32] {
        let at = node as usize;
        &self.sorted[self.starts[at] as usize..self.starts[at + 1] as usize]
    }
}

fn label(function: &Function) -> String {
    let mut label = one_name(&function.label());
    if function.mode == Mode::Kernel {
        label.push_str("_[k]");
    }
    label
}
