//! One sample: its stack, innermost first, as records.

use crate::by_id::Slot;
use crate::engine::Engine;
use crate::images::Found;
use crate::process::{Process, Thread};
use crate::source::ProcessSource;
use stackpulse_perf::regs::RegsAbi;
use stackpulse_perf::{CpuMode, Sample, callchain};
use stackpulse_spool::{Frame, Record, RecordSink, Truncation};
use stackpulse_unwind::{Captured, CodeAddress, Cut, Registers, Shown, Unread, Walk, WalkedFrame};

/// Names of generated code are looked for at most this often, for each process.
const NAMES_INTERVAL_NS: u64 = 100_000_000;

/// Whose sample it is, when and where.
#[derive(Clone, Copy)]
struct Taken {
    time_ns: u64,
    cpu: Option<u32>,
    process: Slot,
    thread: Slot,
    tid: u32,
}

/// What a sample's registers are good for.
#[expect(clippy::large_enum_variant, reason = "one at a time, on the stack")]
enum UserState {
    /// They can be unwound.
    Registers(Registers),
    /// The sample carries none.
    Missing,
    /// They are those of 32-bit code.
    Bits32,
}

impl<S: ProcessSource, K: RecordSink> Engine<S, K> {
    pub(crate) fn sample(
        &mut self,
        time_ns: u64,
        cpu: Option<u32>,
        sample: &Sample,
    ) -> Result<(), K::Error> {
        let count = |counter: &mut u64| *counter = counter.saturating_add(1);
        count(&mut self.statistics.samples_seen);
        let Some(task) = sample.head().task else {
            count(&mut self.statistics.skipped_without_task);
            return Ok(());
        };
        if task.tid == 0 {
            count(&mut self.statistics.skipped_idle);
            return Ok(());
        }
        if sample.head().cpu_mode == CpuMode::Kernel && !self.options.kernel_frames {
            count(&mut self.statistics.skipped_kernel);
            return Ok(());
        }
        let process = self.ensure(time_ns, task.pid)?;
        self.id_of(process)?;
        let threads = &mut self.processes[process].threads;
        let thread = threads.find_or_insert(task.tid, || Thread::new(time_ns));
        let taken = Taken { time_ns, cpu, process, thread, tid: task.tid };

        self.frames.clear();
        self.kernel_part(sample)?;
        let kernel_frames = self.frames.len();
        let walk = match user_state(sample) {
            UserState::Registers(registers) => {
                let captured = Captured { registers, stack: sample.user_stack() };
                Some(self.walked_part(taken, &captured)?)
            }
            UserState::Missing => {
                count(&mut self.statistics.without_registers);
                self.address_part(taken, sample)?;
                None
            }
            UserState::Bits32 => {
                count(&mut self.statistics.with_32_bit_registers);
                self.address_part(taken, sample)?;
                None
            }
        };
        if self.frames.is_empty() && walk.is_none_or(|walk| walk.met == 0) {
            count(&mut self.statistics.skipped_without_frame);
            self.processes[process].threads[thread].last.clear();
            return Ok(());
        }
        let kept = walk.map_or(0, |walk| self.complete(taken, &walk));
        self.write(taken, sample.head().period, kept)?;
        let last = &mut self.processes[process].threads[thread].last;
        match walk {
            Some(walk) => self.images.unwinder.remember(&walk, &self.frames[kernel_frames..], last),
            None => last.clear(),
        }
        Ok(())
    }

    /// The kernel's part of the callchain. The first address of each context is exact; the others are return addresses.
    fn kernel_part(&mut self, sample: &Sample) -> Result<(), K::Error> {
        for entry in callchain::entries(sample.callchain()) {
            if entry.mode != CpuMode::Kernel {
                let ignored = &mut self.statistics.user_callchain_ignored;
                *ignored = ignored.saturating_add(1);
                continue;
            }
            let image = self.output.kernel()?;
            let address =
                if entry.first_of_context { entry.avma } else { entry.avma.wrapping_sub(1) };
            self.frames.push(Frame::Code { image, address });
        }
        if self.frames.is_empty() && sample.head().cpu_mode == CpuMode::Kernel {
            let image = self.output.kernel()?;
            self.frames.push(Frame::Code { image, address: sample.head().ip_avma });
        }
        Ok(())
    }

    /// The user's part, unwound as far as it is not that of the thread's last stack.
    fn walked_part(&mut self, taken: Taken, captured: &Captured<'_>) -> Result<Walk, K::Error> {
        self.find_mapping(taken, captured.registers.pc());
        let walk = loop {
            let Process { space, threads, .. } = &mut self.processes[taken.process];
            let last = &mut threads[taken.thread].last;
            match self.images.unwinder.unwind(space, captured, last) {
                Ok(walk) => break walk,
                Err(unread) => self.read_image(taken.process, unread),
            }
        };
        let is_generated = |frame: &WalkedFrame| {
            frame.region.is_some_and(|region| region.shown == Shown::Anonymous)
        };
        let mut frames = self.images.unwinder.frames().iter();
        if walk.steps.frame_pointer_generated > 0 || frames.any(is_generated) {
            self.name_generated(taken)?;
        }
        let ids = &mut self.processes[taken.process].ids;
        for frame in self.images.unwinder.frames() {
            self.frames.push(self.output.frame(ids, frame, &self.images, taken.time_ns)?);
        }
        Ok(walk)
    }

