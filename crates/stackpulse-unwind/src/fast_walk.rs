//! The walk as it nearly always goes: by pc, stack pointer and frame pointer alone, until it meets the thread's last stack.
//!
//! What it cannot follow exactly (signal frames, rules that need other registers in outer frames) it leaves to the full walk,
//! which begins anew.

use crate::address_space::{Region, Shown};
use crate::cfi::{Jump, Memory, Simple};
use crate::memo::{Entry, Memo, Slot};
use crate::registers::{RegisterSet, without_signature};
use crate::walk::{At, CapturedStack, MAX_DEPTH, Step, WalkedFrame, Walker, ended_by_null};
use stackpulse_perf::regs::Arch;
use stackpulse_spool::{Frame, Truncation};
use std::cell::RefCell;

/// How a walk ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// At this frame of the last stack.
    Joined(usize),
    /// At the root, or before it for this reason.
    Alone(Option<Truncation>),
}

/// What a new frame's step depended on.
#[derive(Clone, Copy, Debug)]
struct Trace {
    sp: u64,
    fp: u64,
    kind: Kind,
    /// Where its slots begin; its frame pointer's is the last, if it has one.
    slots_start: usize,
    fp_steps: [u64; 2],
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    /// A simple rule: the return address's slot, and the frame pointer's.
    Simple { cfa_by_fp: bool, restores_fp: bool },
    /// Nothing was needed.
    Nothing,
    /// All that was read is in the slots, and the frame pointer may have been used.
    Recorded,
    /// More than that was needed.
    Unknown,
}

/// Memory used again for each walk.
#[derive(Debug, Default)]
pub(crate) struct Trail {
    traces: Vec<Trace>,
    slots: Vec<Slot>,
    missing_avma: Option<u64>,
}

/// The three registers of a frame.
#[derive(Clone, Copy)]
struct State {
    pc: u64,
    sp: u64,
    fp: Option<u64>,
}

/// Tells all words that are read.
struct Recording<'a> {
    stack: CapturedStack<'a>,
    slots: RefCell<&'a mut Vec<Slot>>,
}

impl Memory for Recording<'_> {
    fn read(&self, avma: u64) -> Option<u64> {
        let value = self.stack.read(avma)?;
        self.slots.borrow_mut().push(Slot { avma, value });
        Some(value)
    }
}

