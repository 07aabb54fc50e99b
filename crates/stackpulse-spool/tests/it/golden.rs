//! Files of every version, which must be read as they were for ever.

use crate::shared::{Reader, Shared};
use stackpulse_spool::{Replay, Snapshot, Tail, text};
use std::fs;
use std::io::{Cursor, ErrorKind};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Every golden spool, and the text beside it.
fn golden() -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mut found = Vec::new();
    for version in fs::read_dir(root).unwrap() {
        for file in fs::read_dir(version.unwrap().path()).unwrap() {
            let path = file.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "spool") {
                let text = fs::read_to_string(path.with_extension("txt")).unwrap();
                found.push((path, text));
            }
        }
    }
    assert!(found.len() > 30, "golden files are missing");
    found.sort();
    found
}

/// Reads a spool as text with one of the readers; the text of its names is the same for all.
macro_rules! dump {
    ($reader:expr, $bytes:expr) => {{
        let mut reader = $reader;
        let mut lines = String::new();
        while let Some(record) = reader.next().unwrap() {
            lines += &format!("{}\n", text::line(&record));
        }
        if let Some(names) = Snapshot::open(Cursor::new($bytes)).unwrap().names().unwrap() {
            for (key, address, answer) in names.iter() {
                lines += &format!("{}\n", text::name(key, address, answer));
            }
        }
        assert_eq!(reader.damage(), []);
        lines + &format!("{}\n", text::state(reader.state()))
    }};
}

#[test]
fn every_reader_reads_every_golden_file_as_its_text() {
    for (path, expected) in golden() {
        let bytes = fs::read(&path).unwrap();
        assert_eq!(dump!(Replay::open(&bytes[..]).unwrap(), &bytes), expected, "{path:?}");
        let snapshot = Snapshot::open(Cursor::new(&bytes)).unwrap();
        assert_eq!(dump!(snapshot, &bytes), expected, "{path:?} as a snapshot");
        let file = Shared::default();
        file.bytes_mut().extend_from_slice(&bytes);
        let tail = Tail::open(Reader::of(&file)).unwrap();
        assert_eq!(dump!(tail, &bytes), expected, "{path:?} as a tail");
    }
}

/// The reader in Python was written from the page of the format alone.
#[test]
fn a_reader_written_from_the_page_agrees_with_every_golden_text() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let files = golden();
    // Its standard library has no zstd; without the program, compressed files are not compared.
    let has_zstd = Command::new("zstd").arg("--version").output().is_ok();
    let may_skip = std::env::var_os("STACKPULSE_SKIP_NOTHING").is_none();
    assert!(has_zstd || may_skip, "zstd is not installed");
    let files = files.iter().filter(|(path, _)| has_zstd || !path.ends_with("compressed.spool"));
    let (paths, texts): (Vec<_>, Vec<_>) = files.map(|(path, text)| (path, text.as_str())).unzip();
    let run = Command::new("python3").arg(tests.join("read_spool.py")).args(paths).output();
    let run = match run {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            assert!(
                std::env::var_os("STACKPULSE_SKIP_NOTHING").is_none(),
                "python3 is not installed"
            );
            eprintln!("skipped: python3 is not installed");
            return;
        }
        run => run.unwrap(),
    };
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    assert_eq!(String::from_utf8(run.stdout).unwrap(), texts.concat());
}

#[test]
fn the_page_of_the_format_shows_a_golden_file_byte_by_byte() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(root.join("../../docs/spool-format.md")).unwrap();
    let example = page.split("## 9. ").nth(1).unwrap().split("```").nth(1).unwrap();
    let bytes = example.lines().filter_map(|line| line.split('|').next());
    let bytes = bytes.flat_map(str::split_whitespace);
    let bytes: Vec<u8> = bytes.map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect();
    assert_eq!(bytes, fs::read(root.join("tests/golden/v1/sample.spool")).unwrap());
}
