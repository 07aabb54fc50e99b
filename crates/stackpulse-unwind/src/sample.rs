//! One sample: its stack, innermost first, as records.

use crate::address_space::{Region, Shown};
use crate::engine::{Engine, UserState, started};
use crate::fast_walk::Ended;
use crate::memo::Memo;
use crate::registers::RegisterSet;
use crate::source::ProcessSource;
use crate::walk::{CapturedStack, MAX_DEPTH, WalkedFrame, Walker};
use stackpulse_perf::regs::RegsAbi;
use stackpulse_perf::{CpuMode, Sample, Task, callchain};
use stackpulse_spool::{Frame, Record, RecordSink, Truncation};
use std::sync::Arc;

impl<S: ProcessSource> Engine<S> {
    pub(crate) fn sample<K: RecordSink>(
        &mut self,
        time_ns: u64,
        cpu: Option<u32>,
        sample: &Sample,
        kernel_frames: bool,
        sink: &mut K,
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
        if sample.head().cpu_mode == CpuMode::Kernel && !kernel_frames {
            count(&mut self.statistics.skipped_kernel);
            return Ok(());
        }
        self.ensure(time_ns, task.pid, sink)?;
        let mut frames = std::mem::take(&mut self.frames);
        frames.clear();
        self.kernel_part(sample, &mut frames, sink)?;
        let kernel_frames = frames.len();
        let (ended, memo) = self.user_part(time_ns, task, sample, &mut frames, sink)?;
        let mut stack = Stack { frames, kernel_frames, kept: 0, ended, memo };
        if stack.frames.is_empty() && !matches!(ended, Ended::Joined(_)) {
            count(&mut self.statistics.skipped_without_frame);
        } else {
            self.complete(time_ns, task, &mut stack);
            self.write(time_ns, cpu, task, sample.head().period, &mut stack, sink)?;
        }
        self.frames = stack.frames;
        Ok(())
    }

    /// Puts behind the new frames what the thread's last stack does not already have in the spool.
    fn complete(&mut self, time_ns: u64, task: Task, stack: &mut Stack) {
        let Some(memo) = &mut stack.memo else {
            if let Ended::Alone(Some(reason)) = stack.ended {
                self.statistics.saw_truncation(reason);
                stack.frames.push(Frame::Truncated(reason));
            }
            return;
        };
        let Some(process) = self.processes.get_mut(&task.pid) else { return };
        let thread = process.threads.entry(task.tid).or_insert_with(|| started(time_ns));
        let end = match stack.ended {
            Ended::Alone(end) => {
                memo.outside.clear();
                memo.outside.extend(end.map(Frame::Truncated));
                if end == Some(Truncation::OutsideCapture)
                    && self.joins_cut_stacks
                    && let Some(edge) = self.trail.outermost(&self.walked)
                    && let Some(callers) = thread.outer.callers_of(memo.version, edge)
                    && callers.len() + stack.frames.len() < MAX_DEPTH
                {
                    memo.outside.clear();
                    memo.outside.extend(callers.chain([Frame::Joined]));
                }
                end
            }
            Ended::Joined(_) => memo.end,
        };
        match (end, memo.outside.last()) {
            (_, Some(Frame::Joined)) => {
                self.statistics.joined = self.statistics.joined.saturating_add(1);
            }
            (Some(reason), _) => self.statistics.saw_truncation(reason),
            (None, _) => {}
        }
        let met = match stack.ended {
            Ended::Joined(index) => memo.entries.get(..=index).unwrap_or_default(),
            Ended::Alone(_) => &[],
        };
        if let Some(innermost) = met.last() {
            self.statistics.add_frame_pointer_steps(innermost.fp_steps);
            // The innermost frame of all is never among the callers.
            let callers = memo.outside.len() + met.len() - usize::from(stack.frames.is_empty());
            stack.kept = thread.last.len().min(callers);
        }
        let outermost_first =
            memo.outside.iter().copied().chain(met.iter().map(|entry| entry.frame));
        let at = stack.frames.len();
        stack.frames.extend(outermost_first.skip(stack.kept));
        stack.frames[at..].reverse();
    }

