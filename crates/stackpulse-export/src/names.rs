//! Names made harmless for readers that print them as they are.

/// Replaces characters that steer terminals or reorder text.
pub(crate) fn clean(name: &str) -> String {
    name.chars().map(|c| if steers(c) { '?' } else { c }).collect()
}

/// As [`clean`], for forms in which a semicolon ends a name.
pub(crate) fn one_name(name: &str) -> String {
    let replaced = |c| match c {
        ';' => ':',
        c if steers(c) => '?',
        c => c,
    };
    name.chars().map(replaced).collect()
}

fn steers(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}
