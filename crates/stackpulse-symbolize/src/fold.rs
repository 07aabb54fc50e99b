//! Names without what differs from build to build, or from one use of a template to the next.

use std::borrow::Cow;

/// What compilers call parts and copies of a function; a number may follow each.
const PARTS: [&str; 14] = [
    "isra",
    "constprop",
    "part",
    "cold",
    "lto_priv",
    "llvm",
    "clone",
    "localalias",
    "specialized",
    "ifunc",
    "resolver",
    "warm",
    "hot",
    "unlikely",
];

/// Returns a function's name without the suffixes of its parts and copies (`.cold`, `.part.0`, `.llvm.123`,
/// `[clone .isra.0]`), and without the hash of a Rust name (`::h0123456789abcdef`).
///
/// ```
/// assert_eq!(stackpulse_symbolize::without_suffixes("work.part.0.cold"), "work");
/// assert_eq!(stackpulse_symbolize::without_suffixes("a::work::h0123456789abcdef"), "a::work");
/// ```
#[must_use]
pub fn without_suffixes(name: &str) -> &str {
    let mut rest = name;
    while let Some(shorter) = without_last(rest).filter(|shorter| !shorter.is_empty()) {
        rest = shorter;
    }
    rest
}

/// Returns a readable name with `<...>` in the place of the arguments of its templates and generic types.
///
/// ```
/// use stackpulse_symbolize::without_arguments;
///
/// assert_eq!(without_arguments("std::map<int, Box<u8> >::at(int)"), "std::map<...>::at(int)");
/// assert_eq!(without_arguments("<a::B as c::D<u8>>::run"), "<a::B as c::D<...>>::run");
/// assert_eq!(without_arguments("operator<(Box<int>)"), "operator<(Box<...>)");
/// ```
#[must_use]
pub fn without_arguments(name: &str) -> Cow<'_, str> {
    if !name.contains('<') {
        return Cow::Borrowed(name);
    }
    let mut folded = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(at) = rest.find('<') {
        let (before, arguments) = rest.split_at(at);
        folded.push_str(before);
        // A type in angle brackets is the place of a Rust method, and the sign of an operator is no bracket.
        let is_list = before
            .ends_with(|last: char| last.is_alphanumeric() || matches!(last, '_' | ':'))
            && !before.ends_with("operator");
        if is_list {
            // What is cut short has no end, nor has anything in it that is worth a search.
            let Some(len) = closing(arguments) else {
                rest = arguments;
                break;
            };
            folded.push_str("<...>");
            rest = &arguments[len..];
        } else {
            folded.push('<');
            rest = &arguments[1..];
        }
    }
    folded.push_str(rest);
    Cow::Owned(folded)
}

/// How long a list is that starts with `<`, its `>` included; `None` if it has no end.
fn closing(list: &str) -> Option<usize> {
    let mut depth = 0u32;
    let mut last = b' ';
    for (at, byte) in list.bytes().enumerate() {
        match byte {
            b'<' => depth += 1,
            // Arrows belong to functions' types.
            b'>' if last != b'-' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(at + 1);
        }
        last = byte;
    }
    None
}

/// Takes the last suffix off; `None` if there is none.
fn without_last(name: &str) -> Option<&str> {
    if let Some(inner) = name.strip_suffix(']') {
        return inner.rfind("[clone ").map(|at| name[..at].trim_end());
    }
    if let Some(inner) = name.strip_suffix(')') {
        let at = inner.rfind('(')?;
        let parts = &inner[at + 1..];
        return (parts.starts_with('.') && without_suffixes(&format!("f{parts}")) == "f")
            .then(|| name[..at].trim_end());
    }
    let is_hash =
        |hash: &str| hash.len() == 16 && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
    if let Some((before, hash)) = name.rsplit_once("::h")
        && is_hash(hash)
    {
        return Some(before);
    }
    // A part, and the numbers behind it.
    let numbered = name.trim_end_matches(|last: char| last.is_ascii_digit() || last == '.');
    let is_numbered = numbered.len() == name.len() || name[numbered.len()..].starts_with('.');
    let (before, part) = numbered.rsplit_once('.').filter(|_| is_numbered)?;
    (PARTS.contains(&part) && !name.ends_with('.')).then_some(before)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_and_clones_are_left_out() {
        for name in [
            "work",
            "work.isra.0",
            "work.constprop.1.isra.0",
            "work.part.3.cold",
            "work.llvm.1234567890",
            "work.lto_priv.0.lto_priv.1",
            "work [clone .isra.0]",
            "work [clone .part.1] [clone .cold]",
            "work (.isra.0)",
            "work (.part.0.cold)",
            "work::h0123456789abcdef",
            "work::h0123456789abcdef.llvm.77",
        ] {
            assert_eq!(without_suffixes(name), "work", "{name}");
        }
    }

    #[test]
    fn other_names_stay_as_they_are() {
        for name in [
            "",
            ".cold",
            "a::b::{closure#0}",
            "std::map<int, x>::at",
            "f.cold_start",
            "f(int)",
            "f(.x)",
            "f.0",
            "f.cold.",
            "work.part0",
            "h0123456789abcdef",
            "a[3]",
        ] {
            assert_eq!(without_suffixes(name), name);
        }
    }

    #[test]
    fn operators_and_open_lists_are_no_lists() {
        for (name, expected) in [
            ("a < b", "a < b"),
            ("f<int", "f<int"),
            ("operator<<(int)", "operator<<(int)"),
            ("x::operator< <int>(int)", "x::operator< <int>(int)"),
            ("f<fn(u8) -> Box<u8>>(g<1>)", "f<...>(g<...>)"),
            ("call::<u8, Vec<T>>::{closure#0}", "call::<...>::{closure#0}"),
        ] {
            assert_eq!(without_arguments(name), expected);
        }
    }

    #[test]
    fn lists_without_an_end_are_searched_once() {
        let open = "a<".repeat(100_000);
        assert_eq!(without_arguments(&open), open);
    }
}
