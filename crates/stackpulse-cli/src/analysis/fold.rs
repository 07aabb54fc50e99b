//! Names of modules without what differs from build to build.

use regex::Regex;
use std::borrow::Cow;
use std::sync::LazyLock;

/// Cargo's hash of a test or bench program, and the version of a library.
static MODULE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(-[0-9a-f]{16}$)|((\.so)[0-9.]*$)|(-[0-9][0-9.]*\.so$)")
        .expect("a pattern that is known")
});

/// Returns a module's name without hash and version.
pub(crate) fn folded_module(module: &str) -> Cow<'_, str> {
    match MODULE.captures(module) {
        Some(found) if found.get(1).is_some() => {
            module[..found.get(1).map_or(0, |at| at.start())].into()
        }
        Some(found) if found.get(3).is_some() => {
            module[..found.get(3).map_or(0, |at| at.end())].into()
        }
        Some(found) => {
            let start = found.get(0).map_or(0, |at| at.start());
            format!("{}.so", &module[..start]).into()
        }
        None => module.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_lose_hash_and_version() {
        assert_eq!(folded_module("it-0123456789abcdef"), "it");
        assert_eq!(folded_module("libx.so.6.1"), "libx.so");
        assert_eq!(folded_module("libc-2.31.so"), "libc.so");
        assert_eq!(folded_module("libx.so"), "libx.so");
        assert_eq!(folded_module("program-2"), "program-2");
    }
}
