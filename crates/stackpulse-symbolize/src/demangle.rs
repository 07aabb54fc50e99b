//! Names as their authors wrote them.

use std::borrow::Cow;

/// Longer names are not demangled: they blow up, and nobody reads them.
const MAX_MANGLED: usize = 16 << 10;

/// How deep a C++ name may nest.
const MAX_DEPTH: u32 = 128;

/// Returns the readable form of a Rust (v0 or legacy) or Itanium C++ name; any other name as it is. The hash at the
/// end of a Rust name is left out.
#[must_use]
pub fn demangle(name: &str) -> Cow<'_, str> {
    if name.len() > MAX_MANGLED {
        return Cow::Borrowed(name);
    }
    if let Ok(rust) = rustc_demangle::try_demangle(name) {
        return Cow::Owned(format!("{rust:#}"));
    }
    if name.starts_with("_Z") || name.starts_with("__Z") || name.starts_with("_GLOBAL_") {
        let options = cpp_demangle::ParseOptions::default().recursion_limit(MAX_DEPTH);
        let symbol = cpp_demangle::Symbol::new_with_options(name, &options);
        let shown = symbol.ok().and_then(|symbol| {
            let options = cpp_demangle::DemangleOptions::default().recursion_limit(MAX_DEPTH);
            symbol.demangle_with_options(&options).ok()
        });
        if let Some(shown) = shown.filter(|shown| shown.len() <= MAX_MANGLED * 4) {
            return Cow::Owned(shown);
        }
    }
    Cow::Borrowed(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rust_and_cpp_names_become_readable() {
        assert_eq!(
            demangle("_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE"),
            "core::fmt::Write::write_fmt"
        );
        assert_eq!(demangle("_RNvC6_123foo3bar"), "123foo::bar");
        assert_eq!(
            demangle("_ZNSt6vectorIiSaIiEE9push_backERKi"),
            "std::vector<int, std::allocator<int> >::push_back(int const&)"
        );
    }

    #[test]
    fn other_names_stay_as_they_are() {
        for name in ["main", "", "_Z", "_Znonsense!", "$s4main3fooyyF"] {
            assert_eq!(demangle(name), name);
        }
    }

    #[test]
    fn hostile_names_end_in_bounded_time() {
        let nested = format!("_Z{}", "N".repeat(10_000));
        assert_eq!(demangle(&nested), nested);
        let pointers = format!("_Z1f{}i", "P".repeat(15_000));
        let _ = demangle(&pointers);
        let long = "_Z".repeat(20_000);
        assert_eq!(demangle(&long), long);
    }
}
