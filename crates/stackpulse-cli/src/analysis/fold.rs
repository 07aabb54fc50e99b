//! Names without what differs from build to build.

use regex::Regex;
use std::borrow::Cow;
use std::sync::LazyLock;

/// What compilers append: hashes of Rust's legacy names, and clones of GCC and LLVM.
static SUFFIXES: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"(?x) ( ::h[0-9a-f]{16}
               | \.(isra|constprop|part|cold|lto_priv|llvm|clone|localalias|specialized|ifunc|resolver|warm|hot|unlikely)(\.[0-9]+)*
               | \ ?\[clone\ [^\]]*\]
               | \ ?\((\.(isra|constprop|part|cold|lto_priv|llvm|clone)(\.[0-9]+)*)+\)
               )+ $",
    )
    .expect("a pattern that is known")
});

/// Cargo's hash of a test or bench program, and the version of a library.
static MODULE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(-[0-9a-f]{16}$)|((\.so)[0-9.]*$)|(-[0-9][0-9.]*\.so$)")
        .expect("a pattern that is known")
});

/// Returns a function's name without hash and clone suffixes.
pub(crate) fn folded_name(name: &str) -> &str {
    SUFFIXES
        .find(name)
        .filter(|found| found.start() > 0)
        .map_or(name, |found| &name[..found.start()])
}

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
    fn hashes_and_clones_are_folded() {
        for name in [
            "work",
            "work.isra.0",
            "work.constprop.1.isra.0",
            "work.part.3.cold",
            "work.llvm.1234567890",
            "work [clone .isra.0]",
            "work [clone .part.1] [clone .cold]",
            "work::h0123456789abcdef",
        ] {
            assert_eq!(folded_name(name), "work", "{name}");
        }
        for name in [
            "a::b::{closure#0}",
            "std::map<int, x>::at",
            ".cold",
            "f.cold_start",
            "h0123456789abcdef",
        ] {
            assert_eq!(folded_name(name), name);
        }
    }

    #[test]
    fn modules_lose_hash_and_version() {
        assert_eq!(folded_module("it-0123456789abcdef"), "it");
        assert_eq!(folded_module("libx.so.6.1"), "libx.so");
        assert_eq!(folded_module("libc-2.31.so"), "libc.so");
        assert_eq!(folded_module("libx.so"), "libx.so");
        assert_eq!(folded_module("program-2"), "program-2");
    }
}
