//! The walk as it nearly always goes: by pc, stack pointer and frame pointer alone, until it meets the thread's last stack.
//!
//! What it cannot follow exactly (signal frames, rules that need other registers in outer frames) it leaves to the full walk,
//! which begins anew.

use crate::address_space::{Region, Shown};
use crate::cfi::{Jump, Simple};
use crate::code_address::CodeAddress;
use crate::cut::Cut;
use crate::last_stack::{LastStack, Needs, New, Slot, Steps};
use crate::memory::{CapturedStack, Memory};
use crate::registers::{Registers, without_signature};
use crate::unwinder::Walk;
use crate::walk::{MAX_DEPTH, Step, WalkedFrame, Walker, ended_by_null};
use stackpulse_perf::regs::Arch;
use std::cell::RefCell;

/// How a walk ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// At this frame of the last stack.
    Joined(usize),
    /// At the root, or before it for this reason.
    Alone(Option<Cut>),
}

/// What a new frame's step depended on.
#[derive(Clone, Copy, Debug)]
struct Trace {
    sp: u64,
    fp: u64,
    kind: Kind,
    /// Where its slots begin; its frame pointer's is the last, if it has one.
    slots_start: usize,
    steps: Steps,
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
    pub(crate) fn walk_fast<F: Copy>(
        &mut self,
        registers: &Registers,
        stack: CapturedStack<'_>,
        last: &LastStack<F>,
        (frames, trail): (&mut Vec<WalkedFrame>, &mut Trail),
    ) -> Option<Ended> {
        let arch = registers.arch();
        let fp_number = Registers::fp_number(arch);
        let mut state =
            State { pc: registers.pc(), sp: registers.sp(), fp: registers.get(fp_number) };
        let mut region: Option<Region> = None;
        let mut may_meet = last.entries.len();
        trail.traces.clear();
        trail.slots.clear();
        trail.missing_avma = None;
        loop {
            let is_exact = frames.is_empty();
            let address = if is_exact {
                CodeAddress::InstructionPointer(state.pc)
            } else {
                CodeAddress::ReturnAddress(state.pc)
            };
            let lookup_avma = address.lookup_avma();
            if let Some(index) = last.meets(&mut may_meet, lookup_avma, (state.sp, state.fp)) {
                let whole = frames.len() + index + 1;
                return (whole < MAX_DEPTH).then_some(Ended::Joined(index));
            }
            if !region.is_some_and(|region| region.contains(lookup_avma)) {
                region = self.space.find(lookup_avma).copied();
            }
            if region.is_none() && !is_exact {
                return Some(Ended::Alone(Some(Cut::BadCfa)));
            }
            let frame = WalkedFrame { address, region };
            frames.push(frame);
            trail.open(&state);
            if frames.len() >= MAX_DEPTH {
                return None;
            }
            match self.jump(frame) {
                Jump::Outermost => {
                    trail.close(Kind::Nothing);
                    return Some(Ended::Alone(None));
                }
                Jump::Simple(rule) => {
                    match trail.simple_step(rule, &mut state, (arch, is_exact), stack) {
                        Ok(()) => {}
                        Err(Some(Cut::NullReturnAddress)) if self.may_end_by_null(frame) => {
                            return Some(Ended::Alone(None));
                        }
                        Err(end) => return Some(Ended::Alone(end)),
                    }
                }
                Jump::Other => {
                    let mut full = if is_exact { *registers } else { state.registers(arch) };
                    match self.recorded_step(&mut full, frame, stack, trail) {
                        Step::Caller(CodeAddress::ReturnAddress(_)) => {}
                        Step::Outermost if is_exact => return Some(Ended::Alone(None)),
                        Step::Cut(reason) if is_exact => return Some(Ended::Alone(Some(reason))),
                        _ => return None,
                    }
                    let sp = full.get(Registers::SP)?;
                    state = State { pc: full.pc(), sp, fp: full.get(fp_number) };
                }
            }
        }
    }

