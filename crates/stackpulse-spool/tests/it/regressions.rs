//! Files that readers once got wrong, found by fuzzing.

use crate::agree::check_readers;
use stackpulse_spool::{Replay, text};
use std::fs;
use std::path::Path;

#[test]
fn files_that_were_read_wrongly_once_are_read_as_their_text() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/regressions");
    let mut count = 0;
    for file in fs::read_dir(directory).unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "txt") {
            continue;
        }
        let bytes = fs::read(&path).unwrap();
        check_readers(&bytes);
        let expected = fs::read_to_string(path.with_extension("txt")).unwrap_or_default();
        assert_eq!(dump(&bytes), expected, "{path:?}");
        count += 1;
    }
    assert!(count > 0, "the files are missing");
}

/// Records, state and damage as lines of text.
fn dump(bytes: &[u8]) -> String {
    let mut replay = match Replay::open(bytes) {
        Ok(replay) => replay,
        Err(error) => return format!("{error}\n"),
    };
    let mut lines = String::new();
    loop {
        match replay.next() {
            Ok(Some(record)) => lines += &format!("{}\n", text::line(&record)),
            Ok(None) => break,
            Err(error) => {
                lines += &format!("{error}\n");
                break;
            }
        }
    }
    lines += &format!("{}\n", text::state(replay.state()));
    for block in replay.damage() {
        let lost = block.lost;
        lines += &format!(
            "damaged offset={} len={} samples={} definitions={}: {}\n",
            block.offset, block.len, lost.samples, lost.definitions, block.damage
        );
    }
    lines
}
