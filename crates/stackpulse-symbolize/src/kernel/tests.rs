use super::*;

const KALLSYMS: &str =
    "ffff0020 t b\t[mod]\nffff0010 T a\nffff0018 d data\nbad line\nffff0010 T alias\n";

/// A root with the files that tell of a kernel.
fn root(files: &[(&str, &str)]) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    let common = [
        ("proc/sys/kernel/random/boot_id", "the-boot\n"),
        ("proc/sys/kernel/osrelease", "6.1.0\n"),
    ];
    for (path, text) in common.iter().chain(files) {
        let path = root.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    root
}

fn name(files: &[(&str, &str)], boot_id: &[u8]) -> Option<String> {
    let symbols = KernelSymbols::of_boot(boot_id, root(files).path())?;
    symbols.lookup(0xffff_0014).map(|name| name.to_string())
}

#[test]
fn functions_are_found_by_any_address_in_them() {
    let symbols = KernelSymbols::read(KALLSYMS.as_bytes()).unwrap();
    assert_eq!(symbols.lookup(0xffff_001f).as_deref(), Some("a"));
    assert_eq!(symbols.lookup(0xffff_0020).as_deref(), Some("b"));
    assert_eq!(symbols.lookup(0xffff_000f), None);
    assert_eq!(symbols.lookup(0xffff_0020 + MAX_FUNCTION), None);
}

#[test]
fn hidden_addresses_are_no_symbols() {
    assert!(
        KernelSymbols::read(b"0000000000000000 T a\n0000000000000000 t b\n" as &[u8]).is_none()
    );
    assert_eq!(name(&[("proc/kallsyms", "0000000000000000 T a\n")], b"the-boot"), None);
}

#[test]
fn another_machines_symbols_are_not_used() {
    assert_eq!(name(&[("proc/kallsyms", KALLSYMS)], b"the-boot").as_deref(), Some("a"));
    assert_eq!(name(&[("proc/kallsyms", KALLSYMS)], b"another-boot"), None);
    assert_eq!(name(&[("proc/kallsyms", KALLSYMS)], b""), None);
}

#[test]
fn system_map_serves_where_kallsyms_hides_and_the_kernel_is_in_its_place() {
    let hidden = ("proc/kallsyms", "0 T a\n");
    let map = ("boot/System.map-6.1.0", KALLSYMS);
    let in_place = ("proc/cmdline", "ro quiet nokaslr\n");
    assert_eq!(name(&[hidden, map, in_place], b"the-boot").as_deref(), Some("a"));
    assert_eq!(name(&[hidden, map, ("proc/cmdline", "ro quiet\n")], b"the-boot"), None);
    assert_eq!(name(&[hidden, ("boot/System.map-5.9.0", KALLSYMS), in_place], b"the-boot"), None);
    // What Debian puts there without the debug package.
    let stub = ("boot/System.map-6.1.0", "ffffffffffffffff B The real System.map is elsewhere\n");
    assert_eq!(name(&[hidden, stub, in_place], b"the-boot"), None);
}

#[test]
fn lines_without_an_end_take_little() {
    let endless = std::io::Read::take(std::io::repeat(b'f'), 64 << 20);
    assert!(KernelSymbols::read(BufReader::new(endless)).is_none());
    let text = [b"ffff0010 T \xff\xfe\n" as &[u8], &[b'1'; 10_000], b"\nffff0030 T z\n"].concat();
    let symbols = KernelSymbols::read(&text[..]).unwrap();
    assert_eq!(symbols.lookup(0xffff_0010).as_deref(), Some("\u{fffd}\u{fffd}"));
    assert_eq!(symbols.lookup(0xffff_0031).as_deref(), Some("z"));
}
