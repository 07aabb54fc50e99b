//! Agreement with llvm-symbolizer, address by address.

use crate::harness::{Scene, Told, has_tools, llvm_symbolizer, symbols, text_addresses};
use stackpulse_symbolize::{ImageQuery, Lookup, Origin, Symbolizer, SymbolizerOptions};
use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};

/// How many addresses of each program are compared.
const ADDRESSES: u64 = 4000;

/// Compiles a program, and compares all that is said of addresses all over it.
fn check(tools: &[&str], build: &str) {
    check_with(tools, build, &[]);
}

fn check_with(tools: &[&str], build: &str, debug_dirs: &[&str]) {
    if !has_tools(&[tools, &["llvm-symbolizer"]].concat()) {
        return;
    }
    let scene = Scene::new();
    scene.shell(build);
    let program = scene.path("prog");
    let addresses = text_addresses(&program, ADDRESSES);
    let debug_dirs: Vec<PathBuf> = debug_dirs.iter().map(|dir| scene.path(dir)).collect();
    let flags: Vec<String> =
        debug_dirs.iter().map(|dir| format!("--debug-file-directory={}", dir.display())).collect();
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let expected = llvm_symbolizer(&program, &flags, &addresses);
    assert_eq!(expected.len(), addresses.len(), "llvm-symbolizer answers each address");
    let mut symbolizer =
        Symbolizer::new(SymbolizerOptions { debug_dirs, ..SymbolizerOptions::default() });
    let found = symbolizer.symbolize(&ImageQuery::file(&program), &addresses);
    let aliases = Aliases::of(&program);
    let mut differing = Vec::new();
    for ((address, found), expected) in addresses.iter().zip(&found).zip(&expected) {
        if let Some(difference) = difference(found, expected, &aliases) {
            differing.push(format!("{address:#x}: {difference}"));
        }
    }
    let named = found.iter().filter(|found| found.origin().is_some()).count();
    assert!(named * 10 > found.len() * 9, "{named} of {} have a name", found.len());
    let shown = differing.iter().take(8).cloned().collect::<Vec<_>>().join("\n");
    assert!(differing.is_empty(), "{build}: {} differ:\n{shown}", differing.len());
}

/// What is not the same, but for the differences that `docs/symbols.md` explains.
fn difference(found: &Lookup, expected: &[Told], aliases: &Aliases) -> Option<String> {
    let (calls, origin) = match found {
        Lookup::Resolved { calls, origin } => (&calls[..], Some(*origin)),
        Lookup::Unresolved { .. } => (&[][..], None),
    };
    let told: Vec<Told> = calls
        .iter()
        .map(|call| Told {
            function: call.function.as_deref().map(str::to_owned),
            file: call.file.as_deref().map(str::to_owned),
            line: call.line.unwrap_or_default(),
            column: call.column.unwrap_or_default(),
        })
        .collect();
    // Where it has no function at all, there is padding, or it does not read the debug file's symbol table.
    let nameless = matches!(expected, [only] if only.function.is_none());
    if nameless && origin.is_none_or(|origin| origin == Origin::SymbolTable) {
        return None;
    }
    let same = told.len() == expected.len()
        && told.iter().zip(expected).all(|(a, b)| is_same(a, b, aliases));
    (!same).then(|| format!("found {found:?}\nexpected {expected:?}"))
}

fn is_same(found: &Told, expected: &Told, aliases: &Aliases) -> bool {
    // Without a line, which file it is in is left to taste.
    let same_file = found.line == 0 || plain(&found.file) == plain(&expected.file);
    let same_function = name(&found.function) == name(&expected.function)
        || aliases.are_one(&found.function, &expected.function);
    same_function && found.line == expected.line && found.column == expected.column && same_file
}

/// The addresses of each symbol: of several symbols for the same code either is right.
struct Aliases(HashMap<String, Vec<u64>>);

impl Aliases {
    fn of(program: &Path) -> Self {
        let mut addresses: HashMap<String, Vec<u64>> = HashMap::new();
        for (name, address) in symbols(program) {
            addresses.entry(name).or_default().push(address);
        }
        Self(addresses)
    }

    fn are_one(&self, one: &Option<String>, other: &Option<String>) -> bool {
        let of = |name: &Option<String>| self.0.get(name.as_deref()?);
        let pair = of(one).zip(of(other));
        pair.is_some_and(|(one, other)| one.iter().any(|address| other.contains(address)))
    }
}

/// A function's name as both tell it: without what symbols of parts and copies of it add, and without the number that
/// tells the constructors and destructors of one body apart.
fn name(function: &Option<String>) -> String {
    let name = function.as_deref().unwrap_or_default();
    let end = [".cold", ".part.", ".constprop.", ".isra.", ".llvm.", ".lto_priv.", ".localalias"]
        .iter()
        .filter_map(|suffix| name.find(suffix))
        .min();
    let name = &name[..end.unwrap_or(name.len())];
    ["C1E", "C2E", "D1E", "D2E"]
        .iter()
        .fold(name.to_owned(), |name, one| name.replace(one, &format!("{}?E", &one[..1])))
}

/// A path without its `.` and `..`.
fn plain(path: &Option<String>) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in Path::new(path.as_deref().unwrap_or_default()).components() {
        match component {
            Component::ParentDir => {
                plain.pop();
            }
            Component::CurDir => {}
            other => plain.push(other),
        }
    }
    plain
}

