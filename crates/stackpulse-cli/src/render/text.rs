//! Names made fit for a line of a terminal.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Replaces what would move the cursor, break a line or turn its direction around.
pub(crate) fn printable(name: &str) -> String {
    let is_safe = |c: char| {
        // Characters without a width combine with others, or steer the direction of writing.
        !c.is_control() && (c.is_ascii() || c.width().is_some_and(|width| width > 0))
    };
    name.chars().map(|c| if is_safe(c) { c } else { '\u{fffd}' }).collect()
}

/// How many columns a text takes.
pub(super) fn columns(text: &str) -> usize {
    text.width()
}

/// Shortens a name to `width` columns by leaving out its middle, where names differ least.
pub(crate) fn elide(name: &str, width: usize) -> String {
    if name.width() <= width {
        return name.to_owned();
    }
    if width <= 3 {
        return first_columns(name.chars(), width).into_iter().collect();
    }
    let head = (width - 3).div_ceil(2);
    let tail = width - 3 - head;
    let mut short: String = first_columns(name.chars(), head).into_iter().collect();
    short.push_str("...");
    short.extend(first_columns(name.chars().rev(), tail).into_iter().rev());
    short
}

/// The first characters that fit into so many columns.
fn first_columns(characters: impl Iterator<Item = char>, width: usize) -> Vec<char> {
    let mut used = 0;
    characters
        .take_while(|c| {
            used += c.width().unwrap_or_default();
            used <= width
        })
        .collect()
}

/// Breaks a sentence into lines of at most `width` columns, between words where it can.
pub(crate) fn wrap(text: &str, width: usize) -> Vec<String> {
    let width = width.max(8);
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        let word = elide(word, width);
        match lines.last_mut() {
            Some(line) if line.width() + 1 + word.width() <= width => {
                line.push(' ');
                line.push_str(&word);
            }
            _ => lines.push(word),
        }
    }
    lines
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
    fn wide_characters_take_two_columns() {
        assert_eq!(elide("\u{6f22}\u{5b57}\u{6f22}\u{5b57}", 7), "\u{6f22}...\u{5b57}");
    }

    #[test]
    fn what_steers_a_terminal_does_not_reach_it() {
        assert_eq!(printable("a\x1b[31mb\nc"), "a\u{fffd}[31mb\u{fffd}c");
        assert_eq!(printable("a\u{202e}b\u{9b}c"), "a\u{fffd}b\u{fffd}c");
    }

    #[test]
    fn sentences_break_between_words() {
        assert_eq!(wrap("one two three", 8), ["one two", "three"]);
        assert_eq!(wrap("incomprehensible", 8), ["inc...le"]);
    }
}
