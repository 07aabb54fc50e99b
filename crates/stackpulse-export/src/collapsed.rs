//! Collapsed stacks: `comm;root;...;leaf COUNT`, one line a distinct stack, as flame graph tools read them.

use crate::profile::{Function, Mode, Profile};
use std::collections::BTreeMap;
use std::io::{self, Write};

/// Writes the profile's distinct stacks, sorted by text.
///
/// Kernel functions end in `_[k]`; a function without a name shows its module and address. Semicolons
/// and control characters in names are replaced, since they end names here.
///
/// # Errors
///
/// Those of `out`.
pub fn write_collapsed(profile: &Profile, mut out: impl Write) -> io::Result<()> {
    let labels: Vec<String> = profile.functions.iter().map(label).collect();
    let mut lines: BTreeMap<String, u64> = BTreeMap::new();
    for (&stack, &count) in &profile.stacks.counts {
        let mut functions: Vec<&str> = Vec::new();
        for place in profile.stacks.places_of(stack) {
            functions.extend(
                profile.calls[place as usize]
                    .iter()
                    .map(|call| labels[call.function.0 as usize].as_str()),
            );
        }
        let comm = String::from_utf8_lossy(&profile.stacks.comms[stack.actor.comm as usize]);
        let mut line = clean(if comm.is_empty() { "[unknown]" } else { &comm });
        for function in functions.iter().rev() {
            line.push(';');
            line.push_str(function);
        }
        *lines.entry(line).or_default() += count;
    }
    for (line, count) in lines {
        writeln!(out, "{line} {count}")?;
    }
    out.flush()
}

fn label(function: &Function) -> String {
    let mut label = clean(&function.label());
    if function.mode == Mode::Kernel {
        label.push_str("_[k]");
    }
    label
}

fn clean(name: &str) -> String {
    name.chars()
        .map(|c| match c {
            ';' => ':',
            c if c.is_control() => '?',
            c => c,
        })
        .collect()
}
