//! The text of `perf script`, read by inferno.

use super::{export, shares};
use crate::harness::{Scene, stacks};
use inferno::collapse::{Collapse, perf};
use std::collections::BTreeMap;

/// Samples by stack, those of one stack together.
fn counts(lines: &[(Vec<String>, u64)]) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for (stack, count) in lines {
        *counts.entry(stack.join(";")).or_default() += count;
    }
    counts
}

#[test]
fn inferno_collapses_perf_script_text_to_our_stacks() {
    let scene = Scene::new();
    let spool = shares(&scene);
    let script = export(&scene, &spool, "out.perf.txt", &[]);
    let mut collapsed = Vec::new();
    let mut folder = perf::Folder::from(perf::Options::default());
    folder.collapse(std::fs::read(script).unwrap().as_slice(), &mut collapsed).unwrap();
    let text = String::from_utf8(collapsed).unwrap();
    let read: BTreeMap<String, u64> = text
        .lines()
        .map(|line| line.rsplit_once(' ').unwrap())
        .map(|(stack, count)| (stack.to_owned(), count.parse().unwrap()))
        .collect();
    let ours = counts(&stacks(&spool));
    let leaf = |(stack, _): &(&String, &u64)| stack.ends_with("middle_sixty;leaf_sixty");
    assert!(ours.iter().any(|entry| leaf(&entry)), "{ours:?}");
    // Inferno adds up weights, which are about the same for all samples of a timer.
    let share = |part: u64, map: &BTreeMap<String, u64>| part * 10_000 / map.values().sum::<u64>();
    for (stack, count) in ours.iter().filter(|(stack, _)| !stack.contains("[unknown]")) {
        let weight = *read.get(stack).unwrap_or_else(|| panic!("{stack} is not in {text}"));
        let (theirs, own) = (share(weight, &read), share(*count, &ours));
        assert!(theirs.abs_diff(own) < 300, "{stack}: {theirs} for {own} in 10,000");
    }
}
