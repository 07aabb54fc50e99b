//! Single stacks: what is followed, and what is not.

use crate::script::{World, attached, run, sample, task};
use stackpulse_track::{CfiSections, GeneratedCode, ImageFile, Section, Segment};

const TASK: stackpulse_perf::Task = stackpulse_perf::Task { pid: 10, tid: 10 };

#[test]
fn generated_code_is_named_and_followed_by_frame_pointers() {
    let mut world = World::default();
    let code = GeneratedCode { start_avma: 0x1000, size: 0x100, name: b"hot"[..].into() };
    world.names.insert(10, vec![code]);
    let maps = "1000-2000 r-xp 00000000 00:00 0\n";
    // Two frame records, then one that leads nowhere.
    let stack = [0x7010, 0x1200, 0x7020, 0x1300, 0x7030, 0];
    let events =
        vec![attached(1, 10, maps), sample(2, task(10, 10), 0x1010, (0x7000, 0x7000), &stack)];
    let lines = run(events, world);
    assert_eq!(lines.stacks, ["generated+0x1010 generated+0x11ff generated+0x12ff"]);
    assert!(
        lines
            .all
            .iter()
            .any(|line| line.contains("address=0x1000") && line.contains("name=\"hot\""))
    );
}

#[test]
fn frame_records_that_lead_out_of_code_are_not_followed() {
    let maps = "1000-2000 r-xp 00000000 00:00 0\n";
    let follow = |fp: u64, stack: &[u64]| {
        let events = vec![attached(1, 10, maps), sample(2, TASK, 0x1010, (0x7000, fp), stack)];
        run(events, World::default()).stacks[0].clone()
    };
    let cut = "generated+0x1010 [no_unwind_info]";
    assert_eq!(follow(0x7000, &[0x7010, 0x9000]), cut, "not code");
    assert_eq!(follow(0x6ff0, &[0x7010, 0x1200]), cut, "below the stack pointer");
    assert_eq!(follow(0x7004, &[0x7010, 0x1200, 0x1200]), cut, "not aligned");
    assert_eq!(follow(0x7100, &[0x7010, 0x1200]), cut, "outside the captured bytes");
}

/// `.eh_frame` of one function at 0x1000, 0x100 bytes: CFA is rsp + 16, the return address at CFA - 8.
pub(crate) fn image() -> ImageFile {
    let cie = [
        0x14, 0, 0, 0, // length
        0, 0, 0, 0, // CIE
        1, 0, // version, no augmentation
        1, 0x78, 16, // code and data alignment, return address register
        0x0c, 7, 16, // def_cfa rsp + 16
        0x90, 1, // rip at CFA - 8
        0, 0, 0, 0, 0, 0,
    ];
    let mut bytes = cie.to_vec();
    bytes.extend_from_slice(&0x1c_u32.to_le_bytes());
    bytes.extend_from_slice(&0x1c_u32.to_le_bytes()); // distance to the CIE
    bytes.extend_from_slice(&0x1000_u64.to_le_bytes());
    bytes.extend_from_slice(&0x100_u64.to_le_bytes());
    bytes.extend_from_slice(&[0; 8]);
    bytes.extend_from_slice(&[0; 4]);
    ImageFile {
        segments: vec![Segment { file_offset: 0, file_size: 0x1000, svma: 0x1000 }],
        cfi: CfiSections { eh_frame: Section { svma: 0x8000, bytes }, ..CfiSections::default() },
        ..ImageFile::default()
    }
}

fn unwound(stack: &[u64]) -> String {
    let mut world = World::default();
    world.images.insert(b"/prog".to_vec(), image());
    let maps = "40000-41000 r-xp 00000000 00:00 1 /prog\n";
    let events = vec![attached(1, 10, maps), sample(2, TASK, 0x40010, (0x7000, 1), stack)];
    run(events, world).stacks[0].clone()
}

#[test]
fn callers_are_looked_up_by_their_return_address_minus_one() {
    let found = unwound(&[1, 0x40020, 2, 0x40030]);
    assert_eq!(found, "/prog+0x1010 /prog+0x101f /prog+0x102f [outside_capture]");
}

#[test]
fn each_reason_for_an_early_end_is_told() {
    assert_eq!(unwound(&[]), "/prog+0x1010 [outside_capture]");
    assert_eq!(unwound(&[1, 0]), "/prog+0x1010 [null_return_address]");
    assert_eq!(unwound(&[1, 0x90000]), "/prog+0x1010 [bad_cfa]");
    // Code of the image that no entry covers, and a frame pointer that is none.
    assert_eq!(unwound(&[1, 0x40200]), "/prog+0x1010 /prog+0x11ff [no_unwind_info]");
}

#[test]
fn endless_stacks_end_at_the_depth_limit() {
    let stack: Vec<u64> = (0..4000).map(|at| if at % 2 == 1 { 0x40020 } else { 0 }).collect();
    let found = unwound(&stack);
    assert!(found.ends_with("[depth_limit]"));
    assert_eq!(found.split(' ').count(), 1025);
}