    /// Where the walk goes from a frame.
    #[inline]
    fn jump(&mut self, at: WalkedFrame) -> Jump {
        match at.region {
            Some(Region { start_avma, shown: Shown::Image { image, file_offset }, .. }) => {
                self.images.jump(image, file_offset + (at.address.lookup_avma() - start_avma))
            }
            _ => Jump::Other,
        }
    }

    fn may_end_by_null(&self, at: WalkedFrame) -> bool {
        match at.region {
            Some(Region { start_avma, shown: Shown::Image { image, file_offset }, .. }) => {
                let into = at.address.lookup_avma() - start_avma;
                self.images.may_end_by_null(image, file_offset + into)
            }
            _ => false,
        }
    }

    /// A step of the full walk, with a note of all that it reads.
    fn recorded_step(
        &mut self,
        registers: &mut Registers,
        at: WalkedFrame,
        stack: CapturedStack<'_>,
        trail: &mut Trail,
    ) -> Step {
        let before = std::mem::take(&mut self.steps);
        let recording = Recording { stack, slots: RefCell::new(&mut trail.slots) };
        let step = self.step(registers, at, &recording);
        if let Some(trace) = trail.traces.last_mut() {
            // In the innermost frame any register may have been used.
            let is_interrupted = at.address.is_interrupted();
            trace.kind = if is_interrupted { Kind::Unknown } else { Kind::Recorded };
            trace.steps = self.steps;
        }
        self.steps.add(before);
        step
    }
}

impl State {
    /// As all that is known of a frame's registers.
    fn registers(self, arch: Arch) -> Registers {
        Registers::of_frame(arch, self.pc, self.sp, self.fp)
    }
}

impl Trail {
    /// Begins with a new frame.
    #[inline]
    fn open(&mut self, state: &State) {
        self.traces.push(Trace {
            sp: state.sp,
            fp: state.fp.unwrap_or_default(),
            kind: Kind::Unknown,
            slots_start: self.slots.len(),
            steps: Steps::default(),
        });
    }

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
    ) -> Result<(), Option<Cut>> {
        let (base, is_known) = match (rule.cfa_by_fp, state.fp) {
            (false, fp) => (state.sp, fp.is_some()),
            (true, Some(fp)) => (fp, true),
            (true, None) => return Err(Some(Cut::BadCfa)),
        };
        let cfa = base.wrapping_add_signed(i64::from(rule.cfa_offset));
        let mut restores_fp = false;
        if is_known {
            self.close(Kind::Simple { cfa_by_fp: rule.cfa_by_fp, restores_fp });
        }
        // A frame lies above the one it called.
        if cfa < state.sp || cfa == state.sp && !is_exact {
            return Err(Some(if cfa == state.sp { Cut::Loop } else { Cut::BadCfa }));
        }
        let avma = cfa.wrapping_add_signed(i64::from(rule.return_offset));
        let Some(value) = stack.read(avma) else {
            self.missing_avma = Some(avma);
            return Err(Some(Cut::OutsideCapture));
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
        Some((walked.last()?.address.lookup_avma(), self.traces.last()?.sp))
    }

    /// Makes a finished walk the thread's last stack. `new` is what the user keeps of the frames it met, innermost first.
    pub(crate) fn remember<F: Copy>(
        &self,
        walk: &Walk,
        (walked, new): (&[WalkedFrame], &[F]),
        last: &mut LastStack<F>,
    ) {
        last.truncate(walk.met);
        if walk.met == 0 {
            last.end = walk.cut;
            last.missing_avma = self.missing_avma;
        }
        let mut slots_end = self.slots.len();
        for ((trace, walked), &frame) in self.traces.iter().zip(walked).zip(new).rev() {
            let slots = self.slots.get(trace.slots_start..slots_end).unwrap_or_default();
            slots_end = trace.slots_start;
            let Trace { sp, fp, kind, steps, .. } = *trace;
            let lookup_avma = walked.address.lookup_avma();
            last.push(New { lookup_avma, sp, fp, steps, needs: kind.needs(), frame }, slots);
        }
    }
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

#[cfg(test)]
mod tests;
