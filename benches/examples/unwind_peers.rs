//! `unwind_peers FILE...`: the engine beside framehop, on the samples of recordings of perf's (`perf record --call-graph dwarf`,
//! x86-64, of this machine): time a frame, on the first pass and repeated, and whether the stacks agree.

#![allow(clippy::print_stdout, reason = "a tool for people")]

use framehop::x86_64::{CacheX86_64, UnwindRegsX86_64, UnwinderX86_64};
use framehop::{ExplicitModuleSectionInfo, Module, Unwinder};
use stackpulse_benches::unwinding::{Captured, Counting, Program};
use stackpulse_perf::Mmap;
use stackpulse_perf::regs::Arch;
use stackpulse_spool::{Frame, Truncation};
use stackpulse_track::perf_data::FileSource;
use stackpulse_track::{Engine, EngineOptions, ImageRequest, ProcessSource};
use std::collections::BTreeMap;
use std::error::Error;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// framehop with a program's modules.
struct Peer {
    unwinder: UnwinderX86_64<Vec<u8>>,
    cache: CacheX86_64,
    /// Start, end, bias and path of each mapping.
    modules: Vec<(u64, u64, u64, Vec<u8>)>,
}

impl Peer {
    fn new(program: &Program) -> Self {
        let mut source = FileSource::new(&program.facts, None);
        let (unwinder, cache) = (UnwinderX86_64::new(), CacheX86_64::new());
        let mut peer = Self { unwinder, cache, modules: Vec::new() };
        for mmap in &program.mappings {
            peer.add(mmap, &mut source);
        }
        peer
    }

    fn add(&mut self, mmap: &Mmap, source: &mut FileSource) -> Option<()> {
        let (start_avma, end_avma) = (mmap.start_avma, mmap.start_avma + mmap.len_bytes);
        let is_vdso = &*mmap.path == b"[vdso]";
        let request = ImageRequest {
            pid: mmap.task.pid,
            start_avma,
            end_avma,
            path: &mmap.path,
            file: &mmap.file,
            is_vdso,
        };
        let image = source.image(&request).ok()?;
        let offset = if is_vdso { 0 } else { mmap.file_offset };
        let segment = image.segments.iter().find(|segment| {
            segment.file_offset < offset + mmap.len_bytes
                && offset < segment.file_offset + segment.file_size
        })?;
        let bias = (start_avma + segment.file_offset).checked_sub(offset + segment.svma)?;
        let section = |section: stackpulse_track::Section| {
            let range = section.svma..section.svma + section.bytes.len() as u64;
            (!section.bytes.is_empty()).then_some((range, section.bytes))
        };
        let (eh_frame, eh_frame_hdr) =
            (section(image.cfi.eh_frame), section(image.cfi.eh_frame_hdr));
        let sections = ExplicitModuleSectionInfo {
            base_svma: 0,
            text_svma: Some(segment.svma..segment.svma + segment.file_size),
            got_svma: Some(image.cfi.got_svma..image.cfi.got_svma + 8),
            eh_frame_svma: eh_frame.as_ref().map(|(range, _)| range.clone()),
            eh_frame: eh_frame.map(|(_, bytes)| bytes),
            eh_frame_hdr_svma: eh_frame_hdr.as_ref().map(|(range, _)| range.clone()),
            eh_frame_hdr: eh_frame_hdr.map(|(_, bytes)| bytes),
            ..ExplicitModuleSectionInfo::default()
        };
        let name = String::from_utf8_lossy(&mmap.path).into_owned();
        self.unwinder.add_module(Module::new(name, start_avma..end_avma, bias, sections));
        self.modules.push((start_avma, end_avma, bias, mmap.path.to_vec()));
        Some(())
    }

    /// Unwinds a sample; addresses to look up, innermost first, and whether it came to a root.
    fn unwind(&mut self, sample: &Captured, frames: &mut Vec<u64>) -> bool {
        frames.clear();
        let [pc, sp, fp] = sample.registers;
        let stack = sample.stack();
        let mut read = |avma: u64| {
            let at = usize::try_from(avma.wrapping_sub(sp)).map_err(|_| ())?;
            let bytes = at.checked_add(8).and_then(|end| stack.get(at..end)).ok_or(())?;
            bytes.try_into().map(u64::from_le_bytes).map_err(|_| ())
        };
        let registers = UnwindRegsX86_64::new(pc, sp, fp);
        let mut walk = self.unwinder.iter_frames(pc, registers, &mut self.cache, &mut read);
        loop {
            match walk.next() {
                Ok(Some(frame)) => frames.push(frame.address_for_lookup()),
                Ok(None) => return true,
                Err(_) => return false,
            }
        }
    }

