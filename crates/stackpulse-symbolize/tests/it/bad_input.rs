//! Files that are not what they should be: names are lost, and nothing else.

use crate::harness::{Scene, has_tools, text_addresses};
use stackpulse_symbolize::{ImageQuery, Lookup, Reason, Symbolizer, SymbolizerOptions};
use std::path::Path;

fn symbolize(program: &Path, addresses: &[u64]) -> Vec<Lookup> {
    let options = SymbolizerOptions { max_memory_bytes: 64 << 20, ..SymbolizerOptions::default() };
    Symbolizer::new(options).symbolize(&ImageQuery::file(program), addresses)
}

/// A generator of numbers that look random; the same each time.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % bound as u64).unwrap()
    }
}

/// Asks for addresses of damaged copies of a program.
fn check(build: &str, copies: usize, damage: impl Fn(&mut Vec<u8>, &mut Numbers)) {
    let scene = Scene::new();
    scene.shell(build);
    let bytes = std::fs::read(scene.path("prog")).unwrap();
    let addresses = text_addresses(&scene.path("prog"), 200);
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    for _ in 0..copies {
        let mut copy = bytes.clone();
        damage(&mut copy, &mut numbers);
        std::fs::write(scene.path("damaged"), copy).unwrap();
        assert_eq!(symbolize(&scene.path("damaged"), &addresses).len(), addresses.len());
    }
}

fn flip(bytes: &mut [u8], numbers: &mut Numbers) {
    for _ in 0..1 + numbers.below(40) {
        let at = numbers.below(bytes.len());
        let value = [0, 0xff, 0x7f, 0x80, 1][numbers.below(5)];
        bytes[at] = value;
    }
}

#[test]
fn damaged_programs_cost_names_only() {
    if !has_tools(&["gcc", "clang"]) {
        return;
    }
    check("g++ -O2 -g $SRC/shapes.cpp -o prog", 20, |it, numbers| flip(it, numbers));
    check("gcc -O2 -g -gdwarf-4 $SRC/work.c -o prog", 80, |it, numbers| flip(it, numbers));
    check("clang -O2 -g -gdwarf-5 $SRC/work.c -o prog", 80, |it, numbers| flip(it, numbers));
    check("gcc -O2 -g -gz=zlib $SRC/work.c -o prog", 60, |it, numbers| flip(it, numbers));
}

#[test]
fn cut_programs_cost_names_only() {
    if !has_tools(&["gcc"]) {
        return;
    }
    check("gcc -O2 -g $SRC/work.c -o prog", 80, |bytes, numbers| {
        let len = numbers.below(bytes.len());
        bytes.truncate(len);
    });
}

#[test]
fn what_is_no_file_is_not_waited_for() {
    if !has_tools(&["gcc", "objcopy", "strip", "mkfifo"]) {
        return;
    }
    let scene = Scene::new();
    scene.shell(
        "gcc -O2 -g $SRC/work.c -o prog && objcopy --only-keep-debug prog prog.debug && strip prog && \
         objcopy --add-gnu-debuglink=prog.debug prog && rm prog.debug && mkfifo prog.debug && \
         mkdir -p .debug/prog.debug dir && mkfifo fifo && : > empty && echo text > text",
    );
    let reason = |name: &str| match &symbolize(&scene.path(name), &[0x1234])[..] {
        [Lookup::Unresolved { reason, .. }] => Some(*reason),
        _ => None,
    };
    assert_eq!(reason("prog"), Some(Reason::Stripped));
    assert_eq!(reason("dir"), Some(Reason::NoFile));
    assert_eq!(reason("fifo"), Some(Reason::NoFile));
    assert_eq!(reason("none"), Some(Reason::NoFile));
    assert_eq!(reason("empty"), Some(Reason::Damaged));
    assert_eq!(reason("text"), Some(Reason::Damaged));
}

#[test]
fn debug_information_over_the_limit_leaves_symbols() {
    if !has_tools(&["gcc"]) {
        return;
    }
    let scene = Scene::new();
    scene.shell("gcc -O2 -g -gz=zlib $SRC/work.c -o prog");
    let addresses = text_addresses(&scene.path("prog"), 50);
    let options = SymbolizerOptions { max_memory_bytes: 100, ..SymbolizerOptions::default() };
    let found =
        Symbolizer::new(options).symbolize(&ImageQuery::file(scene.path("prog")), &addresses);
    let named = found.iter().filter(|found| found.origin().is_some()).count();
    assert!(named * 2 > found.len(), "{named} of {}", found.len());
}