impl Walker<'_> {
    /// Walks from a sample's registers outwards; new frames go to `frames`, innermost first. `None`: the full walk is needed.
    pub(crate) fn walk_fast(
        &mut self,
        registers: &RegisterSet,
        stack: CapturedStack<'_>,
        memo: &Memo,
        (frames, trail): (&mut Vec<WalkedFrame>, &mut Trail),
    ) -> Option<Ended> {
        let arch = registers.arch();
        let fp_number = RegisterSet::fp_number(arch);
        let mut state =
            State { pc: registers.pc(), sp: registers.sp(), fp: registers.get(fp_number) };
        let mut region: Option<Region> = None;
        let mut may_meet = memo.entries.len();
        trail.traces.clear();
        trail.slots.clear();
        trail.missing_avma = None;
        loop {
            let is_exact = frames.is_empty();
            let lookup_avma = if is_exact { state.pc } else { state.pc.wrapping_sub(1) };
            if let Some(index) = memo.meets(&mut may_meet, lookup_avma, (state.sp, state.fp)) {
                let whole = frames.len() + index + 1;
                return (whole < MAX_DEPTH).then_some(Ended::Joined(index));
            }
            if !region.is_some_and(|region| region.contains(lookup_avma)) {
                region = self.space.find(lookup_avma).copied();
            }
            if region.is_none() && !is_exact {
                return Some(Ended::Alone(Some(Truncation::BadCfa)));
            }
            frames.push(WalkedFrame { lookup_avma, region });
            trail.traces.push(Trace {
                sp: state.sp,
                fp: state.fp.unwrap_or_default(),
                kind: Kind::Unknown,
                slots_start: trail.slots.len(),
                fp_steps: [0; 2],
            });
            if frames.len() >= MAX_DEPTH {
                return None;
            }
            let at = At { region, lookup_avma, is_exact };
            match self.jump(at) {
                Jump::Outermost => {
                    trail.close(Kind::Nothing);
                    return Some(Ended::Alone(None));
                }
                Jump::Simple(rule) => {
                    match trail.simple_step(rule, &mut state, (arch, is_exact), stack) {
                        Ok(()) => {}
                        Err(Some(Truncation::NullReturnAddress)) if self.may_end_by_null(at) => {
                            return Some(Ended::Alone(None));
                        }
                        Err(end) => return Some(Ended::Alone(end)),
                    }
                }
                Jump::Other => {
                    let mut full = if is_exact { *registers } else { state.registers(arch) };
                    match self.recorded_step(&mut full, at, stack, trail) {
                        Step::Caller { is_exact: false } => {}
                        Step::Outermost if is_exact => return Some(Ended::Alone(None)),
                        Step::Cut(reason) if is_exact => return Some(Ended::Alone(Some(reason))),
                        _ => return None,
                    }
                    let sp = full.get(RegisterSet::SP)?;
                    state = State { pc: full.pc(), sp, fp: full.get(fp_number) };
                }
            }
        }
    }

    /// Where the walk goes from a frame.
    #[inline]
    fn jump(&mut self, at: At) -> Jump {
        match at.region {
            Some(Region { start_avma, shown: Shown::Image { image, file_offset }, .. }) => {
                self.images.jump(image, file_offset + (at.lookup_avma - start_avma))
            }
            _ => Jump::Other,
        }
    }

    fn may_end_by_null(&self, at: At) -> bool {
        match at.region {
            Some(Region { start_avma, shown: Shown::Image { image, file_offset }, .. }) => {
                self.images.may_end_by_null(image, file_offset + (at.lookup_avma - start_avma))
            }
            _ => false,
        }
    }

    /// A step of the full walk, with a note of all that it reads.
    fn recorded_step(
        &mut self,
        registers: &mut RegisterSet,
        at: At,
        stack: CapturedStack<'_>,
        trail: &mut Trail,
    ) -> Step {
        let count = |walker: &Self| {
            [walker.statistics.frame_pointer_generated, walker.statistics.frame_pointer_image]
        };
        let [generated, image] = count(self);
        let recording = Recording { stack, slots: RefCell::new(&mut trail.slots) };
        let step = self.step(registers, at, &recording);
        let [generated_after, image_after] = count(self);
        if let Some(trace) = trail.traces.last_mut() {
            // In the innermost frame any register may have been used.
            trace.kind = if at.is_exact { Kind::Unknown } else { Kind::Recorded };
            trace.fp_steps = [generated_after - generated, image_after - image];
        }
        step
    }
}

impl State {
    /// As all that is known of a frame's registers.
    fn registers(self, arch: Arch) -> RegisterSet {
        let mut set = RegisterSet::none(arch);
        set.set(RegisterSet::PC, self.pc);
        set.set(RegisterSet::SP, self.sp);
        if let Some(fp) = self.fp {
            set.set(RegisterSet::fp_number(arch), fp);
        }
        set
    }
}

impl Trail {
    fn close(&mut self, kind: Kind) {
        if let Some(trace) = self.traces.last_mut() {
            trace.kind = kind;
        }
    }

