//! The text of `/proc/PID/maps` (proc_pid_maps(5)).

use stackpulse_perf::FileIdentity;

/// One line: a range of addresses and what it shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MapsLine {
    /// First address.
    pub start_avma: u64,
    /// First address after it.
    pub end_avma: u64,
    /// Whether it may be executed.
    pub executable: bool,
    /// The offset in the file that the first address shows.
    pub file_offset: u64,
    /// Which file.
    pub file: FileIdentity,
    /// Its path, or a name such as `[vdso]`; empty for anonymous memory.
    pub path: Box<[u8]>,
}

/// Reads the lines of the text; what is no line is passed over.
pub fn parse(text: &[u8]) -> impl Iterator<Item = MapsLine> + '_ {
    text.split(|&byte| byte == b'\n').filter_map(line)
}

fn line(line: &[u8]) -> Option<MapsLine> {
    let mut rest = line;
    let mut word = || {
        let end = rest.iter().position(|&byte| byte == b' ').unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        rest = after.get(1..).unwrap_or_default();
        std::str::from_utf8(word).ok().filter(|word| !word.is_empty())
    };
    let hex = |text: &str| u64::from_str_radix(text, 16).ok();
    let (start, end) = word()?.split_once('-')?;
    let permissions = word()?;
    let file_offset = hex(word()?)?;
    let (major, minor) = word()?.split_once(':')?;
    let inode = word()?.parse().ok()?;
    // The path is padded to a column; a line feed in it is written as `\012`.
    let path = rest.trim_ascii_start();
    let (start_avma, end_avma) = (hex(start)?, hex(end)?);
    if start_avma >= end_avma {
        return None;
    }
    Some(MapsLine {
        start_avma,
        end_avma,
        executable: permissions.as_bytes().get(2) == Some(&b'x'),
        file_offset,
        file: FileIdentity {
            device: (u32::from_str_radix(major, 16).ok()?, u32::from_str_radix(minor, 16).ok()?),
            inode,
            inode_generation: 0,
            build_id: None,
        },
        path: unescape(path).into(),
    })
}

/// The kernel writes a line feed in a path as `\012`, and nothing else so.
fn unescape(path: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(path.len());
    let mut rest = path;
    while let Some((&byte, after)) = rest.split_first() {
        if rest.starts_with(b"\\012") {
            plain.push(b'\n');
            rest = &rest[4..];
        } else {
            plain.push(byte);
            rest = after;
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_give_range_permissions_file_and_path() {
        let text =
            b"7f00-7f80 r-xp 00001000 fe:01 123                        /usr/lib/a b.so (deleted)\n\
                     garbage\n\
                     8000-9000 rw-p 00000000 00:00 0\n\
                     9000-a000 r-xp 00000000 00:00 0          [vdso]\n";
        let lines: Vec<_> = parse(text).collect();
        assert_eq!(lines.len(), 3);
        assert_eq!(
            (lines[0].start_avma, lines[0].end_avma, lines[0].file_offset),
            (0x7f00, 0x7f80, 0x1000)
        );
        assert_eq!(lines[0].file.device, (0xfe, 1));
        assert_eq!(lines[0].file.inode, 123);
        assert!(lines[0].executable && !lines[1].executable);
        assert_eq!(&*lines[0].path, b"/usr/lib/a b.so (deleted)");
        assert_eq!(&*lines[1].path, b"");
        assert_eq!(&*lines[2].path, b"[vdso]");
    }

    #[test]
    fn paths_are_bytes_and_may_hold_line_feeds() {
        let lines: Vec<_> = parse(b"1000-2000 r-xp 0 0:0 1 /tmp/a\\012b\xff\\x").collect();
        assert_eq!(&*lines[0].path, b"/tmp/a\nb\xff\\x");
    }

    #[test]
    fn empty_and_inverted_ranges_are_no_lines() {
        assert_eq!(parse(b"2000-1000 r-xp 0 0:0 1 /x\n1000-1000 r-xp 0 0:0 1 /x\n").count(), 0);
    }
}
