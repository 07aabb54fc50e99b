//! Names, source lines and inlined calls for recorded addresses.
//!
//! *What you bring*: an image (a file's path and identity) and addresses in it. *What you get*: for each address the
//! calls there, innermost first, or the reason why there is no name. *Not for*: reading spools, or the network.
//!
//! ```
//! use stackpulse_symbolize::{ImageQuery, Lookup, Reason, Symbolizer, SymbolizerOptions};
//!
//! let mut symbolizer = Symbolizer::new(SymbolizerOptions::default());
//! let found = symbolizer.symbolize(&ImageQuery::file("/no/such/program"), &[0x1000]);
//! assert_eq!(found, [Lookup::unresolved(Reason::NoFile)]);
//! ```
#![forbid(unsafe_code)]

mod addresses;
mod demangle;
mod dwarf;
mod eh_bounds;
mod elf;
mod files;
mod image;
mod input;
mod kernel;
mod locate;
mod lookup;
mod minidebug;
mod plt;
mod search;
mod section;
mod strings;
mod symbolizer;
mod symbols;

pub use demangle::demangle;
pub use lookup::{Call, Lookup, Origin, Reason};
pub use symbolizer::{ImageAnswer, ImageQuery, Symbolizer, SymbolizerOptions};
