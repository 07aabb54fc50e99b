//! Files that turn out to be code made at run time.

use crate::script::{World, attached, bare_sample, comm, fork, mmap, run, sample, task};
use stackpulse_perf::{CpuMode, SampleHead};
use stackpulse_track::GeneratedCode;

const MAPS: &str = "1000-2000 r-xs 00000000 00:01 7 /memfd:jit (deleted)\n\
                    3000-4000 r-xp 00000000 00:01 8 /lib.so\n";

fn world() -> World {
    let code = GeneratedCode { start_avma: 0x1000, size: 0x100, name: b"hot"[..].into() };
    World {
        names: [(10, vec![code.clone()]), (11, vec![code])].into(),
        generated: vec!["/memfd:jit"],
        ..World::default()
    }
}

/// Two frame records in generated code, then one that leads nowhere.
fn in_it(time_ns: u64, pid: u32) -> stackpulse_perf::Event {
    let stack = [0x7010, 0x1200, 0x7020, 0x1300, 0x7030, 0];
    sample(time_ns, task(pid, pid), 0x1010, (0x7000, 0x7000), &stack)
}

#[test]
fn they_are_generated_code_in_each_process_that_maps_them() {
    let generated = "generated+0x1010 generated+0x11ff generated+0x12ff";
    let library = "/lib.so+0x10 [no_unwind_info]";
    let events = vec![
        attached(1, 10, MAPS),
        // The child was there before it was found out.
        fork(2, task(10, 10), task(11, 11)),
        in_it(3, 10),
        in_it(4, 10),
        in_it(5, 11),
        sample(6, task(11, 11), 0x3010, (0x7000, 1), &[]),
        // Mapped when it is known.
        comm(7, task(11, 11), "new", true),
        mmap(8, 11, 0x1000, 0, "/memfd:jit (deleted)"),
        in_it(9, 11),
    ];
    let lines = run(events, world());
    assert_eq!(lines.stacks, [generated, generated, generated, library, generated]);
    let named = lines.all.iter().filter(|line| line.contains("name=\"hot\"")).count();
    assert_eq!(named, 3, "one for each program: {:?}", lines.all);
    assert!(!lines.all.iter().any(|line| line.contains("/memfd")), "{:?}", lines.all);
}

#[test]
fn they_are_generated_code_where_there_are_no_registers_too() {
    let user = |ip_avma| SampleHead {
        task: Some(task(10, 10)),
        ip_avma,
        cpu_mode: CpuMode::User,
        period: 1,
    };
    let events =
        vec![attached(1, 10, MAPS), bare_sample(2, user(0x1010)), bare_sample(3, user(0x3010))];
    let lines = run(events, world());
    assert_eq!(lines.stacks, ["generated+0x1010 [no_registers]", "/lib.so+0x10 [no_registers]"]);
    assert!(lines.all.iter().any(|line| line.contains("name=\"hot\"")), "{:?}", lines.all);
}
