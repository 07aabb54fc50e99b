//! Names made fit for a line of a terminal.

/// Replaces control characters, so that a name cannot move the cursor or break a line.
pub(crate) fn printable(name: &str) -> String {
    name.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

/// Shortens a name to `width` characters by leaving out its middle, where names differ least.
pub(crate) fn elide(name: &str, width: usize) -> String {
    let len = name.chars().count();
    if len <= width {
        return name.to_owned();
    }
    if width <= 3 {
        return name.chars().take(width).collect();
    }
    let head = (width - 3).div_ceil(2);
    let tail = width - 3 - head;
    let mut short: String = name.chars().take(head).collect();
    short.push_str("...");
    short.extend(name.chars().skip(len - tail));
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_lose_their_middle() {
        assert_eq!(elide("short", 10), "short");
        assert_eq!(elide("abcdefghijklmnop", 10), "abcd...nop");
        assert_eq!(elide("abcdef", 3), "abc");
        assert_eq!(elide("abcdef", 0), "");
        assert_eq!(elide("\u{e4}\u{f6}\u{fc}\u{e4}\u{f6}\u{fc}", 5), "\u{e4}...\u{fc}");
    }

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        assert_eq!(printable("a\x1b[31mb\nc"), "a\u{fffd}[31mb\u{fffd}c");
    }
}
