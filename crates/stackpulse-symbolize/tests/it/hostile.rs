//! Files that were made to cost memory or time: they cost names.

use crate::dwarf_bytes::{ABBREVIATIONS, entries_of_unit, function, range, uleb, unit};
use crate::elf_file::{TEXT_SVMA, file};
use crate::harness::Scene;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use stackpulse_symbolize::{ImageQuery, Lookup, Reason, Symbolizer, SymbolizerOptions};
use std::ffi::OsStr;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

const PROGBITS: u32 = 1;
const SYMTAB: u32 = 2;
const STRTAB: u32 = 3;

fn answers(path: &Path, addresses: &[u64]) -> Vec<Lookup> {
    let options = SymbolizerOptions { max_memory_bytes: 64 << 20, ..SymbolizerOptions::default() };
    Symbolizer::new(options).symbolize(&ImageQuery::file(path), addresses)
}

/// What is said of an address in a file with these sections.
fn answer(sections: &[(&str, u32, &[u8])]) -> Lookup {
    let scene = Scene::new();
    std::fs::write(scene.path("prog"), file(sections)).unwrap();
    let mut answers = answers(&scene.path("prog"), &[TEXT_SVMA + 16]);
    answers.pop().unwrap()
}

/// The function's name, and how many calls there are.
fn name(lookup: &Lookup) -> Option<(&str, usize)> {
    match lookup {
        Lookup::Resolved { calls, .. } => Some((calls.last()?.function.as_deref()?, calls.len())),
        Lookup::Unresolved { .. } => None,
    }
}

fn with_debug_information(abbreviations: &[u8], info: &[u8]) -> Lookup {
    answer(&[(".debug_abbrev", PROGBITS, abbreviations), (".debug_info", PROGBITS, info)])
}

#[test]
fn a_sound_file_put_together_by_hand_has_names() {
    let entries = [entries_of_unit(), function(b"work"), vec![0, 0]].concat();
    assert_eq!(name(&with_debug_information(ABBREVIATIONS, &unit(&entries))), Some(("work", 1)));
}

#[test]
fn abbreviations_by_the_million_are_read_in_bounded_time() {
    let mut table = Vec::new();
    for code in 1..1_500_000u64 {
        table.extend(uleb(code + 3));
        table.extend([0x34, 0, 0, 0]);
    }
    table.extend(ABBREVIATIONS);
    // Every one of many units needs the last of them.
    let info = unit(&[entries_of_unit(), function(b"work"), vec![0, 0]].concat()).repeat(2_000);
    assert_eq!(name(&with_debug_information(&table, &info)), None);
}

#[test]
fn inlined_calls_nested_by_the_hundred_thousand_are_cut() {
    let mut entries = [entries_of_unit(), function(b"work")].concat();
    for _ in 0..100_000 {
        entries.push(3);
        entries.extend(range());
        entries.extend(0u32.to_le_bytes());
    }
    let lookup = with_debug_information(ABBREVIATIONS, &unit(&entries));
    // The innermost ones, and the function that they are all in.
    assert_eq!(name(&lookup), Some(("work", 257)));
}

#[test]
fn many_inlined_calls_at_many_addresses_end_in_bounded_time() {
    let mut entries = [entries_of_unit(), function(b"work")].concat();
    // Siblings that all claim all addresses.
    for _ in 0..400_000 {
        entries.push(3);
        entries.extend(range());
        entries.extend([0, 0, 0, 0, 0]);
    }
    let scene = Scene::new();
    let info = unit(&entries);
    let sections =
        [(".debug_abbrev", PROGBITS, ABBREVIATIONS), (".debug_info", PROGBITS, &info[..])];
    std::fs::write(scene.path("prog"), file(&sections)).unwrap();
    let addresses: Vec<u64> = (0..4096).map(|at| TEXT_SVMA + at).collect();
    assert_eq!(answers(&scene.path("prog"), &addresses).len(), addresses.len());
}

#[test]
fn origins_in_a_circle_have_no_name() {
    let head = [entries_of_unit(), function(b"work")].concat();
    let first = u32::try_from(11 + head.len()).unwrap();
    let inlined = |origin: u32| [&[3][..], &range(), &origin.to_le_bytes()].concat();
    let second = first + u32::try_from(inlined(0).len()).unwrap();
    let entries = [head, inlined(second), inlined(first), vec![0; 4]].concat();
    let lookup = with_debug_information(ABBREVIATIONS, &unit(&entries));
    let Lookup::Resolved { calls, .. } = &lookup else { panic!("{lookup:?}") };
    let names: Vec<_> = calls.iter().map(|call| call.function.as_deref()).collect();
    assert_eq!(names, [None, None, Some("work")]);
}

