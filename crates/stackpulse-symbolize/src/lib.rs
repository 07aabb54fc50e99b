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
//! assert_eq!(found, [Lookup::Unresolved { reason: Reason::NoFile }]);
//! ```
#![forbid(unsafe_code)]

mod demangle;
mod elf;
mod files;
mod kernel;
mod lookup;
mod search;
mod symbolizer;

pub use demangle::demangle;
pub use lookup::{Call, Lookup, Origin, Reason};
pub use symbolizer::{ImageQuery, Symbolizer, SymbolizerOptions};