    fn pass(&mut self, program: &Program) -> (Duration, u64) {
        let mut frames = Vec::new();
        let started = Instant::now();
        let mut count = 0;
        for sample in &program.samples {
            self.unwind(sample, &mut frames);
            count += black_box(&frames).len() as u64;
        }
        (started.elapsed(), count)
    }

    /// A place as the spool tells it: path and address in the file.
    fn place(&self, avma: u64) -> Option<(&[u8], u64)> {
        let (.., bias, path) =
            self.modules.iter().rev().find(|&&(start, end, ..)| (start..end).contains(&avma))?;
        Some((path, avma - bias))
    }
}

fn engine_with_mappings(program: &Program) -> Engine<FileSource, Counting> {
    let mut options = EngineOptions::default();
    options.kernel_frames = true;
    let source = FileSource::new(&program.facts, None);
    let mut engine = Engine::new(source, Counting::default(), options);
    for event in program.mapping_events() {
        let Ok(()) = engine.handle(event);
    }
    engine
}

fn engine_pass(engine: &mut Engine<FileSource, Counting>, program: &Program) -> (Duration, u64) {
    let before = engine.sink().frames;
    let started = Instant::now();
    for sample in &program.samples {
        let Ok(()) = engine.handle(sample.event(Arch::X86_64));
    }
    (started.elapsed(), engine.sink().frames - before)
}

/// How many stacks agree with framehop's, and the others by kind.
fn agreement(program: &Program) -> (u64, BTreeMap<&'static str, u64>) {
    let mut engine = engine_with_mappings(program);
    let mut peer = Peer::new(program);
    let mut frames = Vec::new();
    let (mut same, mut others) = (0, BTreeMap::new());
    for sample in &program.samples {
        let Ok(()) = engine.handle(sample.event(Arch::X86_64));
        let is_whole = peer.unwind(sample, &mut frames);
        let theirs: Vec<_> = frames.iter().map(|&avma| peer.place(avma)).collect();
        let (ours, marker) = engine.sink().last_stack();
        let ours: Vec<_> = ours.into_iter().map(Some).collect();
        let common = ours.iter().zip(&theirs).take_while(|(ours, theirs)| ours == theirs).count();
        if common == ours.len() && common == theirs.len() {
            same += 1;
            continue;
        }
        let kind = match marker {
            None if common == theirs.len() && !is_whole => "framehop stops early",
            Some(Frame::Truncated(Truncation::OutsideCapture)) if common == ours.len() => {
                "framehop goes on where the capture ends"
            }
            Some(_) if common == ours.len() => "the engine stops early",
            None if common == ours.len() => "framehop goes on behind the root",
            _ => "other frames",
        };
        *others.entry(kind).or_default() += 1;
    }
    (same, others)
}

#[expect(clippy::cast_precision_loss, reason = "for people")]
fn ns_a_frame((time, frames): (Duration, u64)) -> f64 {
    time.as_nanos() as f64 / frames.max(1) as f64
}

fn main() -> Result<(), Box<dyn Error>> {
    for path in std::env::args_os().skip(1) {
        let program = Program::read(std::fs::File::open(&path)?)?;
        let mut best = [[f64::MAX; 2]; 2];
        let (mut frames, mut peer_frames) = (0, 0);
        for _ in 0..3 {
            // Both read the files of the program on their first pass.
            let started = Instant::now();
            let mut engine = engine_with_mappings(&program);
            let engine_start = started.elapsed();
            let started = Instant::now();
            let mut peer = Peer::new(&program);
            let peer_start = started.elapsed();
            for pass in 0..3 {
                let mut ours = engine_pass(&mut engine, &program);
                let mut theirs = peer.pass(&program);
                if pass == 0 {
                    ours.0 += engine_start;
                    theirs.0 += peer_start;
                }
                (frames, peer_frames) = (ours.1, theirs.1);
                let at = usize::from(pass > 0);
                best[at][0] = best[at][0].min(ns_a_frame(ours));
                best[at][1] = best[at][1].min(ns_a_frame(theirs));
            }
        }
        println!(
            "{}: {} samples, {frames} frames ({peer_frames})",
            path.display(),
            program.samples.len()
        );
        for (name, [ours, theirs]) in ["first pass", "repeated"].into_iter().zip(best) {
            let ratio = ours / theirs;
            println!("  {name}: {ours:.1} ns a frame, framehop {theirs:.1} ns, ratio {ratio:.2}");
        }
        let (same, others) = agreement(&program);
        println!("  same stacks: {same}; others: {others:?}");
    }
    Ok(())
}
