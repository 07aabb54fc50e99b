//! Arbitrary links from a program to other files: only those below the directories that may be searched are used.
#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use stackpulse_fuzz::elf::{TEXT_SVMA, file, write};
use stackpulse_symbolize::{ImageQuery, Symbolizer, SymbolizerOptions};
use std::path::Path;
use std::sync::LazyLock;
use tempfile::TempDir;

#[derive(Arbitrary, Debug)]
struct Links<'a> {
    debug_link: &'a [u8],
    has_checksum: bool,
    alternative: &'a [u8],
    notes: &'a [u8],
    build_id: [u8; 3],
}

static SCENE: LazyLock<TempDir> = LazyLock::new(|| {
    let scene = TempDir::new().expect("a directory");
    for name in ["bin", "debug", "outside"] {
        std::fs::create_dir(scene.path().join(name)).expect("a directory");
    }
    // A symbol table with one function, `f`, over all of the code.
    let mut symbols = vec![0; 24];
    symbols.extend([1, 0, 0, 0, 0x12, 0, 1, 0]);
    symbols.extend(TEXT_SVMA.to_le_bytes().into_iter().chain(4096u64.to_le_bytes()));
    let full = file(&[(".symtab", 2, &symbols), (".strtab", 3, b"\0f\0")]);
    for name in ["bin/f.debug", "debug/f.debug", "outside/f.debug"] {
        write(&scene.path().join(name), &full);
    }
    scene
});

fn note(build_id: &[u8]) -> Vec<u8> {
    let mut note = vec![4, 0, 0, 0, build_id.len() as u8, 0, 0, 0, 3, 0, 0, 0];
    note.extend(b"GNU\0");
    note.extend(build_id);
    note.push(0);
    note
}

fuzz_target!(|links: Links<'_>| {
    let scene = SCENE.path();
    let program = scene.join("bin/program");
    let mut debug_link = links.debug_link.to_vec();
    if links.has_checksum {
        debug_link = [b"f.debug\0", &links.debug_link[..links.debug_link.len().min(8)]].concat();
    }
    let notes = [note(&links.build_id), links.notes.to_vec()].concat();
    write(
        &program,
        &file(&[
            (".note.gnu.build-id", 7, &notes),
            (".gnu_debuglink", 1, &debug_link),
            (".gnu_debugaltlink", 1, links.alternative),
        ]),
    );
    let options = SymbolizerOptions {
        debug_dirs: vec![scene.join("debug")],
        debuginfod_cache: Some(scene.join("cache")),
        threads: 1,
        ..SymbolizerOptions::default()
    };
    let answer = Symbolizer::new(options).answer(&ImageQuery::file(&program), &[TEXT_SVMA + 8]);
    assert_eq!(answer.lookups.len(), 1);
    let allowed = |path: &Path| {
        ["bin", "debug", "cache"].iter().any(|dir| path.starts_with(scene.join(dir)))
            || path.starts_with("/usr/lib/debug")
    };
    assert!(answer.files.iter().all(|(path, _)| allowed(path)), "{:?}", answer.files);
});
