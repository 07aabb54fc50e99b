//! A pid that is used again belongs to a new process.

use crate::attach::{collect, options};
use crate::harness::{is_part, run_in_pid_namespace};
use crate::target::Target;
use stackpulse_perf::EventKind;
use stackpulse_perf::capture::{AttachMode, AttachOutcome, Capture};

/// Starts a target with this pid: in a pid namespace of its own nobody else takes it.
fn start_with_pid(pid: u32) -> Target {
    // Threads have numbers too: the last one given may not be ours to set for the first try.
    for _ in 0..100 {
        std::fs::write("/proc/sys/kernel/ns_last_pid", (pid - 1).to_string()).unwrap();
        let target = Target::start(&["idle", "0"]);
        if target.pid() == pid {
            return target;
        }
    }
    panic!("pid {pid} could not be had");
}

#[test]
fn a_pid_used_again_ends_the_old_process_first() {
    const NAME: &str = "pid_reuse::a_pid_used_again_ends_the_old_process_first";
    if is_part("namespace") {
        let shell = Target::start(&["idle", "0"]);
        let mut capture = Capture::attach(shell.pid(), AttachMode::Running, &options()).unwrap();
        for mode in [AttachMode::Running, AttachMode::StopWhileAttaching] {
            let first = start_with_pid(3000);
            assert_eq!(capture.attach_process(3000, mode).unwrap(), AttachOutcome::Attached);
            drop(first);
            // The old process's end has not been read, nor any of its records.
            let second = start_with_pid(3000);
            assert_eq!(capture.attach_process(3000, mode).unwrap(), AttachOutcome::Attached);
            assert!(capture.process_is_active(3000));
            drop(second);
            let events = collect(&mut capture, "both ends", |events| ends(events) == 2);
            let told: Vec<_> = events
                .iter()
                .filter_map(|event| match &event.kind {
                    EventKind::Attached(process) if process.pid == 3000 => Some("begin"),
                    EventKind::ProcessExit { pid: 3000 } => Some("end"),
                    _ => None,
                })
                .collect();
            assert_eq!(told, ["begin", "end", "begin", "end"]);
        }
        return;
    }
    run_in_pid_namespace(NAME);
}

fn ends(events: &[stackpulse_perf::Event]) -> usize {
    let is_end = |kind: &EventKind| matches!(kind, EventKind::ProcessExit { pid: 3000 });
    events.iter().filter(|event| is_end(&event.kind)).count()
}
