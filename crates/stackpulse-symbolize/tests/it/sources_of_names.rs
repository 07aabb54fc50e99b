//! Each kind of file that names can come from, and the reasons where there is none.

use crate::harness::{Scene, has_tools, section_start, text_addresses};
use stackpulse_symbolize::{ImageQuery, Lookup, Origin, Reason, Symbolizer, SymbolizerOptions};
use std::path::Path;

fn symbolize(program: &Path, addresses: &[u64]) -> Vec<Lookup> {
    Symbolizer::new(SymbolizerOptions::default()).symbolize(&ImageQuery::file(program), addresses)
}

fn function(lookup: &Lookup) -> Option<(&str, Origin)> {
    match lookup {
        Lookup::Resolved { calls, origin } => Some((calls.last()?.function.as_deref()?, *origin)),
        Lookup::Unresolved { .. } => None,
    }
}

/// The address of a function while the program has its symbols.
fn address_of(scene: &Scene, program: &str, name: &str) -> u64 {
    let all = text_addresses(&scene.path(program), u64::MAX);
    let found = symbolize(&scene.path(program), &all);
    let at = found.iter().position(|found| function(found).is_some_and(|(it, _)| it == name));
    all[at.unwrap_or_else(|| panic!("{name} is in {program}"))]
}

#[test]
fn stripped_functions_are_told_by_their_bounds() {
    if !has_tools(&["gcc", "strip"]) {
        return;
    }
    let scene = Scene::new();
    scene.shell("gcc -O2 -g $SRC/work.c -o full && strip full -o prog");
    let start = address_of(&scene, "full", "rounds");
    let found = symbolize(&scene.path("prog"), &[start + 5]);
    assert_eq!(found, [Lookup::Unresolved { reason: Reason::Stripped, start: Some(start) }]);
}

