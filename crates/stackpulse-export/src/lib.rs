//! Resolved samples, ready for any form.
//!
//! *What you bring*: the records of a spool, and names for its addresses. *What you get*: a [`Profile`] of distinct
//! stacks with function names, a [`Timeline`] of samples if you ask for it ([`Loader::keep_times`]), and writers of other
//! programs' forms over them. *Not for*: looking names up (that is `stackpulse-symbolize`) or drawing on a terminal (that
//! is the command).
//!
//! | writer | read by | has | needs a timeline |
//! |---|---|---|---|
//! | [`write_pprof`] | `go tool pprof` | stacks of each thread, lines, inlined calls, mappings with build ids | for weights |
//! | [`write_firefox`] | profiler.firefox.com | processes, threads, time, CPU use, losses and gaps | yes |
//! | [`write_speedscope`] | speedscope.app | calls of each thread in order | yes |
//! | [`write_collapsed`] | flame graph tools | stacks and counts | no |
//! | [`write_svg`] | browsers | a flame graph | no |
//! | [`write_html`] | browsers | a page to look around in, without any other file | yes |
//! | [`write_perf_script`] | importers of `perf script` | every sample with its frames | yes |
//! | [`write_chrome`] | Perfetto, chrome://tracing | calls on the axis of time, losses and gaps | yes |
//!
//! Each distinct stack is converted once, and output is written as it is made. Characters in names that steer terminals, end names,
//! or are markup where they go are replaced or escaped. What is missing of a stack is a frame that says why.
//!
//! ```
//! use stackpulse_export::{Loader, NamedCall, Naming, Profile, write_collapsed};
//! # use stackpulse_spool::{Frame, Image, ImageId, ImageKind, Process, ProcessId, Record, RecordSink, Replay, Sample,
//! #     StackId, Thread, ThreadId, FrameId, Writer, WriterOptions};
//! # let mut writer = Writer::new(Vec::new(), WriterOptions::default())?;
//! # writer.record(&Record::Process(Process { pid: 7, generation: 0, parent: None, time_ns: 1 }))?;
//! # writer.record(&Record::Thread(Thread { process: ProcessId(0), tid: 7, time_ns: 1 }))?;
//! # writer.record(&Record::Comm { process: ProcessId(0), time_ns: 1, comm: b"demo" })?;
//! # writer.record(&Record::Image(Image { kind: ImageKind::Elf, path: b"/bin/demo", build_id: b"", device: (0, 0), inode: 0, file_size: 0, modified_ns: 0 }))?;
//! # writer.record(&Record::Frame(Frame::Code { image: ImageId(0), address: 0x1234 }))?;
//! # writer.record(&Record::Sample(Sample { time_ns: 2, thread: ThreadId(0), cpu: 0, weight: 1, leaf: FrameId(0), callers: StackId::EMPTY }))?;
//! # let spool = std::io::Cursor::new(writer.finish().map_err(|unfinished| unfinished.error)?.0);
//! let mut replay = Replay::open(spool)?;
//! let mut loader = Loader::default().keep_times();
//! while let Some((record, tables)) = replay.next_with_tables()? {
//!     loader.take(&record, tables);
//! }
//! // Asked once for each image; here every address has the same name.
//! let profile = Profile::new(loader.finish(), |_stacks, _image, addresses| {
//!     let call = NamedCall { name: Some("work".into()), ..NamedCall::default() };
//!     addresses.iter().map(|_| Naming::Named(vec![call.clone()])).collect()
//! });
//! let mut out = Vec::new();
//! write_collapsed(&profile, &mut out)?;
//! assert_eq!(String::from_utf8(out)?, "demo;work 1\n");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

mod chrome;
mod collapsed;
mod filter;
mod firefox;
mod load;
mod names;
mod page;
mod perf_script;
mod pprof;
mod profile;
mod speedscope;
mod stacks;
mod svg;
mod timeline;
mod tree;

pub use chrome::write_chrome;
pub use collapsed::write_collapsed;
pub use filter::{NameFilter, SampleFilter};
pub use firefox::write_firefox;
pub use load::Loader;
pub use page::write_html;
pub use perf_script::write_perf_script;
pub use pprof::write_pprof;
pub use profile::{Call, Function, FunctionId, Mode, NamedCall, Naming, Profile, module_name};
pub use speedscope::write_speedscope;
pub use stacks::{
    Actor, Node, Place, ProfileProcess, ProfileThread, RecordedName, StackKey, Stacks,
};
pub use svg::{FlameGraph, write_svg};
pub use timeline::{Mark, MarkKind, TimedSample, Timeline};