    /// Goes to the caller by a simple rule, or tells how the walk ended.
    #[inline]
    fn simple_step(
        &mut self,
        rule: Simple,
        state: &mut State,
        (arch, is_exact): (Arch, bool),
        stack: CapturedStack<'_>,
    ) -> Result<(), Option<Truncation>> {
        let (base, is_known) = match (rule.cfa_by_fp, state.fp) {
            (false, fp) => (state.sp, fp.is_some()),
            (true, Some(fp)) => (fp, true),
            (true, None) => return Err(Some(Truncation::BadCfa)),
        };
        let cfa = base.wrapping_add_signed(i64::from(rule.cfa_offset));
        let mut restores_fp = false;
        if is_known {
            self.close(Kind::Simple { cfa_by_fp: rule.cfa_by_fp, restores_fp });
        }
        // A frame lies above the one it called.
        if cfa < state.sp || cfa == state.sp && !is_exact {
            return Err(Some(if cfa == state.sp { Truncation::Loop } else { Truncation::BadCfa }));
        }
        let avma = cfa.wrapping_add_signed(i64::from(rule.return_offset));
        let Some(value) = stack.read(avma) else {
            self.missing_avma = Some(avma);
            return Err(Some(Truncation::OutsideCapture));
        };
        self.slots.push(Slot { avma, value });
        let return_address = if rule.is_signed { without_signature(arch, value) } else { value };
        if let Some(offset) = rule.fp_offset {
            let avma = cfa.wrapping_add_signed(i64::from(offset));
            state.fp = stack.read(avma);
            if let Some(value) = state.fp {
                self.slots.push(Slot { avma, value });
                restores_fp = true;
            }
            let kind = Kind::Simple { cfa_by_fp: rule.cfa_by_fp, restores_fp };
            self.close(if is_known && restores_fp { kind } else { Kind::Unknown });
        }
        if return_address == 0 {
            // The frame pointer tells what that means.
            let kind = if state.fp.is_some() { Kind::Recorded } else { Kind::Unknown };
            self.close(if is_known { kind } else { Kind::Unknown });
            return Err(ended_by_null(state.fp, is_exact));
        }
        state.pc = return_address;
        state.sp = cfa;
        Ok(())
    }

    /// Returns the address and the stack pointer of the outermost new frame.
    pub(crate) fn outermost(&self, walked: &[WalkedFrame]) -> Option<(u64, u64)> {
        Some((walked.last()?.lookup_avma, self.traces.last()?.sp))
    }

    /// Makes a finished walk the thread's last stack. `new` are the frames it met, innermost first, as the spool knows them.
    pub(crate) fn remember(
        &self,
        memo: &mut Memo,
        ended: Ended,
        (walked, new): (&[WalkedFrame], &[Frame]),
    ) {
        match ended {
            Ended::Joined(index) => memo.truncate(index + 1),
            Ended::Alone(end) => {
                memo.clear();
                memo.end = end;
                memo.missing_avma = self.missing_avma;
            }
        }
        let mut slots_end = self.slots.len();
        for ((trace, walked), &frame) in self.traces.iter().zip(walked).zip(new).rev() {
            let slots = self.slots.get(trace.slots_start..slots_end).unwrap_or_default();
            slots_end = trace.slots_start;
            memo.push(trace.entry(walked.lookup_avma, frame), slots, trace.kind.needs());
        }
    }
}

/// What of a frame's state and slots the walk outwards depends on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Needs {
    /// Its frame pointer, for itself.
    pub(crate) fp: bool,
    /// Its frame pointer, if its caller needs it: it was not restored.
    pub(crate) passes_fp: bool,
    /// Its last slot only if its caller needs the frame pointer.
    pub(crate) last_slot_is_fp: bool,
    /// Whether that is all.
    pub(crate) is_all: bool,
}

impl Kind {
    fn needs(self) -> Needs {
        let (fp, passes_fp, last_slot_is_fp) = match self {
            Self::Simple { cfa_by_fp, restores_fp } => (cfa_by_fp, !restores_fp, restores_fp),
            Self::Nothing => (false, false, false),
            Self::Recorded | Self::Unknown => (true, true, false),
        };
        let is_all = !matches!(self, Self::Unknown);
        Needs { fp, passes_fp, last_slot_is_fp, is_all }
    }
}

impl Trace {
    fn entry(&self, lookup_avma: u64, frame: Frame) -> Entry {
        Entry {
            lookup_avma,
            sp: self.sp,
            fp: self.fp,
            needs_fp: false,
            is_joinable: false,
            slots_end: 0,
            fp_steps: self.fp_steps,
            frame,
        }
    }
}

#[cfg(test)]
mod tests;
