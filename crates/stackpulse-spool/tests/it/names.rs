//! Names added to a spool.

use crate::records::{every_kind, lines, read, write};
use stackpulse_spool::{
    AppendError, ImageId, ImageKey, NamedCall, Replay, State, SymbolTable, SymbolTableBuilder,
    WriterOptions, append_symbols,
};
use std::io::Cursor;

const KEY: ImageKey = ImageKey { epoch: 0, image: ImageId(0) };

fn table(name: &[u8]) -> SymbolTable {
    let mut builder = SymbolTableBuilder::new();
    let inner = NamedCall { function: b"inlined", file: b"a.rs", line: 7, column: 3 };
    let outer = NamedCall { function: name, file: b"a.rs", line: 9, column: 0 };
    builder.insert(KEY, 0x2000, 0x2000, 5, &[]);
    builder.insert(KEY, 0x1234, 0x1200, 1, &[inner, outer]);
    builder.build()
}

fn names_of(bytes: &[u8]) -> Option<SymbolTable> {
    let mut replay = Replay::open(bytes).unwrap();
    while replay.next().unwrap().is_some() {}
    replay.take_names()
}

#[test]
fn appended_names_are_found_by_address_and_change_no_record() {
    let records = every_kind();
    let mut file = Cursor::new(write(&records, WriterOptions::default()));
    append_symbols(&mut file, &table(b"outer")).unwrap();
    let bytes = file.into_inner();
    assert_eq!(read(&bytes), (lines(&records), State::Finished));
    let names = names_of(&bytes).unwrap();
    let answer = names.get(KEY, 0x1234).unwrap();
    let calls: Vec<_> =
        answer.calls().map(|call| (call.function, call.file, call.line, call.column)).collect();
    assert_eq!(calls, [(&b"inlined"[..], &b"a.rs"[..], 7, 3), (b"outer", b"a.rs", 9, 0)]);
    assert_eq!((answer.origin(), answer.start()), (1, 0x1200));
    assert_eq!(
        names.get(KEY, 0x2000).map(|answer| (answer.calls().len(), answer.origin())),
        Some((0, 5))
    );
    assert_eq!(names.get(KEY, 0x1235), None);
}

#[test]
fn newer_names_replace_older_ones() {
    let mut file = Cursor::new(write(&every_kind(), WriterOptions::default()));
    append_symbols(&mut file, &table(b"old")).unwrap();
    append_symbols(&mut file, &table(b"new")).unwrap();
    let names = names_of(file.get_ref()).unwrap();
    assert_eq!(names.get(KEY, 0x1234).unwrap().calls().last().unwrap().function, b"new");
}

#[test]
fn an_append_cut_anywhere_leaves_the_spool_as_it_was() {
    let records = every_kind();
    let before = write(&records, WriterOptions::default());
    let mut file = Cursor::new(before.clone());
    append_symbols(&mut file, &table(b"outer")).unwrap();
    let bytes = file.into_inner();
    for cut in before.len()..bytes.len() {
        assert_eq!(read(&bytes[..cut]), (lines(&records), State::Finished), "cut at {cut}");
    }
}

#[test]
fn names_go_only_to_a_spool_that_has_ended() {
    let bytes = write(&every_kind(), WriterOptions::default());
    let mut torn = Cursor::new(bytes[..bytes.len() - 1].to_vec());
    assert!(matches!(append_symbols(&mut torn, &table(b"x")), Err(AppendError::NotEnded)));
    let mut other = Cursor::new(b"not a spool at all, but long enough for one".to_vec());
    assert!(matches!(append_symbols(&mut other, &table(b"x")), Err(AppendError::Read(_))));
}
