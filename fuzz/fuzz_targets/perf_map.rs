//! Arbitrary perf maps, in two steps as a runtime writes them.
#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use stackpulse_track::ProcessSource;
use stackpulse_track::procfs::Procfs;
use std::fs::OpenOptions;
use std::io::Write;

#[derive(Arbitrary, Debug)]
struct Steps<'a> {
    first: &'a [u8],
    second: &'a [u8],
    is_restarted: bool,
}

/// This process's own map; gone when it ends.
struct Map(String);

impl Drop for Map {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fuzz_target!(|steps: Steps<'_>| {
    let pid = std::process::id();
    let map = Map(format!("/tmp/perf-{pid}.map"));
    std::fs::write(&map.0, steps.first).expect("/tmp takes files");
    let mut source = Procfs::new();
    let mut codes = source.generated_names(pid, false);
    let mut file = OpenOptions::new().append(true).open(&map.0).expect("it was written");
    file.write_all(steps.second).expect("/tmp takes files");
    codes.extend(source.generated_names(pid, steps.is_restarted));
    for code in codes {
        assert!(code.size > 0 && !code.name.is_empty() && code.name.len() <= 4096);
        assert!(!code.name.contains(&b'\n'));
    }
});
