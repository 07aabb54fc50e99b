//! Call frame information that is packed: the same comes out as from the plain section.

use crate::tools::{has_tool, run};
use stackpulse_unwind::ImageFile;
use std::path::Path;

fn debug_frame(file: &Path) -> Vec<u8> {
    let image = ImageFile::parse(std::fs::read(file).unwrap().as_slice(), false).unwrap();
    image.cfi.debug_frame.bytes
}

#[test]
fn compressed_and_packed_debug_frames_are_read() {
    if !["cc", "objcopy", "xz"].iter().all(|tool| has_tool(tool)) {
        return;
    }
    let scene = tempfile::tempdir().unwrap();
    let at = |name: &str| scene.path().join(name).to_str().unwrap().to_owned();
    let functions: String = (0..200)
        .map(|n| {
            format!("int f{n}(int *p) {{ int q[{n} + 1]; q[0] = p[0]; g(q); return q[0]; }}\n")
        })
        .collect();
    std::fs::write(at("a.c"), format!("int g(int *p);\n{functions}")).unwrap();
    let flags = ["-c", "-g", "-O1", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables"];
    run("cc", &[&flags[..], &["-gz=none", "-o", &at("plain.o"), &at("a.c")]].concat());
    let plain = debug_frame(Path::new(&at("plain.o")));
    assert!(plain.len() > 4_000, "{}", plain.len());

    for packing in ["zlib", "zstd"] {
        let option = format!("--compress-debug-sections={packing}");
        run("objcopy", &[&option, &at("plain.o"), &at("packed.o")]);
        assert!(
            std::fs::metadata(at("packed.o")).unwrap().len()
                < std::fs::metadata(at("plain.o")).unwrap().len()
        );
        assert_eq!(debug_frame(Path::new(&at("packed.o"))), plain, "{packing}");
    }

    std::fs::copy(at("plain.o"), at("inner")).unwrap();
    run("xz", &["-k", &at("inner")]);
    let add = format!(".gnu_debugdata={}", at("inner.xz"));
    run("objcopy", &["--strip-debug", "--add-section", &add, &at("plain.o"), &at("stripped.o")]);
    assert_eq!(debug_frame(Path::new(&at("stripped.o"))), plain);

    // What is damaged is as if it was not there.
    let mut packed = std::fs::read(at("inner.xz")).unwrap();
    let middle = packed.len() / 2;
    packed[middle] ^= 0xff;
    std::fs::write(at("inner.xz"), packed).unwrap();
    run("objcopy", &["--strip-debug", "--add-section", &add, &at("plain.o"), &at("stripped.o")]);
    assert_eq!(debug_frame(Path::new(&at("stripped.o"))), Vec::<u8>::new());
}
