//! Stacks from registers and copied stack bytes, by call frame information (x86-64 and AArch64).
//!
//! *What you bring*: the files of the mapped images, parsed by [`ImageFile::parse`]; the executable mappings of a process, in an
//! [`AddressSpace`]; a thread's registers and the bytes of its stack, as the kernel samples them.
//!
//! *What you get*: an [`Unwinder`] that tells the frames, innermost first, and the reason where it did not reach the root. Call frame
//! information (`.eh_frame`, `.debug_frame`, packed or not) is compiled at first use and serves every process that maps the image;
//! a thread's [`LastStack`] spares walking what has not changed since.
//!
//! *Not for*: names of functions, debuggers (only what leads to callers is computed), 32-bit code, following processes: see
//! `stackpulse-track` for these.
//!
//! This unwinds the thread that runs it:
//!
//! ```
//! # #[cfg(target_arch = "x86_64")]
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use stackpulse_unwind::{AddressSpace, Arch, Captured, ImageFile, LastStack, Region, Registers, Shown, Unwinder};
//! use std::{fs, os::unix::fs::FileExt};
//!
//! let (mut unwinder, mut space) = (Unwinder::new(), AddressSpace::default());
//! for line in fs::read_to_string("/proc/self/maps")?.lines() {
//!     let words: Vec<&str> = line.split_whitespace().collect();
//!     let [range, "r-xp", offset, _, _, path] = words[..] else { continue };
//!     let Some(file) = fs::read(path).ok().and_then(|bytes| ImageFile::parse(&*bytes, false).ok()) else { continue };
//!     let hex = |text| u64::from_str_radix(text, 16);
//!     let (start, end) = range.split_once('-').ok_or("no range")?;
//!     let image = unwinder.add_image();
//!     unwinder.provide(image, Some(file));
//!     let shown = Shown::Image { image, file_offset: hex(offset)? };
//!     space.map(Region { start_avma: hex(start)?, end_avma: hex(end)?, shown });
//! }
//! let (pc, sp, fp): (u64, u64, u64);
//! unsafe { std::arch::asm!("lea {}, [rip]", "mov {}, rsp", "mov {}, rbp", out(reg) pc, out(reg) sp, out(reg) fp) };
//! let mut stack = vec![0; 8192];
//! let read = fs::File::open("/proc/self/mem")?.read_at(&mut stack, sp)?;
//! let captured = Captured { registers: Registers::of_frame(Arch::X86_64, pc, sp, Some(fp)), stack: &stack[..read] };
//! let walk = unwinder.unwind::<()>(&space, &captured, &mut LastStack::default()).map_err(|_| "an image was not provided")?;
//! for frame in unwinder.frames() {
//!     println!("{:#x}", frame.address.lookup_avma());
//! }
//! assert!(unwinder.frames().len() > 5 && walk.cut.is_none(), "{walk:?}");
//! # Ok(())
//! # }
//! # #[cfg(not(target_arch = "x86_64"))]
//! # fn main() {}
//! ```
#![forbid(unsafe_code)]

mod address_space;
mod cfi;
mod code_address;
mod cut;
mod fast_walk;
mod image;
mod images;
mod last_stack;
mod memory;
mod registers;
mod unpack;
mod unwinder;
mod walk;

pub use address_space::{AddressSpace, ImageIndex, Region, Shown};
pub use cfi::{CfiSections, Section};
pub use code_address::CodeAddress;
pub use cut::Cut;
pub use image::{ImageError, ImageFile, ImageSymbol, Segment};
pub use last_stack::{LastStack, Steps};
pub use registers::Registers;
pub use stackpulse_perf::regs::Arch;
pub use unwinder::{Captured, Unread, Unwinder, Walk};
pub use walk::{MAX_DEPTH, WalkedFrame};
