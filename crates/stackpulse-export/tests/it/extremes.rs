//! Deep stacks, long and hostile names, many threads, only unknown frames.

use stackpulse_export::{
    Actor, FlameGraph, Loader, NamedCall, Naming, Node, Place, Profile, ProfileProcess,
    ProfileThread, StackKey, Stacks, TimedSample, write_chrome, write_collapsed, write_firefox,
    write_html, write_perf_script, write_pprof, write_speedscope, write_svg,
};
use stackpulse_spool::{ImageKind, OwnedImage};

/// One sample in each of so many threads, so many frames deep.
fn stacks(threads: u32, depth: u32, kind: ImageKind) -> Stacks {
    let mut stacks = Loader::default().keep_times().finish();
    stacks.images.push(OwnedImage {
        kind,
        path: b"/bin/deep".as_slice().into(),
        build_id: [].into(),
        device: (0, 0),
        inode: 0,
        file_size: 0,
        modified_ns: 0,
    });
    stacks.comms.push(b"com;m<b>\n".to_vec());
    stacks.processes.push(ProfileProcess {
        pid: 1,
        generation: 0,
        parent: None,
        comm: b"com;m<b>\n".to_vec(),
        command_line: Vec::new(),
        start_ns: 0,
        end_ns: None,
    });
    for place in 0..depth {
        stacks.places.push(Place::Code { image: 0, address: 0x1000 + u64::from(place) });
        if place + 1 < depth {
            stacks.nodes.push(Node { parent: place, place });
        }
    }
    for thread in 0..threads {
        let (process, start_ns) = (0, 0);
        stacks.threads.push(ProfileThread {
            process,
            tid: thread + 1,
            name: None,
            start_ns,
            end_ns: None,
        });
        let actor = Actor { thread, comm: 0 };
        let key = StackKey { actor, callers: depth - 1, leaf: depth - 1 };
        stacks.counts.insert(key, 1);
        stacks.total += 1;
        let timeline = stacks.timeline.as_mut().unwrap();
        timeline.stacks.push(key);
        let time_ns = u64::from(thread) * 1000;
        timeline.samples.push(TimedSample { time_ns, weight: 1000, stack: thread, cpu: 0 });
    }
    stacks
}

fn named(stacks: Stacks, name: impl Fn(u64) -> Option<String>) -> Profile {
    Profile::new(stacks, |_, _, addresses| {
        let naming = |&address: &u64| match name(address) {
            Some(name) => {
                Naming::Named(vec![NamedCall { name: Some(name.into()), ..NamedCall::default() }])
            }
            None => Naming::Unnamed { start: None },
        };
        addresses.iter().map(naming).collect()
    })
}

/// Writes every form; those of JSON must be JSON, texts must be free of what steers terminals.
fn write_all(profile: &Profile) {
    let texts = [
        written(|out| write_collapsed(profile, out)),
        written(|out| write_perf_script(profile, out)),
        written(|out| write_svg(profile, FlameGraph::default(), out)),
        written(|out| write_html(profile, out)),
    ];
    for text in texts {
        let text = String::from_utf8(text).unwrap();
        assert!(!text.contains(['\x1b', '\x07', '\u{202e}']), "names are clean");
    }
    for json in
        [written(|out| write_speedscope(profile, out)), written(|out| write_chrome(profile, out))]
    {
        serde_json::from_slice::<serde_json::Value>(&json).unwrap();
    }
    for gzip in
        [written(|out| write_pprof(profile, out)), written(|out| write_firefox(profile, None, out))]
    {
        assert!(gzip.starts_with(&[0x1f, 0x8b]));
    }
}

fn written(write: impl FnOnce(&mut Vec<u8>) -> std::io::Result<()>) -> Vec<u8> {
    let mut out = Vec::new();
    write(&mut out).unwrap();
    out
}

#[test]
fn stacks_of_ten_thousand_frames_are_written_whole() {
    let profile = named(stacks(3, 10_000, ImageKind::Elf), |address| Some(format!("f{address:x}")));
    write_all(&profile);
    let text = String::from_utf8(written(|out| write_collapsed(&profile, out))).unwrap();
    assert_eq!(text.lines().count(), 1);
    assert_eq!(text.matches(';').count(), 10_000);
    assert!(text.ends_with(" 3\n"));
}

#[test]
fn names_of_ten_thousand_characters_are_written() {
    write_all(&named(stacks(1, 3, ImageKind::Elf), |_| Some("x".repeat(10_000))));
}

#[test]
fn names_are_harmless_in_every_form() {
    let hostile = "a;b</script><script>alert(1)</script>\x1b[31m\x07\u{202e}\"'&\\";
    let profile = named(stacks(1, 2, ImageKind::Elf), |_| Some(hostile.to_owned()));
    write_all(&profile);
    let page = String::from_utf8(written(|out| write_html(&profile, out))).unwrap();
    assert!(!page.contains("alert(1)</script>"), "a name cannot end the data");
    assert!(page.contains("alert(1)\\u003c/script>"));
    let svg =
        String::from_utf8(written(|out| write_svg(&profile, FlameGraph::default(), out))).unwrap();
    assert!(!svg.contains("<script>alert"), "a name begins no element");
    let text = String::from_utf8(written(|out| write_collapsed(&profile, out))).unwrap();
    assert_eq!((text.lines().count(), text.matches(';').count()), (1, 2));
}

#[test]
fn a_hundred_thousand_threads_are_written() {
    let profile = named(stacks(100_000, 2, ImageKind::Elf), |_| Some("work".to_owned()));
    let speedscope = written(|out| write_speedscope(&profile, out));
    let file: serde_json::Value = serde_json::from_slice(&speedscope).unwrap();
    assert_eq!(file["profiles"].as_array().unwrap().len(), 100_000);
    let script = String::from_utf8(written(|out| write_perf_script(&profile, out))).unwrap();
    assert_eq!(script.matches("\n\n").count(), 100_000);
    assert!(written(|out| write_pprof(&profile, out)).starts_with(&[0x1f, 0x8b]));
    write_all(&named(stacks(1000, 2, ImageKind::Elf), |_| Some("work".to_owned())));
}

#[test]
fn unknown_and_kernel_frames_alone_are_written() {
    for kind in [ImageKind::Unknown, ImageKind::Kernel] {
        let profile = named(stacks(1, 2, kind), |_| None);
        write_all(&profile);
        let text = String::from_utf8(written(|out| write_collapsed(&profile, out))).unwrap();
        assert!(text.contains("[unknown] deep+0x1000"), "{text}");
    }
}