#[test]
fn gcc_dwarf_5_and_4() {
    check(&["gcc"], "gcc -O2 -g -gdwarf-5 $SRC/work.c -o prog");
    check(&["gcc"], "gcc -O2 -g -gdwarf-4 $SRC/work.c -o prog");
    check(&["gcc"], "gcc -O2 -g -gdwarf-3 -gno-strict-dwarf $SRC/work.c -o prog");
}

#[test]
fn gcc_cpp() {
    check(&["g++"], "g++ -O2 -g $SRC/shapes.cpp -o prog");
    check(&["g++"], "g++ -O0 -g -gdwarf-4 $SRC/shapes.cpp -o prog");
}

#[test]
fn clang_dwarf_5_and_4() {
    check(&["clang"], "clang -O2 -g -gdwarf-5 $SRC/work.c -o prog");
    check(&["clang"], "clang++ -O2 -g -gdwarf-4 $SRC/shapes.cpp -o prog");
}

#[test]
fn line_tables_only() {
    check(&["gcc"], "gcc -O2 -g1 $SRC/work.c -o prog");
    check(&["clang"], "clang++ -O2 -g1 $SRC/shapes.cpp -o prog");
}

#[test]
fn split_units() {
    check(&["gcc"], "gcc -O2 -g -gsplit-dwarf $SRC/work.c -o prog");
    check(&["g++"], "g++ -O2 -g -gdwarf-4 -gsplit-dwarf $SRC/shapes.cpp -o prog");
    check(&["clang"], "clang++ -O2 -g -gsplit-dwarf $SRC/shapes.cpp -o prog");
    check(&["clang"], "clang++ -O2 -g -gdwarf-4 -gsplit-dwarf $SRC/shapes.cpp -o prog");
}

#[test]
fn packages_of_split_units() {
    let pack = "llvm-dwp -e prog -o prog.dwp && rm *.dwo";
    let tools = ["clang", "llvm-dwp"];
    check(&tools, &format!("clang++ -O2 -g -gsplit-dwarf $SRC/shapes.cpp -o prog && {pack}"));
    check(&tools, &format!("clang -O2 -g -gdwarf-4 -gsplit-dwarf $SRC/work.c -o prog && {pack}"));
}

#[test]
fn compressed_sections() {
    check(&["gcc"], "gcc -O2 -g -gz=zlib $SRC/work.c -o prog");
    check(
        &["gcc", "objcopy"],
        "g++ -O2 -g $SRC/shapes.cpp -o prog && objcopy --compress-debug-sections=zlib-gnu prog",
    );
}

#[test]
fn separate_debug_files() {
    let strip = "objcopy --only-keep-debug prog prog.debug && strip prog";
    check(
        &["gcc", "objcopy"],
        &format!(
            "gcc -O2 -g $SRC/work.c -o prog && {strip} && objcopy --add-gnu-debuglink=prog.debug prog"
        ),
    );
    check(
        &["gcc", "objcopy"],
        &format!(
            "gcc -O2 -g $SRC/work.c -o prog && {strip} && objcopy --add-gnu-debuglink=prog.debug prog && mkdir .debug && mv prog.debug .debug"
        ),
    );
    check_with(
        &["gcc", "objcopy"],
        &format!(
            "gcc -O2 -g -Wl,--build-id=0xabcdef $SRC/work.c -o prog && {strip} && mkdir -p dbg/.build-id/ab && mv prog.debug dbg/.build-id/ab/cdef.debug"
        ),
        &["dbg"],
    );
}

#[test]
fn parts_shared_by_dwz() {
    check(&["g++", "dwz"], "g++ -O2 -g $SRC/shapes.cpp -o prog && dwz prog");
}

#[test]
fn linkers_and_layouts() {
    check(&["gcc"], "gcc -O2 -g -no-pie $SRC/work.c -o prog");
    check(&["gcc"], "gcc -O2 -g -static $SRC/work.c -o prog");
    check(
        &["clang", "ld.lld"],
        "clang -O2 -g -fuse-ld=lld -ffunction-sections -Wl,--gc-sections $SRC/work.c -o prog",
    );
    check(&["gcc", "mold"], "g++ -O2 -g -fuse-ld=mold $SRC/shapes.cpp -o prog");
}

#[test]
fn link_time_optimization() {
    check(&["gcc"], "g++ -O2 -g -flto $SRC/shapes.cpp -o prog");
    check(&["clang", "ld.lld"], "clang++ -O2 -g -flto -fuse-ld=lld $SRC/shapes.cpp -o prog");
}

#[test]
fn stripped_to_symbols() {
    check(&["gcc", "strip"], "gcc -O2 -g $SRC/work.c -o prog && strip -g prog");
}

#[test]
fn rust_with_full_and_line_information() {
    check(&["rustc"], "rustc --edition 2024 -O -C debuginfo=2 $SRC/busy.rs -o prog");
    check(&["rustc"], "rustc --edition 2024 -O -C debuginfo=1 $SRC/busy.rs -o prog");
    check(
        &["rustc"],
        "rustc --edition 2024 -C debuginfo=2 -C symbol-mangling-version=v0 $SRC/busy.rs -o prog",
    );
}

#[test]
fn rust_split() {
    check(&["rustc"], "rustc --edition 2024 -O -g -C split-debuginfo=packed $SRC/busy.rs -o prog");
    check(
        &["rustc"],
        "rustc --edition 2024 -O -g -C split-debuginfo=unpacked $SRC/busy.rs -o prog",
    );
}
