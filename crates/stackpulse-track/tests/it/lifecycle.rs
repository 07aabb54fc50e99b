//! What forks, execs, exits and reused pids change.

use crate::script::{
    Lines, World, attached, bare_sample, comm, event, fork, mmap, run, sample, task,
};
use stackpulse_perf::{CpuMode, EventKind, SampleHead};
use stackpulse_track::{Engine, EngineOptions};

const MAPS: &str =
    "1000-2000 r-xp 00000000 00:00 1 /prog\n5000-6000 r-xp 00003000 00:00 2 /lib.so\n";

fn at(time_ns: u64, pid: u32, pc: u64) -> stackpulse_perf::Event {
    sample(time_ns, task(pid, pid), pc, (0x7000, 0), &[])
}

/// The image of each sample's innermost frame.
fn leaves(events: Vec<stackpulse_perf::Event>, world: World) -> Vec<String> {
    run(events, world)
        .stacks
        .iter()
        .map(|stack| stack.split(' ').next().unwrap().to_owned())
        .collect()
}

#[test]
fn a_child_sees_its_parents_mappings_from_its_first_sample() {
    let events =
        vec![attached(1, 10, MAPS), fork(2, task(10, 10), task(11, 11)), at(3, 11, 0x5010)];
    assert_eq!(leaves(events, World::default()), ["/lib.so+0x3010"]);
}

#[test]
fn what_a_child_maps_is_not_its_parents() {
    let events = vec![
        attached(1, 10, MAPS),
        fork(2, task(10, 10), task(11, 11)),
        mmap(3, 11, 0x5000, 0, "/other.so"),
        at(4, 11, 0x5010),
        at(5, 10, 0x5010),
    ];
    assert_eq!(leaves(events, World::default()), ["/other.so+0x10", "/lib.so+0x3010"]);
}

#[test]
fn an_exec_ends_all_mappings_for_later_samples_only() {
    let events = vec![
        attached(1, 10, MAPS),
        at(2, 10, 0x1010),
        comm(3, task(10, 10), "new", true),
        mmap(4, 10, 0x9000, 0, "/new"),
        at(5, 10, 0x9010),
        at(6, 10, 0x1010),
    ];
    assert_eq!(leaves(events, World::default()), ["/prog+0x10", "/new+0x10", "unknown+0x1010"]);
}

#[test]
fn a_rename_is_no_exec() {
    let events =
        vec![attached(1, 10, MAPS), comm(2, task(10, 10), "renamed", false), at(3, 10, 0x1010)];
    assert_eq!(leaves(events, World::default()), ["/prog+0x10"]);
}

#[test]
fn a_reused_pid_never_shows_old_mappings_and_is_a_generation_of_its_own() {
    let events = vec![
        attached(1, 10, MAPS),
        fork(2, task(10, 10), task(11, 11)),
        mmap(3, 11, 0x8000, 0, "/old.so"),
        fork(4, task(10, 10), task(11, 11)),
        at(5, 11, 0x8010),
    ];
    let lines = run(events, World::default());
    assert_eq!(lines.stacks, ["unknown+0x8010 [no_unwind_info]"]);
    let ended = lines.all.iter().position(|line| line == "process-exit time=4 process=1").unwrap();
    let begun = lines.all.iter().position(|line| line.contains("pid=11 generation=1")).unwrap();
    assert!(ended < begun);
}

#[test]
fn a_leaders_end_is_not_the_processs_end() {
    let events = vec![
        attached(1, 10, MAPS),
        fork(2, task(10, 10), task(10, 12)),
        event(3, EventKind::Exit { task: task(10, 10) }),
        sample(4, task(10, 12), 0x1010, (0x7000, 0), &[]),
    ];
    let lines = run(events, World::default());
    assert_eq!(lines.stacks, ["/prog+0x10 [no_unwind_info]"]);
    assert!(!lines.all.iter().any(|line| line.starts_with("process-exit")));
}

#[test]
fn an_address_outside_every_mapping_reads_the_maps_once() {
    let mut world = World::default();
    world.maps.insert(10, "8000-9000 r-xp 00000000 00:00 3 /late.so\n".to_owned());
    let events =
        vec![attached(1, 10, MAPS), at(1_000_000_000, 10, 0x8010), at(1_000_000_001, 10, 0xf000)];
    assert_eq!(leaves(events, world), ["/late.so+0x10", "unknown+0xf000"]);
}

