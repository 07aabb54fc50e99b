//! Where the debug information of a file may be: gdb's rules, as paths alone.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Where distributions put separate debug files.
pub(crate) const GLOBAL_DEBUG_DIR: &str = "/usr/lib/debug";

/// The places of a debug file with this build id: `.build-id/ab/cdef.debug` below each directory.
pub(crate) fn by_build_id(build_id: &[u8], debug_dirs: &[PathBuf]) -> Vec<PathBuf> {
    let Some((first, rest)) = build_id.split_first().filter(|(_, rest)| !rest.is_empty()) else {
        return Vec::new();
    };
    let hex: String = rest.iter().map(|byte| format!("{byte:02x}")).collect();
    let name = format!(".build-id/{first:02x}/{hex}.debug");
    debug_dirs.iter().map(|dir| dir.join(&name)).collect()
}

/// Where a debuginfod client keeps the debug file with this build id.
pub(crate) fn in_debuginfod_cache(build_id: &[u8], cache: &Path) -> Option<PathBuf> {
    let hex: String = build_id.iter().map(|byte| format!("{byte:02x}")).collect();
    (!hex.is_empty()).then(|| cache.join(hex).join("debuginfo"))
}

/// The places that a `.gnu_debuglink` in `file` names: beside the file, in `.debug` beside it, and below each
/// directory under the path that the file has on its own machine (gdb's manual, "Separate Debug Files").
pub(crate) fn by_link(
    file: &Path,
    recorded: &Path,
    link: &[u8],
    debug_dirs: &[PathBuf],
) -> Vec<PathBuf> {
    let link = Path::new(OsStr::from_bytes(link));
    // A link is a file name; anything else leads elsewhere.
    let (Some(name), Some(dir)) =
        (link.file_name().filter(|name| link == Path::new(name)), file.parent())
    else {
        return Vec::new();
    };
    let mut places = vec![dir.join(name), dir.join(".debug").join(name)];
    let home = recorded.parent().unwrap_or(recorded);
    let relative = home.strip_prefix("/").unwrap_or(home);
    places.extend(debug_dirs.iter().map(|debug_dir| debug_dir.join(relative).join(name)));
    // A file is not its own debug file.
    places.retain(|place| place != file);
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn build_ids_are_split_after_their_first_byte() {
        let dirs = [PathBuf::from("/d")];
        assert_eq!(
            by_build_id(&[0xab, 0xcd, 0x0f], &dirs),
            [PathBuf::from("/d/.build-id/ab/cd0f.debug")]
        );
        assert!(by_build_id(&[], &dirs).is_empty());
        assert!(by_build_id(&[1], &dirs).is_empty());
    }

    #[test]
    fn links_are_looked_for_as_gdb_does() {
        let (file, recorded) = (Path::new("/root/usr/bin/ls"), Path::new("/usr/bin/ls"));
        let places = by_link(file, recorded, b"ls.debug", &[PathBuf::from("/d")]);
        let expected =
            ["/root/usr/bin/ls.debug", "/root/usr/bin/.debug/ls.debug", "/d/usr/bin/ls.debug"];
        assert_eq!(places, expected.map(PathBuf::from));
    }

    #[test]
    fn links_that_lead_elsewhere_are_not_followed() {
        for link in [&b"../../etc/passwd"[..], b"/etc/passwd", b"", b"..", b"a/b"] {
            assert!(by_link(Path::new("/usr/bin/ls"), Path::new("/ls"), link, &[]).is_empty());
        }
        let of_itself = by_link(Path::new("/b/ls"), Path::new("/b/ls"), b"ls", &[]);
        assert_eq!(of_itself, [PathBuf::from("/b/.debug/ls")]);
    }
}
