//! Files that ask for more memory than there is for them: what was asked for is counted.

use crate::dwarf_bytes::{ABBREVIATIONS, entries_of_unit, function, range, uleb, unit};
use crate::elf_file::{PACKED, TEXT_SVMA, file, stretch};
use crate::harness::Scene;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use stackpulse_symbolize::{
    ImageAnswer, ImageQuery, Lookup, Reason, Symbolizer, SymbolizerOptions,
};
use std::io::Read;
use std::path::Path;

const PROGBITS: u32 = 1;
const SYMTAB: u32 = 2;
const STRTAB: u32 = 3;

/// What the tests allow, and how much may be taken beside it: buffers, and what every image may use.
const ALLOWED: u64 = 64 << 20;
const BESIDE: u64 = 16 << 20;

type Section<'a> = (&'a str, u32, &'a [u8]);

fn options() -> SymbolizerOptions {
    SymbolizerOptions { max_memory_bytes: ALLOWED, threads: 1, ..SymbolizerOptions::default() }
}

/// Asks for addresses in a file, and tells how many bytes were in use at most.
fn ask(path: &Path, addresses: &[u64]) -> (ImageAnswer, u64) {
    let mut answer = None;
    let used = allocation_counter::measure(|| {
        let mut symbolizer = Symbolizer::new(options());
        answer = Some(symbolizer.answer(&ImageQuery::file(path), addresses));
    });
    (answer.unwrap(), used.bytes_max)
}

/// Asks for one address in a file made of these sections, which must not cost more than is allowed.
fn check(what: &str, bytes: &[u8]) -> Lookup {
    let scene = Scene::new();
    std::fs::write(scene.path("prog"), bytes).unwrap();
    let (mut answer, used) = ask(&scene.path("prog"), &[TEXT_SVMA + 16]);
    assert!(used < ALLOWED + BESIDE, "{what}: {used} bytes");
    answer.lookups.remove(0)
}

fn is_over_budget(lookup: &Lookup) -> bool {
    matches!(lookup, Lookup::Unresolved { reason: Reason::OverBudget, .. })
}

/// Bytes packed as a section that says so, of which a length is stated.
fn packed(kind: u32, stated: u64, mut bytes: impl Read) -> Vec<u8> {
    let mut section = kind.to_le_bytes().to_vec();
    section.extend([0; 4]);
    section.extend(stated.to_le_bytes());
    section.extend(1u64.to_le_bytes());
    if kind == 2 {
        zstd::stream::copy_encode(bytes, &mut section, 1).unwrap();
    } else {
        let mut encoder = ZlibEncoder::new(&mut section, Compression::fast());
        std::io::copy(&mut bytes, &mut encoder).unwrap();
        encoder.finish().unwrap();
    }
    section
}

fn zeros(len: u64) -> impl Read {
    std::io::repeat(0).take(len)
}

/// What a bomb is put beside, so that it is read.
fn sound_unit() -> Vec<u8> {
    unit(&[entries_of_unit(), function(b"work"), vec![0, 0]].concat())
}