#[test]
fn an_empty_maps_text_replaces_nothing() {
    let mut world = World::default();
    world.maps.insert(10, String::new());
    let events = vec![
        attached(1, 10, MAPS),
        event(2, EventKind::Lost { events: 3, lifecycle: true }),
        at(3, 10, 0xf000),
        at(4, 10, 0x1010),
    ];
    assert_eq!(leaves(events, world), ["unknown+0xf000", "/prog+0x10"]);
}

#[test]
fn lost_lifecycle_events_give_one_gap_and_one_recovery() {
    let mut world = World::default();
    world.maps.insert(10, MAPS.replace("lib", "new"));
    let lost = |time| event(time, EventKind::Lost { events: 1, lifecycle: true });
    let lines = run(vec![attached(1, 10, MAPS), lost(2), lost(3)], world);
    let gaps: Vec<_> = lines.all.iter().filter(|line| line.starts_with("gap")).collect();
    assert_eq!(gaps, [&format!("gap start=2 end={}", u64::MAX)]);
}

#[test]
fn threads_are_defined_with_their_names_at_their_first_sample() {
    let events = vec![
        attached(1, 10, MAPS),
        fork(2, task(10, 10), task(10, 12)),
        comm(3, task(10, 12), "worker", false),
        sample(4, task(10, 12), 0x1010, (0x7000, 0), &[]),
        event(5, EventKind::Exit { task: task(10, 12) }),
    ];
    let lines = run(events, World::default());
    let told: Vec<_> =
        lines.all.iter().filter(|line| line.starts_with("thread")).map(String::as_str).collect();
    assert_eq!(
        told,
        [
            "thread time=2 process=0 tid=12",
            "thread-name time=4 thread=0 name=\"worker\"",
            "thread-exit time=5 thread=0"
        ]
    );
}

#[test]
fn threads_without_a_sample_are_told_at_their_end() {
    let events = vec![
        attached(1, 10, MAPS),
        fork(2, task(10, 10), task(10, 12)),
        event(3, EventKind::Exit { task: task(10, 12) }),
        event(4, EventKind::Exit { task: task(10, 10) }),
    ];
    let lines = run(events, World::default());
    let told: Vec<_> =
        lines.all.iter().filter(|line| line.starts_with("thread")).map(String::as_str).collect();
    assert_eq!(told, ["thread time=2 process=0 tid=12", "thread-exit time=3 thread=0"]);
}

#[test]
fn samples_that_cannot_be_used_are_counted_each_in_one_place() {
    let head = |task, cpu_mode| SampleHead { task, ip_avma: 0x1010, cpu_mode, period: 1 };
    let (lines, options) = (Lines::default(), EngineOptions::default());
    let mut engine = Engine::new(World::default(), lines, options);
    for event in [
        attached(1, 10, MAPS),
        bare_sample(2, head(None, CpuMode::User)),
        bare_sample(3, head(Some(task(0, 0)), CpuMode::User)),
        bare_sample(4, head(Some(task(10, 10)), CpuMode::Kernel)),
        bare_sample(5, head(Some(task(10, 10)), CpuMode::Hypervisor)),
        bare_sample(6, head(Some(task(10, 10)), CpuMode::User)),
    ] {
        engine.handle(event).unwrap();
    }
    let counted = engine.statistics();
    assert_eq!(engine.sink().stacks, ["/prog+0x10 [no_registers]"]);
    assert_eq!(counted.samples_seen, 5);
    let skipped = [
        counted.skipped_without_task,
        counted.skipped_idle,
        counted.skipped_kernel,
        counted.skipped_without_frame,
        counted.samples_written,
    ];
    assert_eq!(skipped, [1; 5]);
}

#[test]
fn the_same_events_and_world_give_the_same_records() {
    let events = || {
        let mut events = vec![attached(1, 10, MAPS)];
        for child in 11..40 {
            events.push(fork(2, task(10, 10), task(child, child)));
            events.push(at(3, child, 0x1010 + u64::from(child)));
        }
        events
    };
    assert_eq!(run(events(), World::default()).all, run(events(), World::default()).all);
}
