//! A recording that goes on for long needs no more and more of anything.

use crate::harness::{is_part, part, this_program};
use crate::scene::{Scene, options};
use stackpulse_record::Recorder;
use std::time::{Duration, Instant};

const NAME: &str = "soak::memory_and_descriptors_of_a_long_recording_stay_flat";

/// How long to record, seconds, by default; `STACKPULSE_SOAK_SECONDS` says otherwise.
const SECONDS: u64 = 45;

/// Resident memory of this process, KiB.
fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// Where the recording stands.
#[derive(Clone, Copy, Debug)]
struct Standing {
    rounds: u64,
    resident_kib: u64,
    descriptors: usize,
    bytes: u64,
}

/// Forks, threads and libraries, round after round, all followed by one recorder.
fn churn() {
    let seconds = std::env::var("STACKPULSE_SOAK_SECONDS").ok().and_then(|text| text.parse().ok());
    let whole = Duration::from_secs(seconds.unwrap_or(SECONDS));
    let scene = Scene::new();
    let libraries = [scene.shared_object("in_a"), scene.shared_object("in_b")];
    let [a, b] = libraries.each_ref().map(|path| path.to_str().unwrap().to_owned());
    let target = crate::scene::Running::start(&scene, &["obey", &a]);
    let path = scene.path("soak.spool");
    let mode = stackpulse_record::AttachMode::StopWhileAttaching;
    let mut recorder = Recorder::attach(target.pid(), &path, mode, &options()).unwrap();
    let start = Instant::now();
    let (mut rounds, mut standings) = (0, Vec::new());
    while start.elapsed() < whole {
        for words in [&["processes", "200"][..], &["threads", "200"], &["libraries", &a, &b]] {
            let mut running = crate::scene::Running::start(&scene, words);
            recorder.attach_process(running.pid(), mode).unwrap();
            while running.lives() {
                recorder.poll(Duration::from_millis(10)).unwrap();
            }
        }
        rounds += 1;
        standings.push(Standing {
            rounds,
            resident_kib: resident_kib(),
            descriptors: descriptors(),
            bytes: path.metadata().unwrap().len(),
        });
    }
    let (summary, _) = recorder.finish().unwrap();
    assert_eq!(summary.events_lost, 0);
    let (third, last) = (standings[standings.len() / 3], standings[standings.len() - 1]);
    eprintln!("{third:?} {last:?}");
    // Besides what is flat, a pid that was ever seen is remembered with its generation: less than 100 bytes each.
    let pids_kib = (last.rounds - third.rounds) * 203 * 100 / 1024;
    assert!(last.resident_kib * 10 <= third.resident_kib * 11 + pids_kib * 10, "memory grew");
    assert!(last.descriptors <= third.descriptors + 2, "descriptors grew");
    // The same rounds take the same bytes, whenever they come.
    let early = third.bytes / third.rounds;
    let late = (last.bytes - third.bytes) / (last.rounds - third.rounds);
    assert!(late <= early * 3 / 2, "{early} bytes a round at first, {late} later");
}

#[test]
fn memory_and_descriptors_of_a_long_recording_stay_flat() {
    if is_part("soak") {
        return churn();
    }
    let output = part(&[], &this_program(), NAME, "soak").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    eprintln!("{said}");
    assert!(output.status.success(), "{said}");
}