    /// The kernel's part of the callchain. The first address of each context is exact; the others are return addresses.
    fn kernel_part<K: RecordSink>(
        &mut self,
        sample: &Sample,
        frames: &mut Vec<Frame>,
        sink: &mut K,
    ) -> Result<(), K::Error> {
        for entry in callchain::entries(sample.callchain()) {
            if entry.mode != CpuMode::Kernel {
                let ignored = &mut self.statistics.user_callchain_ignored;
                *ignored = ignored.saturating_add(1);
                continue;
            }
            let image = self.output.kernel(sink)?;
            let address =
                if entry.first_of_context { entry.avma } else { entry.avma.wrapping_sub(1) };
            frames.push(Frame::Code { image, address });
        }
        if frames.is_empty() && sample.head().cpu_mode == CpuMode::Kernel {
            let image = self.output.kernel(sink)?;
            frames.push(Frame::Code { image, address: sample.head().ip_avma });
        }
        Ok(())
    }

    /// The user's part, unwound. Returns why it is cut, if it is.
    fn user_part<K: RecordSink>(
        &mut self,
        time_ns: u64,
        task: Task,
        sample: &Sample,
        frames: &mut Vec<Frame>,
        sink: &mut K,
    ) -> Result<(Ended, Option<Memo>), K::Error> {
        self.walked.clear();
        let (ended, memo) = match user_state(sample) {
            UserState::Registers(registers) => {
                self.prepare(time_ns, task.pid, registers.pc());
                self.walk(task, registers, sample)
            }
            state => {
                let counter = match state {
                    UserState::Bits32 => &mut self.statistics.with_32_bit_registers,
                    _ => &mut self.statistics.without_registers,
                };
                *counter = counter.saturating_add(1);
                // A kernel thread, or one that is ending, has no user part at all.
                if sample.head().cpu_mode != CpuMode::User {
                    return Ok((Ended::Alone(None), None));
                }
                let ip = sample.head().ip_avma;
                self.prepare(time_ns, task.pid, ip);
                let region = self
                    .processes
                    .get(&task.pid)
                    .and_then(|process| process.space.find(ip).copied());
                self.read_image(task.pid, region);
                self.walked.push(WalkedFrame { lookup_avma: ip, region });
                (Ended::Alone(Some(Truncation::NoRegisters)), None)
            }
        };
        let joins_generated = match (ended, &memo) {
            (Ended::Joined(index), Some(memo)) => {
                memo.entries.get(index).is_some_and(|entry| entry.fp_steps[0] > 0)
            }
            _ => false,
        };
        self.name_generated(time_ns, task.pid, joins_generated, sink)?;
        self.output.process(&mut self.processes, task.pid, sink)?;
        let Some(process) = self.processes.get_mut(&task.pid) else { return Ok((ended, memo)) };
        for walked in &self.walked {
            let at = (walked.lookup_avma, walked.region);
            frames.push(self.output.frame(process, &mut self.images, at, time_ns, sink)?);
        }
        Ok((ended, memo))
    }

    /// Walks, and reads the images that are met for the first time on the way: then the walk begins again.
    fn walk(
        &mut self,
        Task { pid, tid }: Task,
        registers: RegisterSet,
        sample: &Sample,
    ) -> (Ended, Option<Memo>) {
        let stack = CapturedStack { start_avma: registers.sp(), bytes: sample.user_stack() };
        let Some(process) = self.processes.get_mut(&pid) else { return (Ended::Alone(None), None) };
        let space = Arc::clone(&process.space);
        let version = process.space_version;
        let thread = process.threads.get_mut(&tid);
        let mut memo = thread.map_or_else(Memo::default, |thread| {
            let memo = std::mem::take(&mut thread.memo);
            thread.outer.keep(&memo, &stack);
            memo
        });
        memo.retain(version, &stack);
        memo.version = version;
        loop {
            self.walked.clear();
            let before = self.statistics;
            let mut walker = Walker {
                space: &space,
                images: &mut self.images,
                statistics: &mut self.statistics,
            };
            let scratch = (&mut self.walked, &mut self.trail);
            let fast = walker.walk_fast(&registers, stack, &memo, scratch);
            let ended = fast.unwrap_or_else(|| {
                self.walked.clear();
                *walker.statistics = before;
                Ended::Alone(walker.walk(registers, stack, &mut self.walked))
            });
            let unread = self.walked.iter().find_map(|frame| {
                let region = frame.region?;
                match region.shown {
                    Shown::Image { image, .. } if self.images.is_unread(image) => Some(region),
                    _ => None,
                }
            });
            let Some(region) = unread else { return (ended, fast.is_some().then_some(memo)) };
            self.statistics = before;
            self.read_image(pid, Some(region));
        }
    }