    /// The user's part without registers: the sampled address alone, if it is the user's. A kernel thread, or one that is ending,
    /// has no user part at all.
    fn address_part(&mut self, taken: Taken, sample: &Sample) -> Result<(), K::Error> {
        if sample.head().cpu_mode != CpuMode::User {
            return Ok(());
        }
        let ip_avma = sample.head().ip_avma;
        self.find_mapping(taken, ip_avma);
        let find = |engine: &Self| engine.processes[taken.process].space.find(ip_avma).copied();
        let mut region = find(self);
        if let Some(shown_by) = region
            && let Shown::Image { image, .. } = shown_by.shown
            && self.images.unwinder.is_unread(image)
        {
            self.read_image(taken.process, Unread { image, region: shown_by });
            region = find(self);
        }
        if region.is_some_and(|region| region.shown == Shown::Anonymous) {
            self.name_generated(taken)?;
        }
        let frame = WalkedFrame { address: CodeAddress::InstructionPointer(ip_avma), region };
        let ids = &mut self.processes[taken.process].ids;
        let frame = self.output.frame(ids, &frame, &self.images, taken.time_ns)?;
        self.statistics.saw_truncation(Truncation::NoRegisters);
        self.frames.extend([frame, Frame::Truncated(Truncation::NoRegisters)]);
        Ok(())
    }

    /// Reads an image that a process maps. One that is code made at run time is none of its images any more.
    fn read_image(&mut self, process: Slot, unread: Unread) {
        let process = &mut self.processes[process];
        let found = self.images.read(unread, process.pid, &mut self.source);
        if found == Found::Generated {
            process.make_anonymous(unread.image);
        }
    }

    /// Reads the maps anew if the address is in none that is known.
    fn find_mapping(&mut self, taken: Taken, pc_avma: u64) {
        let process = &mut self.processes[taken.process];
        if process.space.find(pc_avma).is_some() || !process.refresh.is_allowed(taken.time_ns) {
            return;
        }
        if let Some(text) = self.source.maps(process.pid) {
            self.statistics.maps_refreshed = self.statistics.maps_refreshed.saturating_add(1);
            process.reconcile(&text, &mut self.images);
        }
    }

    /// Looks for names of generated code, at most once in a while.
    fn name_generated(&mut self, Taken { time_ns, process, .. }: Taken) -> Result<(), K::Error> {
        let Process { pid, ids, names_read_ns, named, .. } = &mut self.processes[process];
        let is_first = names_read_ns.is_none();
        if names_read_ns.is_some_and(|read| time_ns.saturating_sub(read) < NAMES_INTERVAL_NS) {
            return Ok(());
        }
        *names_read_ns = Some(time_ns);
        for code in self.source.generated_names(*pid, is_first) {
            if named.insert((code.start_avma, code.size)) {
                let image = self.output.generated(ids)?;
                self.output.record(&Record::GeneratedName {
                    image,
                    time_ns,
                    address: code.start_avma,
                    size: code.size,
                    name: &code.name,
                })?;
            }
        }
        Ok(())
    }

    /// Puts behind the new frames what the thread's last stack does not already have in the spool. Returns how many of the
    /// outermost frames are those that were written last.
    fn complete(&mut self, taken: Taken, walk: &Walk) -> usize {
        let Thread { last, written, .. } = &self.processes[taken.process].threads[taken.thread];
        self.statistics.add_steps(walk.steps);
        let joined = last.joined();
        let marker = match (&joined, walk.cut) {
            (Some(_), _) => Some(Frame::Joined),
            (None, cut) => cut.map(|cut| Frame::Truncated(reason(cut))),
        };
        match marker {
            Some(Frame::Truncated(reason)) => self.statistics.saw_truncation(reason),
            Some(_) => self.statistics.joined = self.statistics.joined.saturating_add(1),
            None => {}
        }
        let joined = joined.into_iter().flatten();
        let outermost_first = joined.chain(marker).chain(last.outermost(walk.met));
        let known = last.joined().map_or(0, |joined| joined.len())
            + usize::from(marker.is_some())
            + walk.met;
        let kept = if walk.met > 0 {
            // The innermost frame of all is never among the callers.
            written.len().min(known - usize::from(self.frames.is_empty()))
        } else {
            0
        };
        let at = self.frames.len();
        self.frames.extend(outermost_first.skip(kept));
        self.frames[at..].reverse();
        kept
    }

    fn write(&mut self, taken: Taken, weight: u64, kept: usize) -> Result<(), K::Error> {
        let Taken { time_ns, cpu, tid, .. } = taken;
        let Process { ids, threads, .. } = &mut self.processes[taken.process];
        let Some(process) = ids.process else { return Ok(()) };
        let known = &mut threads[taken.thread];
        let thread = self.output.thread(known, (process, tid), time_ns)?;
        let stack = self.output.stack(&self.frames, (&mut known.written, kept))?;
        let Some((leaf, callers)) = stack else { return Ok(()) };
        self.statistics.samples_written = self.statistics.samples_written.saturating_add(1);
        let cpu = cpu.unwrap_or_default();
        let sample = stackpulse_spool::Sample { time_ns, thread, cpu, weight, leaf, callers };
        self.output.record(&Record::Sample(sample))
    }
}

fn user_state(sample: &Sample) -> UserState {
    match sample.user_regs() {
        None => UserState::Missing,
        Some(regs) if regs.abi() == RegsAbi::Bits32 => UserState::Bits32,
        Some(regs) => Registers::of_sample(&regs).map_or(UserState::Missing, UserState::Registers),
    }
}

/// How the spool tells why a walk ended.
fn reason(cut: Cut) -> Truncation {
    match cut {
        Cut::OutsideCapture => Truncation::OutsideCapture,
        Cut::NoUnwindInfo => Truncation::NoUnwindInfo,
        Cut::NullReturnAddress => Truncation::NullReturnAddress,
        Cut::DepthLimit => Truncation::DepthLimit,
        Cut::Loop => Truncation::Loop,
        _ => Truncation::BadCfa,
    }
}