#[test]
fn bombs_are_not_unpacked() {
    let mut packed = ZlibEncoder::new(Vec::new(), Compression::best());
    for _ in 0..300 {
        packed.write_all(&vec![0; 1 << 20]).unwrap();
    }
    let packed = packed.finish().unwrap();
    // It says what it is, or that it is small.
    let kinds = [
        (300u64 << 20, Reason::OverBudget),
        (1 << 20, Reason::NoSymbol),
        (u64::MAX, Reason::OverBudget),
    ];
    for (stated, expected) in kinds {
        let bomb = [b"ZLIB", &stated.to_be_bytes()[..], &packed].concat();
        let sections =
            [(".debug_abbrev", PROGBITS, ABBREVIATIONS), (".zdebug_info", PROGBITS, &bomb[..])];
        let reason = match answer(&sections) {
            Lookup::Unresolved { reason, .. } => Some(reason),
            Lookup::Resolved { .. } => None,
        };
        assert_eq!(reason, Some(expected), "{stated}");
    }
}

/// A symbol for all of the code, and the names of symbols.
fn with_symbol(names: &[u8]) -> Lookup {
    let mut symbols = vec![0; 24];
    symbols.extend([1, 0, 0, 0, 0x12, 0, 1, 0]);
    symbols.extend(TEXT_SVMA.to_le_bytes().into_iter().chain(4096u64.to_le_bytes()));
    answer(&[(".symtab", SYMTAB, &symbols), (".strtab", STRTAB, names)])
}

#[test]
fn endless_names_are_cut() {
    let mut names = vec![b'a'; 100 << 20];
    names[0] = 0;
    let lookup = with_symbol(&names);
    assert_eq!(name(&lookup).map(|(name, _)| name.len()), Some(64 << 10));
}

#[test]
fn names_that_are_no_utf_8_are_shown_as_far_as_they_are() {
    assert_eq!(name(&with_symbol(b"\0f\xff\xfeg\0")), Some(("f\u{fffd}\u{fffd}g", 1)));
}

#[test]
fn paths_that_are_no_utf_8_are_opened() {
    let scene = Scene::new();
    let path = scene.path("").join(OsStr::from_bytes(b"prog\xff\xfe"));
    let entries = [entries_of_unit(), function(b"work"), vec![0, 0]].concat();
    let info = unit(&entries);
    let sections =
        [(".debug_abbrev", PROGBITS, ABBREVIATIONS), (".debug_info", PROGBITS, &info[..])];
    std::fs::write(&path, file(&sections)).unwrap();
    assert_eq!(name(&answers(&path, &[TEXT_SVMA])[0]), Some(("work", 1)));
}

#[test]
fn a_file_that_changes_while_it_is_read_costs_names_only() {
    let scene = Scene::new();
    let entries = [entries_of_unit(), function(b"work"), vec![0, 0]].concat();
    let info = unit(&entries);
    let sections =
        [(".debug_abbrev", PROGBITS, ABBREVIATIONS), (".debug_info", PROGBITS, &info[..])];
    let (whole, path) = (file(&sections), scene.path("prog"));
    std::fs::write(&path, &whole).unwrap();
    let (sender, receiver) = std::sync::mpsc::channel::<()>();
    std::thread::scope(|scope| {
        let path = &path;
        scope.spawn(move || {
            // Shorter, longer, and other files in its place until the reader is done.
            let mut round = 0usize;
            while receiver.try_recv() == Err(std::sync::mpsc::TryRecvError::Empty) {
                round += 1;
                std::fs::write(path, &whole[..whole.len() * (round % 8) / 8]).unwrap();
                std::fs::write(path, &whole).unwrap();
            }
        });
        for _ in 0..500 {
            let found = answers(path, &[TEXT_SVMA]);
            assert!(name(&found[0]).is_none_or(|found| found == ("work", 1)), "{found:?}");
        }
        drop(sender);
    });
    assert_eq!(name(&answers(&path, &[TEXT_SVMA])[0]), Some(("work", 1)));
}