    fn read_image(&mut self, pid: u32, region: Option<Region>) {
        if let Some(Region { start_avma, end_avma, shown: Shown::Image { image, .. } }) = region {
            self.images.read(image, pid, start_avma..end_avma, &mut self.source);
        }
    }

    /// Reads the maps anew if the address is in none that is known.
    fn prepare(&mut self, time_ns: u64, pid: u32, pc: u64) {
        let Some(process) = self.processes.get_mut(&pid) else { return };
        if process.space.find(pc).is_some() || !process.refresh.is_allowed(time_ns) {
            return;
        }
        if let Some(text) = self.source.maps(pid) {
            self.statistics.maps_refreshed = self.statistics.maps_refreshed.saturating_add(1);
            process.reconcile(&text, &mut self.images);
        }
    }

    /// Looks for names of the generated code among the walked frames, at most once in a while.
    fn name_generated<K: RecordSink>(
        &mut self,
        time_ns: u64,
        pid: u32,
        joins_generated: bool,
        sink: &mut K,
    ) -> Result<(), K::Error> {
        const INTERVAL_NS: u64 = 100_000_000;
        let is_generated = |frame: &WalkedFrame| {
            frame.region.is_some_and(|region| region.shown == Shown::Anonymous)
        };
        if !joins_generated && !self.walked.iter().any(is_generated) {
            return Ok(());
        }
        let Some(process) = self.processes.get_mut(&pid) else { return Ok(()) };
        let is_first = process.names_read_ns.is_none();
        if process.names_read_ns.is_some_and(|read| time_ns.saturating_sub(read) < INTERVAL_NS) {
            return Ok(());
        }
        process.names_read_ns = Some(time_ns);
        for code in self.source.generated_names(pid, is_first) {
            if process.named.insert((code.start_avma, code.size)) {
                let image = self.output.generated(process, sink)?;
                sink.record(&Record::GeneratedName {
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

    fn write<K: RecordSink>(
        &mut self,
        time_ns: u64,
        cpu: Option<u32>,
        task: Task,
        weight: u64,
        stack: &mut Stack,
        sink: &mut K,
    ) -> Result<(), K::Error> {
        let owner = self.output.process(&mut self.processes, task.pid, sink)?;
        let Some(process) = self.processes.get_mut(&task.pid) else { return Ok(()) };
        let thread = self.output.thread(owner, process, task.tid, time_ns, sink)?;
        let Some(state) = process.threads.get_mut(&task.tid) else { return Ok(()) };
        let told = self.output.stack(&stack.frames, (&mut state.last, stack.kept), sink)?;
        // Without a memo, nothing is known of what this stack depends on.
        state.memo = match stack.memo.take() {
            Some(mut memo) => {
                let new = stack.frames.get(stack.kernel_frames..).unwrap_or_default();
                self.trail.remember(&mut memo, stack.ended, (&self.walked, new));
                memo
            }
            None => {
                state.outer.clear();
                Memo::default()
            }
        };
        let Some((leaf, callers)) = told else { return Ok(()) };
        self.statistics.samples_written = self.statistics.samples_written.saturating_add(1);
        let cpu = cpu.unwrap_or_default();
        sink.record(&Record::Sample(stackpulse_spool::Sample {
            time_ns,
            thread,
            cpu,
            weight,
            leaf,
            callers,
        }))
    }
}

/// A sample's stack on its way into the spool.
struct Stack {
    /// New frames, innermost first: the kernel's, then the user's.
    frames: Vec<Frame>,
    kernel_frames: usize,
    /// How many of the outermost are those of the thread's last stack.
    kept: usize,
    ended: Ended,
    /// The last stack, if it may be built on.
    memo: Option<Memo>,
}

fn user_state(sample: &Sample) -> UserState {
    match sample.user_regs() {
        None => UserState::Missing,
        Some(regs) if regs.abi() == RegsAbi::Bits32 => UserState::Bits32,
        Some(regs) => {
            RegisterSet::of_sample(&regs).map_or(UserState::Missing, UserState::Registers)
        }
    }
}
