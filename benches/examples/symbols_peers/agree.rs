//! Whether all say the same: function, line and depth of inlined calls, address by address.

use crate::peers::{self, Frame};
use std::collections::BTreeMap;
use std::error::Error;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// So many differences of a kind are shown.
const SHOWN: usize = 3;

/// Compares our answers with those of others, and counts the differences by kind.
pub(crate) fn run(program: &Path, addresses: &[u64]) -> Result<(), Box<dyn Error>> {
    let ours = peers::stackpulse(program, addresses)?;
    let others = [
        ("llvm-symbolizer", llvm(program, addresses)?),
        ("addr2line", peers::addr2line(program, addresses)?),
    ];
    for (name, theirs) in others {
        if theirs.len() != ours.len() {
            return Err(format!("{name} answers {} of {}", theirs.len(), ours.len()).into());
        }
        let mut kinds: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for ((address, ours), theirs) in addresses.iter().zip(&ours).zip(&theirs) {
            let Some(kind) = difference(ours, theirs) else { continue };
            let text = format!("{address:#x}\n    ours   {ours:?}\n    theirs {theirs:?}");
            kinds.entry(kind).or_default().push(text);
        }
        let differing: usize = kinds.values().map(Vec::len).sum();
        println!("{name}: {} of {} agree", ours.len() - differing, ours.len());
        for (kind, differences) in kinds {
            println!("  {kind}: {}", differences.len());
            for text in differences.iter().take(SHOWN) {
                println!("   {text}");
            }
        }
    }
    Ok(())
}

/// What is not the same.
fn difference(ours: &[Frame], theirs: &[Frame]) -> Option<&'static str> {
    let is_nameless = |frames: &[Frame]| frames.iter().all(|frame| frame.function.is_none());
    match (is_nameless(ours), is_nameless(theirs)) {
        (true, true) => return None,
        (true, false) => return Some("no name here"),
        (false, true) => return Some("no name there"),
        (false, false) => {}
    }
    if ours.len() != theirs.len() {
        return Some("depth of inlined calls");
    }
    let mut pairs = ours.iter().zip(theirs);
    if pairs.clone().any(|(a, b)| a.function != b.function) {
        return Some("function");
    }
    pairs.any(|(a, b)| a.line != b.line).then_some("line")
}

/// What llvm-symbolizer says.
fn llvm(program: &Path, addresses: &[u64]) -> Result<Vec<Vec<Frame>>, Box<dyn Error>> {
    let mut child = Command::new("llvm-symbolizer")
        .args(["--inlines", "--no-demangle", "--obj"])
        .arg(program)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("run llvm-symbolizer (package llvm): {error}"))?;
    let mut input = child.stdin.take().ok_or("no input")?;
    let lines: String = addresses.iter().map(|address| format!("{address:#x}\n")).collect();
    let writer = std::thread::spawn(move || input.write_all(lines.as_bytes()));
    let output = child.wait_with_output()?;
    writer.join().map_err(|_| "the writer panicked")??;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok(text.trim_end().split("\n\n").map(frames).collect())
}

fn frames(answer: &str) -> Vec<Frame> {
    let known = |text: &str| (text != "??").then(|| text.to_owned());
    let lines: Vec<&str> = answer.trim().lines().collect();
    let frames = lines.chunks_exact(2).map(|pair| {
        let mut place = pair[1].rsplitn(3, ':').skip(1);
        let line = place.next().and_then(|text| text.parse().ok()).unwrap_or_default();
        Frame { function: known(pair[0]), file: place.next().and_then(known), line }
    });
    frames.collect()
}
