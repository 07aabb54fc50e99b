//! What is opened, and what is only looked at: paths are chosen by whoever is recorded.

use crate::elf_file::{TEXT_SVMA, file};
use crate::harness::Scene;
use rustix::fs::inotify::{self, CreateFlags, Reader, WatchFlags};
use rustix::fs::{CWD, FileType, Mode};
use stackpulse_symbolize::{ImageQuery, Lookup, Reason, Symbolizer, SymbolizerOptions};
use std::mem::MaybeUninit;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::Path;

/// A program that refers to all other files that there may be, and one that has a function.
fn write_programs(scene: &Scene) {
    let note = b"\x04\0\0\0\x02\0\0\0\x03\0\0\0GNU\0\xab\xcd\0\0";
    let abbreviations = [
        &[1, 0x11, 0, 0x11, 1, 0x12, 6][..],
        // The name and the id of the other half.
        &[0xb0, 0x42, 8, 0xb1, 0x42, 7, 0, 0, 0],
    ];
    let entry = [
        &[1][..],
        &TEXT_SVMA.to_le_bytes(),
        &4096u32.to_le_bytes(),
        b"prog.dwo\0",
        &7u64.to_le_bytes(),
    ];
    let entry = entry.concat();
    let len = u32::try_from(entry.len() + 7).unwrap().to_le_bytes();
    let sections: [(&str, u32, &[u8]); 5] = [
        (".note.gnu.build-id", 7, note),
        (".gnu_debuglink", 1, b"prog.debug\0\0\x01\x02\x03\x04"),
        (".gnu_debugaltlink", 1, b"common\0\x12\x34"),
        (".debug_abbrev", 1, &abbreviations.concat()),
        (".debug_info", 1, &[&len[..], &[4, 0, 0, 0, 0, 0, 8], &entry].concat()),
    ];
    std::fs::write(scene.path("prog"), file(&sections)).unwrap();
    let mut symbols = vec![0; 24];
    symbols.extend([1, 0, 0, 0, 0x12, 0, 1, 0]);
    symbols.extend(TEXT_SVMA.to_le_bytes().into_iter().chain(4096u64.to_le_bytes()));
    let named = file(&[(".symtab", 2, &symbols), (".strtab", 3, b"\0f\0")]);
    std::fs::write(scene.path("named"), named).unwrap();
}

fn options(scene: &Scene) -> SymbolizerOptions {
    SymbolizerOptions {
        debug_dirs: vec![scene.path("debug")],
        debuginfod_cache: Some(scene.path("cache")),
        threads: 1,
        ..SymbolizerOptions::default()
    }
}

fn ask(path: &Path, options: SymbolizerOptions) -> Lookup {
    Symbolizer::new(options).symbolize(&ImageQuery::file(path), &[TEXT_SVMA + 16]).remove(0)
}

fn is_named(lookup: &Lookup) -> bool {
    lookup.origin().is_some()
}

/// Whether the file is opened by the work.
fn is_opened(path: &Path, work: impl FnOnce()) -> bool {
    let events = inotify::init(CreateFlags::NONBLOCK).unwrap();
    let resolved = std::fs::canonicalize(path).unwrap();
    inotify::add_watch(&events, resolved, WatchFlags::OPEN).unwrap();
    work();
    let mut space = [MaybeUninit::uninit(); 4096];
    Reader::new(events, &mut space).next().is_ok()
}

/// Makes a file of a kind; `false` if this user may not.
fn make(path: &Path, kind: FileType) -> bool {
    let device = if kind == FileType::CharacterDevice { rustix::fs::makedev(1, 3) } else { 0 };
    match kind {
        FileType::RegularFile => std::fs::write(path, "text").is_ok(),
        FileType::Socket => UnixListener::bind(path).is_ok(),
        FileType::Directory => std::fs::create_dir(path).is_ok(),
        kind => rustix::fs::mknodat(CWD, path, kind, Mode::RUSR, device).is_ok(),
    }
}