#[test]
fn of_several_names_for_one_function_the_plainest_is_told() {
    if !has_tools(&["gcc"]) {
        return;
    }
    let scene = Scene::new();
    let alias = |name: &str| format!(r#"int {name}(void) __attribute__((alias("plain")));"#);
    let source = format!(
        "{} __attribute__((noinline)) int plain(void) {{ volatile int sum = 1; return sum; }} {} \
         int main(void) {{ return plain(); }}",
        "int plain(void);",
        [alias("__GI___plain"), alias("__plain")].concat()
    );
    std::fs::write(scene.path("aliases.c"), source).unwrap();
    scene.shell("gcc -O1 aliases.c -o aliases");
    let at = address_of(&scene, "aliases", "plain");
    let found = symbolize(&scene.path("aliases"), &[at + 1]);
    assert_eq!(function(&found[0]), Some(("plain", Origin::SymbolTable)));
    let others = crate::harness::symbols(&scene.path("aliases"));
    assert_eq!(others.iter().filter(|(name, _)| name.ends_with("plain")).count(), 3);
}

#[test]
fn packed_symbol_tables_are_read() {
    if !has_tools(&["gcc", "strip", "xz", "objcopy"]) {
        return;
    }
    let scene = Scene::new();
    scene.shell(
        "gcc -O2 -g $SRC/work.c -o full && strip -g full -o mini && xz -k mini && strip full -o prog && \
         objcopy --add-section .gnu_debugdata=mini.xz prog",
    );
    let start = address_of(&scene, "full", "rounds");
    let found = symbolize(&scene.path("prog"), &[start + 5]);
    assert_eq!(function(&found[0]), Some(("rounds", Origin::MiniDebugInformation)));
}

#[test]
fn exported_functions_of_a_stripped_library_have_names() {
    if !has_tools(&["gcc", "strip"]) {
        return;
    }
    let scene = Scene::new();
    scene.shell("gcc -O2 -g -shared -fPIC $SRC/work.c -o full && strip full -o prog");
    let start = address_of(&scene, "full", "rounds");
    let found = symbolize(&scene.path("prog"), &[start]);
    assert_eq!(function(&found[0]), Some(("rounds", Origin::DynamicSymbols)));
}

#[test]
fn stubs_are_named_after_what_they_jump_to() {
    let builds = [
        ("gcc", "gcc -O2 $SRC/work.c -o prog"),
        ("ld.lld", "gcc -O2 -fuse-ld=lld $SRC/work.c -o prog"),
        ("mold", "gcc -O2 -fuse-ld=mold $SRC/work.c -o prog"),
    ];
    for (tool, build) in builds {
        if !has_tools(&["gcc", tool]) {
            continue;
        }
        let scene = Scene::new();
        scene.shell(build);
        let program = scene.path("prog");
        let (start, len) = section_start(&program, ".plt.sec")
            .or_else(|| section_start(&program, ".plt"))
            .unwrap();
        let addresses: Vec<u64> = (start..start + len).collect();
        let found = symbolize(&program, &addresses);
        let has = |name| found.iter().any(|it| function(it) == Some((name, Origin::Stub)));
        assert!(has("qsort@plt") && has("printf@plt"), "{build}: {found:?}");
    }
}

#[test]
fn a_file_of_another_build_is_never_used() {
    if !has_tools(&["gcc", "objcopy", "strip"]) {
        return;
    }
    let scene = Scene::new();
    scene.shell(
        "gcc -O2 -g -Wl,--build-id=0xabcdef $SRC/work.c -o prog && \
         gcc -O1 -g -Wl,--build-id=0xabcd01 $SRC/work.c -o other && \
         mkdir -p dbg/.build-id/ab && objcopy --only-keep-debug other dbg/.build-id/ab/cdef.debug && \
         cp prog full && strip prog && objcopy --only-keep-debug other link.debug && \
         objcopy --add-gnu-debuglink=link.debug prog && objcopy --only-keep-debug full link.debug",
    );
    let start = address_of(&scene, "full", "rounds");
    let options =
        SymbolizerOptions { debug_dirs: vec![scene.path("dbg")], ..SymbolizerOptions::default() };
    let mut symbolizer = Symbolizer::new(options);
    let query = ImageQuery::file(scene.path("prog"));
    let found = symbolizer.symbolize(&query, &[start]);
    assert!(
        matches!(found[..], [Lookup::Unresolved { reason: Reason::Stripped, .. }]),
        "{found:?}"
    );
    let query = ImageQuery { build_id: vec![0xab, 0xcd, 1], ..query };
    let found = symbolizer.symbolize(&query, &[start]);
    assert_eq!(found, [Lookup::unresolved(Reason::FileDiffers)]);
}

#[test]
fn a_debug_file_alone_names_a_program_that_is_gone() {
    if !has_tools(&["gcc", "objcopy"]) {
        return;
    }
    let scene = Scene::new();
    scene.shell(
        "gcc -O2 -g -Wl,--build-id=0xabcdef $SRC/work.c -o full && mkdir -p cache/abcdef && \
         objcopy --only-keep-debug full cache/abcdef/debuginfo",
    );
    let start = address_of(&scene, "full", "rounds");
    let options = SymbolizerOptions {
        debuginfod_cache: Some(scene.path("cache")),
        ..SymbolizerOptions::default()
    };
    let query =
        ImageQuery { build_id: vec![0xab, 0xcd, 0xef], ..ImageQuery::file(scene.path("gone")) };
    let answer = Symbolizer::new(options).answer(&query, &[start]);
    assert_eq!(function(&answer.lookups[0]), Some(("rounds", Origin::DebugInformation)));
    let expected = (scene.path("cache/abcdef/debuginfo"), Origin::DebugInformation);
    assert_eq!(answer.files, [expected]);
}

#[test]
fn a_program_is_found_below_a_targets_root() {
    if !has_tools(&["gcc"]) {
        return;
    }
    let scene = Scene::new();
    scene.shell("mkdir -p root/opt/sp-test && gcc -O2 -g $SRC/work.c -o root/opt/sp-test/prog");
    let start = address_of(&scene, "root/opt/sp-test/prog", "rounds");
    let options =
        SymbolizerOptions { roots: vec![scene.path("root")], ..SymbolizerOptions::default() };
    let query = ImageQuery::file("/opt/sp-test/prog");
    let found = Symbolizer::new(options).symbolize(&query, &[start]);
    assert_eq!(function(&found[0]), Some(("rounds", Origin::DebugInformation)));
}

#[test]
fn without_its_other_half_a_split_unit_keeps_its_lines() {
    if !has_tools(&["gcc"]) {
        return;
    }
    let scene = Scene::new();
    scene.shell("gcc -O2 -g -gsplit-dwarf $SRC/work.c -o prog");
    let start = address_of(&scene, "prog", "rounds");
    let whole = symbolize(&scene.path("prog"), &[start]);
    scene.shell("rm *.dwo");
    let lines = symbolize(&scene.path("prog"), &[start]);
    let (Lookup::Resolved { calls: whole, .. }, Lookup::Resolved { calls: lines, origin }) =
        (&whole[0], &lines[0])
    else {
        panic!("{whole:?} {lines:?}");
    };
    assert_eq!(*origin, Origin::SymbolTable);
    assert_eq!((&lines[0].function, lines[0].line), (&whole[0].function, whole[0].line));
}

#[test]
fn equal_addresses_in_any_order_have_equal_answers() {
    if !has_tools(&["gcc"]) {
        return;
    }
    let scene = Scene::new();
    scene.shell("gcc -O2 -g $SRC/work.c -o prog");
    let mut addresses = text_addresses(&scene.path("prog"), 100);
    let forward = symbolize(&scene.path("prog"), &addresses);
    addresses.reverse();
    addresses.push(addresses[7]);
    let mut backward = symbolize(&scene.path("prog"), &addresses);
    assert_eq!(backward.pop().as_ref(), backward.get(7));
    backward.reverse();
    assert_eq!(backward, forward);
}

/// Answers for addresses all over a program, and for the same addresses after a change of its file.
fn check_unchanged(tools: &[&str], build: &str, change: &str) {
    if !has_tools(tools) {
        return;
    }
    let scene = Scene::new();
    scene.shell(build);
    let addresses = text_addresses(&scene.path("prog"), 3000);
    let before = symbolize(&scene.path("prog"), &addresses);
    scene.shell(change);
    let after = symbolize(&scene.path("prog"), &addresses);
    for ((address, before), after) in addresses.iter().zip(&before).zip(&after) {
        assert_eq!(before, after, "{change}: {address:#x}");
    }
}

#[test]
fn parts_moved_to_a_common_file_are_found_there() {
    let build = "g++ -O2 -g -gdwarf-4 $SRC/shapes.cpp -o prog && \
                 g++ -O1 -g -gdwarf-4 $SRC/shapes.cpp -o other";
    check_unchanged(&["g++", "dwz"], build, "dwz -m common prog other && test -s common");
}

#[test]
fn sections_packed_with_zstd_are_unpacked() {
    let build = "g++ -O2 -g $SRC/shapes.cpp -o prog";
    let change = "objcopy --compress-debug-sections=zstd prog && readelf -St prog | grep ZSTD";
    check_unchanged(&["g++", "objcopy", "readelf"], build, change);
}
