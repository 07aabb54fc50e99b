//! Recordings of a real AArch64 kernel, stack by stack against those of another unwinder (`tests/fixtures/aarch64`).

use crate::script::{Lines, with_kernel_frames};
use stackpulse_track::perf_data::PerfData;
use stackpulse_track::{Engine, GeneratedCode, ImageError, ImageFile, ImageRequest, ProcessSource};
use std::io::Cursor;
use std::path::{Path, PathBuf};

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/aarch64")
}

fn unpacked(path: &Path) -> Option<Vec<u8>> {
    zstd::decode_all(std::fs::File::open(path).ok()?).ok()
}

/// The files of the recorded machine.
struct Sysroot;

impl ProcessSource for Sysroot {
    fn maps(&mut self, _: u32) -> Option<Box<[u8]>> {
        None
    }

    fn command_line(&mut self, _: u32) -> Option<Box<[u8]>> {
        None
    }

    fn image(&mut self, request: &ImageRequest<'_>) -> Result<ImageFile, ImageError> {
        let path = std::str::from_utf8(request.path).unwrap().trim_start_matches('/');
        let name = if request.is_vdso { "vdso.so" } else { path };
        let bytes = unpacked(&fixtures().join("sysroot").join(format!("{name}.zst")));
        ImageFile::parse(&*bytes.ok_or(ImageError::Unreadable)?, request.is_vdso)
    }

    fn generated_names(&mut self, _: u32, _: bool) -> Vec<GeneratedCode> {
        Vec::new()
    }
}

fn unwound(name: &str) -> Vec<String> {
    let bytes = unpacked(&fixtures().join(format!("{name}.perf.data.zst"))).unwrap();
    let mut data = PerfData::open(Cursor::new(bytes)).unwrap();
    let mut options = with_kernel_frames();
    options.kernel_frames = data.facts().kernel_frames;
    options.join_cut_stacks = false;
    let mut engine = Engine::new(Sysroot, Lines::default(), options);
    while let Some(event) = data.next_event().unwrap() {
        engine.handle(event).unwrap();
    }
    engine.into_sink().stacks
}

/// Whether frames are those expected: the same address, or for a caller one before its return address.
fn is_same(found: &[&str], expected: &[&str]) -> bool {
    let place = |frame: &str| {
        let (object, address) = frame.rsplit_once("+0x").unwrap();
        (object.to_owned(), u64::from_str_radix(address, 16).unwrap())
    };
    found.len() == expected.len()
        && found.iter().zip(expected).all(|(found, expected)| {
            let (object, address) = place(found);
            let (expected_object, expected) = place(expected);
            object == expected_object && (address == expected || address + 1 == expected)
        })
}

fn check(name: &str) {
    let text = String::from_utf8(unpacked(&fixtures().join(format!("{name}.stacks.zst"))).unwrap());
    let text = text.unwrap();
    let stacks = unwound(name);
    assert_eq!(stacks.len(), text.lines().count(), "{name}");
    for (stack, line) in stacks.iter().zip(text.lines()) {
        let [_, _, end, frames] = line.split('\t').collect::<Vec<_>>().try_into().unwrap();
        let mut found: Vec<&str> = stack.split(' ').collect();
        let marker = found.pop_if(|last| last.starts_with('['));
        let marker = if found.is_empty() { None } else { marker };
        let expected_marker = (end == "truncated").then_some("[outside_capture]");
        let expected: Vec<&str> = frames.split(' ').collect();
        assert!(
            is_same(&found, &expected) && marker == expected_marker,
            "{name}: {stack}\nexpected {line}"
        );
    }
}

#[test]
fn signed_return_addresses_are_followed() {
    check("ladder-pac");
    check("ladder-pac-static");
}

#[test]
fn one_more_user_register_shifts_nothing() {
    check("ladder-pac-sve");
}

#[test]
fn stacks_go_on_behind_signal_handlers() {
    check("sigstack-dyn");
}

#[test]
fn behind_a_handler_on_another_stack_the_interrupted_frame_is_known_and_no_more() {
    check("sigstack-alt-dyn");
}

#[test]
fn tables_without_an_index_are_found() {
    check("deepwalk-static");
}

#[test]
fn frames_that_are_found_through_a_saved_register_are_followed() {
    check("realign-static");
}

#[test]
fn nothing_is_invented_below_a_frame_larger_than_the_capture() {
    check("bigframe-static");
}
