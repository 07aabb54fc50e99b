//! Memory of no file where a file's text was: told from generated code.

use crate::script::{World, attached, mmap, run, sample, task};
use stackpulse_perf::Event;

fn at(time_ns: u64, pc: u64) -> Event {
    sample(time_ns, task(10, 10), pc, (0x7000, 1), &[])
}

/// What an address shows by a maps text.
fn shown(maps: &str, pc: u64) -> String {
    let stacks = run(vec![attached(1, 10, maps), at(2, pc)], World::default()).stacks;
    stacks[0].split(' ').next().unwrap().to_owned()
}

const PROG: &str = "08:01 5 /prog";
const ANON: &str = "00:00 0";

#[test]
fn a_hole_in_the_text_holds_what_the_layout_has_there() {
    for memory in
        [ANON, "00:00 0  [anon:text]", "00:10 9 /anon_hugepage (deleted)", "00:01 9 /memfd:x"]
    {
        let maps = format!(
            "1000-2000 r-xp 00010000 {PROG}\n\
             2000-3000 rwxp 00000000 {memory}\n\
             3000-4000 r-xp 00000000 {memory}\n\
             4000-5000 r-xp 00013000 {PROG}\n"
        );
        assert_eq!(shown(&maps, 0x2010), "/prog+0x11010", "{memory}");
        assert_eq!(shown(&maps, 0x3010), "/prog+0x12010", "{memory}");
    }
}

#[test]
fn a_hole_at_either_end_of_the_text_is_told_by_the_segment_beside_it() {
    // The distance of the segments differs in memory and file, as lld makes it; they share a page of the file.
    let beginning = format!(
        "1000-2000 r--p 00000000 {PROG}\n\
         2000-4000 r-xp 00000000 {ANON}\n\
         4000-5000 r-xp 00003000 {PROG}\n"
    );
    assert_eq!(shown(&beginning, 0x2010), "/prog+0x1010");
    let end = format!(
        "2000-3000 r-xp 00001000 {PROG}\n\
         3000-5000 r-xp 00000000 {ANON}\n\
         6000-7000 rw-p 00003000 {PROG}\n"
    );
    assert_eq!(shown(&end, 0x4010), "/prog+0x3010");
    // The file begins with its text.
    let first = format!("2000-4000 r-xp 00000000 {ANON}\n4000-5000 r-xp 00002000 {PROG}\n");
    assert_eq!(shown(&first, 0x3010), "/prog+0x1010");
    // All of the text.
    let whole = format!(
        "1000-2000 r--p 00000000 {PROG}\n\
         2000-4000 r-xp 00000000 {ANON}\n\
         4000-5000 r--p 00003000 {PROG}\n"
    );
    assert_eq!(shown(&whole, 0x3010), "/prog+0x2010");
}

#[test]
fn generated_code_beside_a_file_stays_generated_code() {
    let cases = [
        // Between two files.
        format!(
            "1000-2000 r-xp 00000000 {PROG}\n\
             2000-3000 rwxp 00000000 {ANON}\n\
             3000-4000 r-xp 00000000 08:01 6 /lib.so\n"
        ),
        // In the gap before the data: the text's part of the file has ended.
        format!(
            "1000-2000 r-xp 00000000 {PROG}\n\
             2000-3000 rwxp 00000000 {ANON}\n\
             8000-9000 rw-p 00000000 {PROG}\n"
        ),
        // Larger than what the file has between the two.
        format!(
            "1000-2000 r-xp 00000000 {PROG}\n\
             2000-5000 rwxp 00000000 {ANON}\n\
             5000-6000 r-xp 00002000 {PROG}\n"
        ),
        // Behind the file, before it, and alone.
        format!("1000-2000 r-xp 00000000 {PROG}\n2000-3000 rwxp 00000000 {ANON}\n"),
        format!("2000-3000 rwxp 00000000 {ANON}\n3000-4000 r-xp 00004000 {PROG}\n"),
        format!("2000-3000 rwxp 00000000 {ANON}\n"),
        // A second copy of the file that has the same name.
        format!(
            "1000-2000 r-xp 00000000 {PROG}\n\
             2000-3000 rwxp 00000000 {ANON}\n\
             3000-4000 r-xp 00002000 08:01 7 /prog\n"
        ),
    ];
    for maps in cases {
        assert_eq!(shown(&maps, 0x2010), "generated+0x2010", "{maps}");
    }
}

