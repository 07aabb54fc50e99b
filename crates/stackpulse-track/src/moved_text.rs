//! Text that was moved: a file's code that a program copied over itself, into memory of no file, to have it in huge pages.
//!
//! Such memory is a hole in the file's mappings, and holds the bytes that the file's *layout* has there:
//!
//! ```text
//!   1000 r-xp 00010000 /prog        the text begins
//!   2000 r-xp 00000000              a hole: the bytes of /prog from 0x11000 on
//!   4000 r-xp 00013000 /prog        the text goes on, 0x3000 bytes behind its beginning in both
//! ```
//!
//! The text may be gone up to one of its ends; then the file's neighbouring segment is on that side, which need not be at the same
//! distance in memory as in the file. Generated code that happens to lie beside a library is at no layout of it.

use crate::images::Images;
use crate::maps::MapsLine;
use stackpulse_unwind::{AddressSpace, Shown};
use std::ops::Range;

/// Neighbouring segments may share a page of their file; both then show it.
const PAGE_BYTES: u64 = 0x1000;

/// Memory of no file, and what lies before and behind it.
struct Hole<'a> {
    avma: Range<u64>,
    before: Option<&'a MapsLine>,
    behind: Option<&'a MapsLine>,
}

impl<'a> Hole<'a> {
    /// Returns which file's code it holds, by a line that shows the file, and the offset that it begins with.
    fn original(&self) -> Option<(&'a MapsLine, u64)> {
        let Range { start, end } = self.avma;
        let before = self.before.filter(|before| before.end_avma == start && is_file(before));
        let behind = self.behind.filter(|behind| is_file(behind))?;
        // Where a file begins with its text, nothing of it is before.
        let by_behind = behind.start_avma.checked_sub(start);
        let by_behind = by_behind.and_then(|distance| behind.file_offset.checked_sub(distance));
        if by_behind == Some(0) && behind.executable && behind.start_avma == end {
            return Some((behind, 0));
        }
        let before = before.filter(|before| is_same_file(before, behind))?;
        let by_before = before.file_offset.checked_add(start - before.start_avma)?;
        let offset = match (before.executable, behind.executable) {
            (true, false) => {
                let offset_end = by_before.checked_add(end - start)?;
                (offset_end <= behind.file_offset.saturating_add(PAGE_BYTES)).then_some(by_before)
            }
            (false, true) if behind.start_avma == end => {
                by_behind.filter(|&offset| by_before <= offset.saturating_add(PAGE_BYTES))
            }
            _ => by_behind.filter(|&offset| offset == by_before),
        }?;
        Some((before, offset))
    }
}

/// Returns what each line shows, as far as it is executable: its file, or the file whose text it holds.
pub(crate) fn shown<'a>(
    lines: &'a [MapsLine],
    images: &'a mut Images,
) -> impl Iterator<Item = (&'a MapsLine, Shown)> {
    let mut hole = Hole { avma: 0..0, before: None, behind: None };
    lines.iter().enumerate().filter_map(move |(at, line)| {
        if is_memory(line) && !hole.avma.contains(&line.start_avma) {
            hole = hole_at(lines, at);
        }
        if !line.executable {
            return None;
        }
        let original = if hole.avma.contains(&line.start_avma) { hole.original() } else { None };
        let shown = match original {
            Some((original, offset)) => {
                let offset = offset.wrapping_add(line.start_avma - hole.avma.start);
                images.shown(&original.path, &original.file, offset)
            }
            None => images.shown(&line.path, &line.file, line.file_offset),
        };
        Some((line, shown))
    })
}

/// The hole that a line is the first of.
fn hole_at(lines: &[MapsLine], first: usize) -> Hole<'_> {
    let mut end = first;
    let mut end_avma = lines[first].start_avma;
    while let Some(line) =
        lines.get(end).filter(|line| is_memory(line) && line.start_avma == end_avma)
    {
        end_avma = line.end_avma;
        end += 1;
    }
    Hole {
        avma: lines[first].start_avma..end_avma,
        before: first.checked_sub(1).and_then(|before| lines.get(before)),
        behind: lines.get(end),
    }
}

/// Returns what memory of no file shows that was mapped over a range where a process's images were: still the image, if that is
/// still around it. `lines` are the maps as they are now; none: that cannot be known.
pub(crate) fn mapped_over(
    space: &AddressSpace,
    avma: &Range<u64>,
    (lines, images): (&[MapsLine], &mut Images),
) -> Option<Shown> {
    let covered = covered(space, avma);
    let is_here = |line: &MapsLine| (line.start_avma..line.end_avma).contains(&avma.start);
    let Some(at) = lines.iter().position(|line| is_here(line) && is_memory(line)) else {
        return covered;
    };
    let (here, shown_now) = shown(lines, images).find(|(line, _)| is_here(line))?;
    if let Shown::Image { image, file_offset } = shown_now {
        return Some(Shown::Image {
            image,
            file_offset: file_offset.wrapping_add(avma.start - here.start_avma),
        });
    }
    let Some(Shown::Image { image, .. }) = covered else { return None };
    // Neither end of the text is left; the file's other segments are.
    let before = lines[..at].iter().rfind(|line| !is_memory(line));
    let behind = lines[at..].iter().find(|line| !is_memory(line));
    let is_around = before.into_iter().chain(behind).any(|line| {
        let shown = images.shown(&line.path, &line.file, line.file_offset);
        matches!(shown, Shown::Image { image: shown, .. } if shown == image)
    });
    covered.filter(|_| is_around)
}

/// What a range shows, if that is one image throughout, at one layout.
fn covered(space: &AddressSpace, avma: &Range<u64>) -> Option<Shown> {
    let at = |avma: u64| {
        let region = space.find(avma)?;
        let Shown::Image { image, file_offset } = region.shown else { return None };
        Some((image, file_offset.wrapping_add(avma - region.start_avma), region.end_avma))
    };
    let (image, file_offset, mut end_avma) = at(avma.start)?;
    while end_avma < avma.end {
        let (next, offset, next_end) = at(end_avma)?;
        if next != image || offset.wrapping_sub(file_offset) != end_avma - avma.start {
            return None;
        }
        end_avma = next_end;
    }
    Some(Shown::Image { image, file_offset })
}

fn is_file(line: &MapsLine) -> bool {
    line.path.first() == Some(&b'/') && !is_memory(line)
}

/// Whether a line shows memory that no file's name stands for.
fn is_memory(line: &MapsLine) -> bool {
    let names: [&[u8]; 4] = [b"[anon:", b"/anon_hugepage", b"/memfd:", b"//anon"];
    line.path.is_empty() || names.iter().any(|name| line.path.starts_with(name))
}

fn is_same_file(one: &MapsLine, other: &MapsLine) -> bool {
    one.file == other.file && one.path == other.path
}