#[test]
fn nothing_but_regular_files_is_opened_wherever_a_file_is_looked_for() {
    let scene = Scene::new();
    write_programs(&scene);
    let home = scene.path("");
    let below = format!("debug/{}", home.strip_prefix("/").unwrap().display());
    let symfs = || SymbolizerOptions { symfs: Some(scene.path("symfs")), ..options(&scene) };
    let root = || SymbolizerOptions { roots: vec![scene.path("root")], ..options(&scene) };
    let (prog, inner) = (scene.path("prog"), Path::new("/opt/sp-test"));
    let asked = |place: &str| {
        match place {
            "symfs/opt/sp-test" => ask(inner, symfs()),
            "root/opt/sp-test" => ask(inner, root()),
            "other" => ask(&scene.path("other"), options(&scene)),
            _ => ask(&prog, options(&scene)),
        };
    };
    let by_link = format!("{below}/prog.debug");
    let places = [
        "other",
        "symfs/opt/sp-test",
        "root/opt/sp-test",
        "prog.debug",
        ".debug/prog.debug",
        &by_link,
        "debug/.build-id/ab/cd.debug",
        "debug/.build-id/12/34.debug",
        "cache/abcd/debuginfo",
        "common",
        "prog.dwo",
        "prog.dwp",
    ];
    let special =
        [FileType::Fifo, FileType::Socket, FileType::CharacterDevice, FileType::Directory];
    for place in places {
        // A socket's path may have a hundred bytes only, so it is made elsewhere and moved.
        let (path, made) = (scene.path(place), scene.path("made"));
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        for kind in [FileType::RegularFile].into_iter().chain(special) {
            if !make(&made, kind) {
                continue;
            }
            // Relative, for a link below a root.
            let depth = place.split('/').count() - 1;
            for is_link in [false, true] {
                if is_link && place.starts_with("root") {
                    continue;
                }
                if is_link {
                    std::fs::rename(&path, &made).unwrap();
                    symlink(format!("{}made", "../".repeat(depth)), &path).unwrap();
                } else {
                    std::fs::rename(&made, &path).unwrap();
                }
                let opened = is_opened(&path, || asked(place));
                assert_eq!(opened, kind == FileType::RegularFile, "{place} {kind:?} {is_link}");
            }
            for path in [&path, &made] {
                let _ = std::fs::remove_file(path).or_else(|_| std::fs::remove_dir(path));
            }
        }
    }
}

#[test]
fn what_the_kernel_makes_up_is_no_program() {
    let scene = Scene::new();
    for target in ["/proc/self/status", "/proc/kcore", "/proc/kmsg", "/sys/kernel/notes"] {
        let _ = std::fs::remove_file(scene.path("link"));
        symlink(target, scene.path("link")).unwrap();
        let found = ask(&scene.path("link"), options(&scene));
        assert_eq!(found, Lookup::unresolved(Reason::NoFile), "{target}");
    }
}

#[test]
fn links_below_a_targets_root_mean_the_targets_own_files() {
    let scene = Scene::new();
    write_programs(&scene);
    scene.shell(
        "mkdir -p root/opt root/else elsewhere && cp named root/else/it && cp named elsewhere/it && \
         ln -s /else/it root/opt/inside && ln -s \"$PWD/elsewhere/it\" root/opt/outside && \
         ln -s ../../elsewhere/it root/opt/above",
    );
    let below_root = |name: &str| {
        let options =
            SymbolizerOptions { roots: vec![scene.path("root")], ..SymbolizerOptions::default() };
        is_named(&ask(&Path::new("/opt").join(name), options))
    };
    assert!(below_root("inside"));
    assert!(!below_root("outside") && !below_root("above"));
    // A directory that the user names may be made of links to elsewhere.
    let below_symfs = |name: &str| {
        let options =
            SymbolizerOptions { symfs: Some(scene.path("root")), ..SymbolizerOptions::default() };
        is_named(&ask(&Path::new("/opt").join(name), options))
    };
    assert!(below_symfs("inside") && below_symfs("outside") && below_symfs("above"));
}