#[test]
fn another_file_in_a_hole_is_that_file() {
    let maps = format!(
        "1000-2000 r-xp 00000000 {PROG}\n\
         2000-3000 r-xp 00005000 08:01 6 /lib.so\n\
         3000-4000 r-xp 00002000 {PROG}\n"
    );
    assert_eq!(shown(&maps, 0x2010), "/lib.so+0x5010");
}

const TEXT: &str = "1000-5000 r-xp 00010000 00:00 0 /prog\n";

/// What addresses show after events, with or without maps that can be read then.
fn shown_after(events: Vec<Event>, maps: Option<&str>, pcs: &[u64]) -> Vec<String> {
    let mut world = World::default();
    if let Some(maps) = maps {
        world.maps.insert(10, maps.to_owned());
    }
    let mut script = vec![attached(1, 10, TEXT)];
    script.extend(events);
    script.extend((100..).zip(pcs).map(|(time_ns, &pc)| at(time_ns, pc)));
    let stacks = run(script, world).stacks;
    stacks.iter().map(|stack| stack.split(' ').next().unwrap().to_owned()).collect()
}

#[test]
fn memory_mapped_over_a_files_text_goes_on_showing_it() {
    let over = |time_ns, avma| mmap(time_ns, 10, avma, 0, "//anon");
    let expected = ["/prog+0x10010", "/prog+0x11010", "/prog+0x12010", "/prog+0x13010"];
    let pcs = [0x1010, 0x2010, 0x3010, 0x4010];
    // Page by page, first writable and then as code, to the last page.
    let all = [0x2000, 0x2000, 0x3000, 0x1000, 0x4000];
    let events = || (2..).zip(all).map(|(time_ns, avma)| over(time_ns, avma)).collect();
    assert_eq!(shown_after(events(), None, &pcs), expected);
    let maps = "0-1000 r--p 00000000 00:00 0 /prog\n1000-5000 r-xp 00000000 00:00 0\n";
    assert_eq!(shown_after(events(), Some(maps), &pcs), expected);
}

#[test]
fn memory_mapped_where_a_file_was_is_generated_code() {
    let over = || vec![mmap(2, 10, 0x2000, 0, "//anon")];
    // The file was unmapped, which nothing tells of.
    let gone = "2000-3000 rwxp 00000000 00:00 0\n8000-9000 r-xp 00000000 00:00 0 /lib.so\n";
    assert_eq!(shown_after(over(), Some(gone), &[0x2010]), ["generated+0x2010"]);
    // Only a part of it lies where the file was.
    let beside = || vec![mmap(2, 10, 0x4800, 0, "//anon")];
    assert_eq!(shown_after(beside(), None, &[0x4810]), ["generated+0x4810"]);
}

#[test]
fn a_hole_that_is_mapped_again_shows_what_came_last() {
    let events = || {
        vec![
            mmap(2, 10, 0x2000, 0, "//anon"),
            mmap(3, 10, 0x2000, 0x7000, "/lib.so"),
            mmap(4, 10, 0x3000, 0, "//anon"),
        ]
    };
    assert_eq!(shown_after(events(), None, &[0x2010, 0x3010]), ["/lib.so+0x7010", "/prog+0x12010"]);
}

#[test]
fn maps_are_not_read_for_a_program_that_maps_over_images_again_and_again() {
    let mut world = World::default();
    world.maps.insert(10, TEXT.to_owned());
    let mut events = vec![attached(1, 10, TEXT)];
    for time_ns in (2..2000).step_by(2) {
        events.push(mmap(time_ns, 10, 0x2000, 0, "/lib.so"));
        events.push(mmap(time_ns + 1, 10, 0x2000, 0, "//anon"));
    }
    let maps_read = world.maps_read.clone();
    run(events, world);
    assert!(maps_read.get() < 100);
}