#[test]
fn sections_packed_to_a_thousandth_are_not_unpacked() {
    let info = sound_unit();
    for kind in [1, 2] {
        let bomb = packed(kind, 1 << 30, zeros(1 << 30));
        // It says what it is, or that it is less.
        for stated in [1u64 << 30, 20 << 20, 1 << 10] {
            let mut bomb = bomb.clone();
            bomb[8..16].copy_from_slice(&stated.to_le_bytes());
            let sections: [Section<'_>; 2] =
                [(".debug_abbrev", PROGBITS | PACKED, &bomb), (".debug_info", PROGBITS, &info)];
            let found = check(&format!("kind {kind}, {stated}"), &file(&sections));
            assert_eq!(is_over_budget(&found), stated == 1 << 30, "{found:?}");
        }
    }
}

#[test]
fn all_sections_of_a_file_have_one_budget() {
    let (info, len) = (sound_unit(), 30 << 20);
    let packed = packed(2, len, zeros(len));
    let names = [".debug_line", ".debug_str", ".debug_line_str", ".debug_ranges", ".debug_addr"];
    let mut sections: Vec<Section<'_>> =
        names.map(|name| (name, PROGBITS | PACKED, &packed[..])).to_vec();
    sections.push((".debug_abbrev", PROGBITS, ABBREVIATIONS));
    sections.push((".debug_info", PROGBITS, &info));
    assert!(is_over_budget(&check("five sections", &file(&sections))));
    // One of them is no bomb.
    let found = check("one section", &file(&sections[4..]));
    assert!(found.origin().is_some(), "{found:?}");
}

#[test]
fn memory_is_given_back_after_each_image() {
    let (scene, info, len) = (Scene::new(), sound_unit(), 30 << 20);
    let strings = packed(2, len, zeros(len));
    let sections: [Section<'_>; 3] = [
        (".debug_abbrev", PROGBITS, ABBREVIATIONS),
        (".debug_info", PROGBITS, &info),
        (".debug_str", PROGBITS | PACKED, &strings),
    ];
    std::fs::write(scene.path("prog"), file(&sections)).unwrap();
    let question = || stackpulse_symbolize::Question {
        image: ImageQuery::file(scene.path("prog")),
        addresses: vec![TEXT_SVMA + 16],
    };
    let questions: Vec<_> = (0..20).map(|_| question()).collect();
    let used = allocation_counter::measure(|| {
        let answers = Symbolizer::new(options()).answer_all(&questions, |_| ());
        assert!(answers.iter().all(|answer| answer.lookups[0].origin().is_some()));
    });
    assert!(used.bytes_max < ALLOWED + BESIDE, "{}", used.bytes_max);
    // With many threads each has a part, and what does not fit in that comes later.
    for threads in [2, 7] {
        let options = SymbolizerOptions { threads, ..options() };
        let answers = Symbolizer::new(options).answer_all(&questions, |_| ());
        assert!(answers.iter().all(|answer| answer.lookups[0].origin().is_some()));
    }
}

#[test]
fn units_by_the_million_are_counted() {
    // Twelve bytes each; what is kept of one takes more.
    let one = unit(&[1]);
    let len = one.len() as u64 * 3_000_000;
    let info = packed(2, len, std::io::Cursor::new(one.repeat(3_000_000)));
    let sections: [Section<'_>; 2] = [
        (".debug_abbrev", PROGBITS, &[1, 0x11, 0, 0, 0, 0]),
        (".debug_info", PROGBITS | PACKED, &info),
    ];
    assert!(is_over_budget(&check("units", &file(&sections))));
}

/// A unit whose lines are at the beginning of `.debug_line`.
fn with_lines(lines: &[u8], kind: u32) -> Vec<u8> {
    let abbreviations = [1, 0x11, 0, 0x11, 1, 0x12, 6, 0x10, 6, 0, 0];
    let info = unit(&[&[1][..], &range(), &[0; 4]].concat());
    let sections: [Section<'_>; 3] = [
        (".debug_abbrev", PROGBITS, &abbreviations),
        (".debug_info", PROGBITS, &info),
        (".debug_line", kind, lines),
    ];
    file(&sections)
}

/// A line program of a version with so many bytes behind its first ones.
fn line_program(version: u8, tables: &[u8]) -> Vec<u8> {
    let mut header = vec![1, 1, 1, 0xfb, 14, 13, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1];
    header.extend(tables);
    let mut program = vec![version, 0];
    if version == 5 {
        program.extend([8, 0]);
    }
    program.extend(u32::try_from(header.len()).unwrap().to_le_bytes());
    program.extend(header);
    [&u32::try_from(program.len()).unwrap().to_le_bytes()[..], &program].concat()
}

#[test]
fn file_names_by_the_million_are_counted() {
    const MANY: usize = 8 << 20;
    // One byte each, by version 5: a name that is empty; and five by version 4.
    let five = [&[1, 1, 8, 0, 1, 1, 8][..], &uleb(MANY as u64), &vec![0; MANY]].concat();
    let four = [&[0][..], &b"a\0\0\0\0".repeat(MANY / 4), &[0]].concat();
    for (version, tables) in [(5, five), (4, four)] {
        let lines = line_program(version, &tables);
        let packed = packed(2, lines.len() as u64, &lines[..]);
        check("file names", &with_lines(&packed, PROGBITS | PACKED));
        check("file names", &with_lines(&lines, PROGBITS));
    }
}

#[test]
fn tables_of_abbreviations_are_counted() {
    let mut table = Vec::new();
    for code in 1..1_000_000u64 {
        table.extend(uleb(code));
        table.extend([0x34, 0, 3, 8, 0x3a, 0xb, 0, 0]);
    }
    table.splice(..0, ABBREVIATIONS[..ABBREVIATIONS.len() - 1].iter().copied());
    let info = sound_unit();
    let sections: [Section<'_>; 2] =
        [(".debug_abbrev", PROGBITS, &table), (".debug_info", PROGBITS, &info)];
    assert!(is_over_budget(&check("abbreviations", &file(&sections))));
}

#[test]
fn names_that_share_their_bytes_are_counted() {
    // Every symbol's name is 64 KiB long, and begins one byte behind that of the one before.
    let mut symbols = vec![0; 24];
    let count = 4096u64;
    for at in 0..count {
        symbols.extend(u32::try_from(1 + at).unwrap().to_le_bytes());
        symbols.extend([0x12, 0, 1, 0]);
        symbols.extend([(TEXT_SVMA + at).to_le_bytes(), 1u64.to_le_bytes()].concat());
    }
    let mut names = vec![b'a'; 80 << 10];
    names[0] = 0;
    let scene = Scene::new();
    let bytes = file(&[(".symtab", SYMTAB, &symbols), (".strtab", STRTAB, &names)]);
    std::fs::write(scene.path("prog"), bytes).unwrap();
    let addresses: Vec<u64> = (0..count).map(|at| TEXT_SVMA + at).collect();
    let (answer, used) = ask(&scene.path("prog"), &addresses);
    assert!(used < ALLOWED + BESIDE, "{used} bytes");
    assert!(answer.lookups.iter().any(is_over_budget));
}

#[test]
fn symbols_over_one_address_are_counted() {
    let mut symbols = vec![0; 24];
    let mut one = vec![1, 0, 0, 0, 0x12, 0, 1, 0];
    one.extend(TEXT_SVMA.to_le_bytes().into_iter().chain(4096u64.to_le_bytes()));
    symbols.extend(one.repeat(2_000_000));
    let bytes = file(&[(".symtab", SYMTAB, &symbols), (".strtab", STRTAB, b"\0f\0")]);
    assert!(is_over_budget(&check("symbols", &bytes)));
}

#[test]
fn packed_files_with_a_large_window_or_content_are_refused() {
    let tool = crate::harness::has_tools(&["xz"]);
    if !tool {
        return;
    }
    let scene = Scene::new();
    scene.shell(
        "head -c 300M /dev/zero | xz -0 > content && \
         head -c 1M /dev/zero | xz --lzma2=preset=0,dict=1536MiB > window",
    );
    for name in ["content", "window"] {
        let bytes = std::fs::read(scene.path(name)).unwrap();
        check(name, &file(&[(".gnu_debugdata", PROGBITS, &bytes)]));
    }
}

/// Asks for one address in a file of which a section reaches over 64 GiB that are not there.
fn check_sparse(sections: &[Section<'_>], number: usize) -> Lookup {
    let scene = Scene::new();
    let mut bytes = file(sections);
    let len = stretch(&mut bytes, number, 64 << 30);
    std::fs::write(scene.path("prog"), bytes).unwrap();
    let prog = std::fs::File::options().write(true).open(scene.path("prog")).unwrap();
    prog.set_len(len).unwrap();
    let (mut answer, used) = ask(&scene.path("prog"), &[TEXT_SVMA + 16]);
    let name = sections[number].0;
    assert!(used < ALLOWED + BESIDE, "{name}: {used} bytes");
    answer.lookups.remove(0)
}

#[test]
fn holes_cost_nothing() {
    let info = sound_unit();
    for name in [".debug_abbrev", ".debug_info", ".debug_ranges", ".debug_addr", ".eh_frame"] {
        let sections = [(name, PROGBITS, &[][..]), (".debug_info", PROGBITS, &info)];
        check_sparse(&sections, 0);
    }
    let symbols = [(".symtab", SYMTAB, &[][..]), (".strtab", STRTAB, b"\0f\0")];
    assert!(is_over_budget(&check_sparse(&symbols, 0)));
}

#[test]
fn numbers_of_headers_that_no_file_has_are_not_believed() {
    // The first section's header tells how many sections there are, where the file's has no room for it, and segments too.
    let scene = Scene::new();
    for (field, count_at, count) in [(0x3c, 0x20, 1u64 << 28), (0x38, 0x2c, 1 << 28)] {
        let mut bytes = file(&[(".debug_info", PROGBITS, &[0; 16])]);
        let value = if field == 0x3c { 0 } else { 0xffffu16 };
        bytes[field..field + 2].copy_from_slice(&value.to_le_bytes());
        let table_at = usize::try_from(u64::from_le_bytes(*bytes[0x28..].first_chunk().unwrap()));
        let at = table_at.unwrap() + count_at;
        bytes[at..at + 4].copy_from_slice(&u32::try_from(count).unwrap().to_le_bytes());
        std::fs::write(scene.path("prog"), bytes).unwrap();
        let prog = std::fs::File::options().write(true).open(scene.path("prog")).unwrap();
        prog.set_len(64 << 30).unwrap();
        let (_, used) = ask(&scene.path("prog"), &[TEXT_SVMA + 16]);
        assert!(used < BESIDE, "{used} bytes");
    }
}
