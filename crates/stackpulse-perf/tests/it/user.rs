//! What an ordinary user can do.

use crate::attach::{collect, samples};
use crate::harness::{has_tools, is_part, is_root, part, this_program};
use crate::target::{self, Target};
use stackpulse_perf::capture::{AttachMode, Capture, CaptureOptions};
use std::os::unix::process::CommandExt;
use std::path::Path;

/// Runs a part of a test as an ordinary user who may lock 8 MiB.
pub(crate) fn run_as_user(test: &str, name: &str) {
    let directory = target::directory();
    let here = |name: &str| directory.path().join(name);
    std::fs::copy(target::program(), here("perf-target")).unwrap();
    std::fs::copy(this_program(), here("it")).unwrap();
    let words = ["prlimit", "--memlock=8388608:8388608"];
    let mut command = part(&words, &here("it"), test, name);
    command.uid(65_534).gid(65_534).env(target::PROGRAM, here("perf-target"));
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    eprintln!("{said}");
    assert!(output.status.success(), "{said}");
}

fn number(path: impl AsRef<Path>) -> i64 {
    std::fs::read_to_string(path).unwrap().trim().parse().unwrap()
}

#[test]
fn an_ordinary_user_gets_rings_of_one_size_on_every_cpu() {
    const NAME: &str = "user::an_ordinary_user_gets_rings_of_one_size_on_every_cpu";
    if is_part("user") {
        for ring_buffer_stacks in [32, 64, 256, 1024] {
            let target = Target::start(&["spin", "4"]);
            let options = CaptureOptions { ring_buffer_stacks, ..CaptureOptions::default() };
            let mode = AttachMode::StopWhileAttaching;
            let mut capture = Capture::attach(target.pid(), mode, &options).unwrap();
            let settings = capture.settings();
            eprintln!("{ring_buffer_stacks} stacks: {settings:?}");
            let wanted = 32_768 * ring_buffer_stacks as usize;
            assert_eq!(settings.rings_reduced, settings.ring_bytes < wanted);
            // The kernel's share, the limit of 8 MiB, and the least that halving may leave of them.
            let allowed = (8 << 20)
                + settings.cpus
                    * 1024
                    * usize::try_from(number("/proc/sys/kernel/perf_event_mlock_kb")).unwrap();
            assert!(settings.ring_bytes * settings.cpus < allowed);
            assert!(
                settings.ring_bytes == wanted || settings.ring_bytes * settings.cpus * 4 > allowed,
                "no less than can be had"
            );
            collect(&mut capture, "samples", |events| samples(events).len() >= 4);
        }
        return;
    }
    if !is_root() || !has_tools(&["prlimit"]) {
        return;
    }
    if number("/proc/sys/kernel/perf_event_paranoid") > 2 {
        return crate::harness::skip("kernel.perf_event_paranoid is above 2");
    }
    run_as_user(NAME, "user");
}
