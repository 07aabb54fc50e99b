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

fn descriptors() -> u64 {
    std::fs::read_dir("/proc/self/fd").unwrap().count() as u64
}

/// Where the recording stands after a round.
struct Standing {
    resident_kib: u64,
    descriptors: u64,
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
    let mut standings = Vec::new();
    while start.elapsed() < whole {
        for words in [&["processes", "200"][..], &["threads", "200"], &["libraries", &a, &b]] {
            let mut running = crate::scene::Running::start(&scene, words);
            recorder.attach_process(running.pid(), mode).unwrap();
            while running.lives() {
                recorder.poll(Duration::from_millis(10)).unwrap();
            }
        }
        standings.push(Standing {
            resident_kib: resident_kib(),
            descriptors: descriptors(),
            bytes: path.metadata().unwrap().len(),
        });
    }
    recorder.finish().unwrap();
    // What has ended a moment ago is let go of a moment later: the least of many rounds is what stays.
    let third = standings.len() / 3;
    let (middle, last) = (&standings[third..2 * third], &standings[2 * third..]);
    let least = |part: &[Standing], of: fn(&Standing) -> u64| part.iter().map(of).min().unwrap();
    let resident = [middle, last].map(|part| least(part, |standing| standing.resident_kib));
    assert!(resident[1] * 10 <= resident[0] * 11, "memory grew: {resident:?} KiB");
    let descriptors = [middle, last].map(|part| least(part, |standing| standing.descriptors));
    assert!(descriptors[1] <= descriptors[0] + 2, "descriptors grew: {descriptors:?}");
    // The same rounds take the same bytes, whenever they come.
    let bytes = [&standings[..third], last]
        .map(|part| (part[part.len() - 1].bytes - part[0].bytes) / part.len() as u64);
    assert!(bytes[1] <= bytes[0] * 3 / 2, "bytes a round grew: {bytes:?}");
    eprintln!(
        "{} rounds: {resident:?} KiB, {descriptors:?} descriptors, {bytes:?} bytes",
        standings.len()
    );
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
