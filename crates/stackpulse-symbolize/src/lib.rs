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
//!
//! Any program's addresses can be named, without a recording. Those of this one, for example:
//!
//! ```
//! use stackpulse_symbolize::{ImageQuery, Lookup, Symbolizer, SymbolizerOptions, demangle};
//!
//! let program = std::env::current_exe()?;
//! let addresses: Vec<u64> = (1..4096).map(|at| 0x400 * at).collect();
//! let answer = Symbolizer::new(SymbolizerOptions::default())
//!     .answer(&ImageQuery::file(&program), &addresses);
//! for (address, lookup) in addresses.iter().zip(&answer.lookups) {
//!     if let Lookup::Resolved { calls, .. } = lookup {
//!         let names = calls.iter().filter_map(|call| call.function.as_deref());
//!         println!("{address:#x} {:?}", names.map(demangle).collect::<Vec<_>>());
//!     }
//! }
//! assert!(answer.lookups.iter().any(|lookup| lookup.origin().is_some()));
//! assert!(answer.files.iter().all(|(path, _)| path.starts_with("/")));
//! # Ok::<(), std::io::Error>(())
//! ```
#![forbid(unsafe_code)]

mod addresses;
mod allowance;
mod answer;
mod batch;
mod demangle;
mod dwarf;
mod eh_bounds;
mod elf;
mod files;
mod fold;
mod image;
mod input;
mod kernel;
mod locate;
mod lookup;
mod options;
mod plt;
mod search;
mod section;
mod strings;
mod symbolizer;
mod symbols;
mod unpack;
mod work;

pub use answer::ImageAnswer;
pub use batch::{Progress, Question};
pub use demangle::demangle;
pub use fold::{without_arguments, without_suffixes};
pub use kernel::KernelSymbols;
pub use lookup::{Call, Lookup, Origin, Reason};
pub use options::SymbolizerOptions;
pub use symbolizer::{ImageQuery, Symbolizer};
