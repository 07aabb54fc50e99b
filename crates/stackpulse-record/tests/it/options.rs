//! What the options promise.

use crate::scene::{Scene, options};
use stackpulse_record::{ErrorKind, EventChoice, RecorderOptions, SampleRate, SampledEvent};
use stackpulse_spool::{Record, Replay};
use std::num::NonZeroU32;
use std::time::Duration;

#[test]
fn the_defaults_are_those_of_the_contract() {
    let options = RecorderOptions::default();
    assert_eq!(options.sample_rate, SampleRate::hz(1000).unwrap());
    assert_eq!(options.event, EventChoice::Automatic);
    assert_eq!(options.stack_size, 32 << 10);
    assert_eq!(options.ring_buffer_stacks, 32);
    assert!(!options.include_kernel && !options.inherit_children);
    assert_eq!((options.start_timestamp_us, options.sample_interval_us), (None, None));
    assert_eq!(options.cpus, None);
    assert_eq!(options.publish_interval, Duration::from_millis(500));
}

/// The spool's settings record.
fn header(bytes: &[u8]) -> (u32, u64) {
    match Replay::open(bytes).unwrap().next().unwrap() {
        Some(Record::Settings(settings)) => (settings.rate_hz, settings.start_realtime_ns),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_header_tells_the_time_and_rate_it_was_given_or_the_true_ones() {
    let scene = Scene::new();
    let now_ns = || std::time::UNIX_EPOCH.elapsed().unwrap().as_nanos();
    let before_ns = now_ns();
    let (recorder, mut child) = scene.launch(&["work", "1"], &options());
    child.wait().unwrap();
    let (rate_hz, start_ns) = header(&recorder.finish().unwrap().1);
    assert_eq!(rate_hz, 997);
    assert!((before_ns..=now_ns()).contains(&start_ns.into()));

    let mut given = options();
    given.start_timestamp_us = Some(1_700_000_000_000_000);
    given.sample_interval_us = NonZeroU32::new(10_000);
    let (recorder, mut child) = scene.launch(&["work", "1"], &given);
    child.wait().unwrap();
    let header = header(&recorder.finish().unwrap().1);
    assert_eq!(header, (100, 1_700_000_000_000_000_000));
}

#[test]
fn without_stack_bytes_the_instruction_alone_is_told() {
    let mut options = options();
    options.stack_size = 0;
    let recording = Scene::new().record_with(&["work", "80"], &options);
    assert!(recording.within("work") > 30);
    assert_eq!(recording.within("in_child"), 0, "there is nothing to unwind");
    assert!(recording.summary.truncated > 30);
}

#[test]
fn the_largest_stack_is_taken_and_a_larger_one_refused() {
    let mut options = options();
    options.stack_size = 65_528;
    let recording = Scene::new().record_with(&["work", "80"], &options);
    assert!(recording.within("in_child") > 30);
    options.stack_size = 65_529;
    let scene = Scene::new();
    let refused = stackpulse_record::Recorder::attach_with_writer(
        std::process::id(),
        Vec::new(),
        stackpulse_record::AttachMode::Running,
        &options,
    );
    let error = refused.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert!(error.to_string().contains("65529") && error.to_string().contains("65528"), "{error}");
    drop(scene);
}

#[test]
fn rings_hold_as_many_stacks_as_asked_and_no_more_than_the_limit() {
    let scene = Scene::new();
    for (stacks, bytes) in [(0, 32 * 32_768), (1, 65_536), (33, 64 * 32_768)] {
        let mut options = options();
        options.ring_buffer_stacks = stacks;
        let (recorder, mut child) = scene.launch(&["work", "1"], &options);
        let settings = recorder.settings();
        assert!(settings.ring_bytes == bytes || settings.rings_reduced, "{stacks}: {settings:?}");
        assert!(settings.ring_bytes.is_power_of_two() && settings.ring_bytes >= 32_768);
        child.wait().unwrap();
        recorder.finish().unwrap();
    }
    let mut options = options();
    options.ring_buffer_stacks = 8193;
    let refused = stackpulse_record::Recorder::attach_with_writer(
        std::process::id(),
        Vec::new(),
        stackpulse_record::AttachMode::Running,
        &options,
    );
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::InvalidInput);
}

#[test]
fn the_event_is_one_for_the_whole_recording_and_can_be_read() {
    let scene = Scene::new();
    let mut options = options();
    options.event = EventChoice::CpuClock;
    let (recorder, mut child) = scene.launch(&["work", "1"], &options);
    assert_eq!(recorder.settings().event, SampledEvent::CpuClock);
    child.wait().unwrap();
    recorder.finish().unwrap();
}

#[test]
fn without_children_only_the_one_process_is_recorded() {
    let mut options = options();
    options.inherit_children = false;
    let scene = Scene::new();
    let (mut recorder, mut child) = scene.launch(&["tree", "1"], &options);
    let pid = child.pid();
    assert!(child.wait().unwrap().success());
    recorder.flush().unwrap();
    let (summary, bytes) = recorder.finish().unwrap();
    let recording = scene.recording(summary, &bytes);
    assert_eq!(recording.processes, [pid]);
    assert!(recording.within("in_parent") > 10 && recording.within("in_child") == 0);
}

#[test]
fn the_maximal_rate_is_the_kernels_limit() {
    let limit = std::fs::read_to_string("/proc/sys/kernel/perf_event_max_sample_rate").unwrap();
    let limit: u32 = limit.trim().parse().unwrap();
    let scene = Scene::new();
    let mut options = options();
    options.sample_rate = SampleRate::Maximum;
    options.start_enabled = false;
    let (recorder, mut child) = scene.launch(&["work", "1"], &options);
    // The kernel lowers the limit by itself when sampling takes too long.
    assert!(recorder.settings().frequency_hz <= limit);
    child.wait().unwrap();
    recorder.finish().unwrap();
}
