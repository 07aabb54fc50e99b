//! From a frame to its caller, again and again.

use crate::address_space::{AddressSpace, Region, Shown};
use crate::cfi::{Cfa, Failure, Memory, Restore, Rule, evaluate};
use crate::image_cache::ImageCache;
use crate::registers::{RegisterSet, without_signature};
use crate::stats::Statistics;
use stackpulse_perf::regs::Arch;
use stackpulse_spool::Truncation;

/// Deeper stacks are cut.
pub(crate) const MAX_DEPTH: usize = 1024;

/// The captured part of a thread's stack.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CapturedStack<'a> {
    /// The address of the first byte: the stack pointer at the sample.
    pub(crate) start_avma: u64,
    pub(crate) bytes: &'a [u8],
}

impl Memory for CapturedStack<'_> {
    #[inline]
    fn read(&self, address: u64) -> Option<u64> {
        let at = usize::try_from(address.checked_sub(self.start_avma)?).ok()?;
        let bytes = self.bytes.get(at..at.checked_add(8)?)?;
        Some(u64::from_le_bytes(bytes.try_into().ok()?))
    }
}

/// One frame of a walk: where it is, and the address to look up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WalkedFrame {
    /// The exact pc, or the return address minus one.
    pub(crate) lookup_avma: u64,
    /// The region that covers it, if any.
    pub(crate) region: Option<Region>,
}

/// The frame that a step is taken from.
#[derive(Clone, Copy)]
pub(crate) struct At {
    pub(crate) region: Option<Region>,
    pub(crate) lookup_avma: u64,
    /// Whether execution was interrupted there: innermost, or above a signal frame.
    pub(crate) is_exact: bool,
}

/// What a step from a frame led to.
pub(crate) enum Step {
    Caller {
        is_exact: bool,
    },
    Outermost,
    /// As `Outermost`, in code that nothing called: the pc is its first instruction.
    Root,
    Cut(Truncation),
}

/// Walks the stacks of one process.
pub(crate) struct Walker<'a> {
    pub(crate) space: &'a AddressSpace,
    pub(crate) images: &'a mut ImageCache,
    pub(crate) statistics: &'a mut Statistics,
}

impl Walker<'_> {
    /// Walks from a sample's registers outwards; frames go to `frames`, innermost first. Returns why the walk ended before
    /// a root, or `None`.
    pub(crate) fn walk(
        &mut self,
        mut registers: RegisterSet,
        stack: CapturedStack<'_>,
        frames: &mut Vec<WalkedFrame>,
    ) -> Option<Truncation> {
        let mut is_exact = true;
        let mut region: Option<Region> = None;
        loop {
            let pc = registers.pc();
            let lookup_avma = if is_exact { pc } else { pc.wrapping_sub(1) };
            if !region.is_some_and(|region| region.contains(lookup_avma)) {
                region = self.space.find(lookup_avma).copied();
            }
            // The sampled instruction is a fact wherever it is; a caller must be code.
            if region.is_none() && !frames.is_empty() {
                return Some(Truncation::BadCfa);
            }
            frames.push(WalkedFrame { lookup_avma, region });
            if frames.len() >= MAX_DEPTH {
                return Some(Truncation::DepthLimit);
            }
            let frame = At { region, lookup_avma, is_exact };
            match self.step(&mut registers, frame, &stack) {
                Step::Caller { is_exact: exact } => {
                    // A signal handler returns to the trampoline's first instruction, which is what is to be named;
                    // its entry begins a byte earlier, so that it is found by the address minus one.
                    if exact && let Some(trampoline) = frames.last_mut() {
                        trampoline.lookup_avma = pc;
                    }
                    is_exact = exact;
                }
                Step::Outermost => return None,
                Step::Root => {
                    if let Some(root) = frames.last_mut() {
                        root.lookup_avma = pc;
                    }
                    return None;
                }
                Step::Cut(reason) => return Some(reason),
            }
        }
    }

    /// Goes from a frame to its caller.
    pub(crate) fn step(
        &mut self,
        registers: &mut RegisterSet,
        At { region, lookup_avma, is_exact }: At,
        stack: &impl Memory,
    ) -> Step {
        let Some(region) = region else { return Step::Cut(Truncation::NoUnwindInfo) };
        match region.shown {
            Shown::Image { image, file_offset } => {
                let offset = file_offset + (lookup_avma - region.start_avma);
                match self.images.rule(image, offset) {
                    Some(rule) => {
                        let step = apply(rule, registers, stack, is_exact);
                        let is_null = matches!(step, Step::Cut(Truncation::NullReturnAddress));
                        if is_null && self.images.may_end_by_null(image, offset) {
                            return Step::Outermost;
                        }
                        step
                    }
                    None => {
                        if self.images.is_entry_code(image, offset) {
                            return Step::Outermost;
                        }
                        // A call's return address is never where a function begins and nothing is before it: it was put
                        // there by hand, as makecontext(3) does.
                        if !is_exact && self.images.rule(image, offset + 1).is_some() {
                            return Step::Root;
                        }
                        if is_exact && self.step_by_link_register(registers) {
                            return Step::Caller { is_exact: false };
                        }
                        let count = &mut self.statistics.frame_pointer_image;
                        *count = count.saturating_add(1);
                        self.step_by_frame_pointer(registers, stack, is_exact)
                    }
                }
            }
            Shown::Anonymous => {
                let count = &mut self.statistics.frame_pointer_generated;
                *count = count.saturating_add(1);
                self.step_by_frame_pointer(registers, stack, is_exact)
            }
        }
    }

    /// On AArch64, code of an image that nothing tells of is the kernel's vDSO, or a stub: it keeps its return address in the link
    /// register. That is good only where execution was interrupted; in a caller the register has been used again.
    fn step_by_link_register(&mut self, registers: &mut RegisterSet) -> bool {
        if registers.arch() != Arch::Aarch64 {
            return false;
        }
        let Some(link) = registers.get(RegisterSet::LR) else { return false };
        let return_address = without_signature(Arch::Aarch64, link);
        if !self.is_inside_function(return_address.wrapping_sub(1)) {
            return false;
        }
        registers.set(RegisterSet::PC, return_address);
        registers.forget(RegisterSet::LR);
        true
    }

    /// Follows the frame record at the frame pointer: the caller's frame pointer and the return address. What does not
    /// look like one is not followed: it must lie above the stack pointer, and lead into code. The caller's frame pointer
    /// may be anything: its code may use the register for something else, and have unwind information of its own.
    fn step_by_frame_pointer(
        &mut self,
        registers: &mut RegisterSet,
        stack: &impl Memory,
        is_exact: bool,
    ) -> Step {
        let cut = Step::Cut(Truncation::NoUnwindInfo);
        let fp_number = RegisterSet::fp_number(registers.arch());
        let Some(fp) = registers.get(fp_number) else { return cut };
        // Zero marks the outermost frame (System V ABI, AMD64 supplement, 3.4.1); in the innermost it may be a number.
        if fp == 0 && !is_exact {
            return Step::Outermost;
        }
        if fp < registers.sp() || fp % 8 != 0 {
            return cut;
        }
        let (Some(caller_fp), Some(return_address)) =
            (stack.read(fp), stack.read(fp.wrapping_add(8)))
        else {
            return cut;
        };
        let return_address = without_signature(registers.arch(), return_address);
        if return_address == 0 {
            return Step::Outermost;
        }
        if !self.is_inside_function(return_address.wrapping_sub(1)) {
            return cut;
        }
        registers.set(RegisterSet::PC, return_address);
        registers.set(fp_number, caller_fp);
        registers.set(RegisterSet::SP, fp.wrapping_add(16));
        if registers.arch() == Arch::Aarch64 {
            // There the frame record may lie anywhere in the frame: the stack pointer is somewhere above.
            registers.forget(RegisterSet::SP);
        }
        Step::Caller { is_exact: false }
    }
}

impl Walker<'_> {
    /// Whether an address lies in generated code, or in a function of an image that unwind information tells of.
    fn is_inside_function(&mut self, avma: u64) -> bool {
        match self.space.find(avma).map(|region| (region.start_avma, region.shown)) {
            None => false,
            Some((_, Shown::Anonymous)) => true,
            Some((start_avma, Shown::Image { image, file_offset })) => {
                self.images.is_unread(image)
                    || self.images.has_no_unwind_information(image)
                    || self.images.rule(image, file_offset + (avma - start_avma)).is_some()
            }
        }
    }
}

/// What a return address of zero means, given the caller's frame pointer: a frame pointer of zero marks the outermost frame
/// (System V ABI, AMD64 supplement, 3.4.1; AAPCS64, 6.2.3). In the innermost frame it may be a number.
pub(crate) fn ended_by_null(caller_fp: Option<u64>, is_exact: bool) -> Option<Truncation> {
    (caller_fp != Some(0) || is_exact).then_some(Truncation::NullReturnAddress)
}

/// Goes to the caller by compiled call frame information.
fn apply(rule: &Rule, registers: &mut RegisterSet, stack: &impl Memory, is_exact: bool) -> Step {
    if rule.is_outermost {
        return Step::Outermost;
    }
    let cut = |failure| {
        Step::Cut(match failure {
            Failure::OutsideCapture => Truncation::OutsideCapture,
            Failure::Unusable => Truncation::BadCfa,
        })
    };
    let cfa = match &rule.cfa {
        Cfa::Register(number, offset) => match registers.get(*number) {
            Some(value) => value.wrapping_add_signed(*offset),
            None => return Step::Cut(Truncation::BadCfa),
        },
        Cfa::Expression(code) => match evaluate(code, None, registers, stack) {
            Ok(cfa) => cfa,
            Err(failure) => return cut(failure),
        },
    };
    // A frame lies above the one it called; only a signal may have come on another stack.
    let sp = registers.sp();
    if !rule.is_signal_frame && (cfa < sp || cfa == sp && !is_exact) {
        return Step::Cut(if cfa == sp { Truncation::Loop } else { Truncation::BadCfa });
    }
    let mut caller = *registers;
    caller.set(RegisterSet::SP, cfa);
    for (number, restore) in &rule.registers {
        match restored(restore, cfa, registers, stack) {
            Ok(value) => caller.set(*number, value),
            // Needed only if some caller's frame is found through it.
            Err(_) => caller.forget(*number),
        }
    }
    let return_address = restored(&rule.return_address, cfa, registers, stack);
    let signed = |address| {
        if rule.is_signed { without_signature(registers.arch(), address) } else { address }
    };
    match return_address.map(signed) {
        Ok(0) => {
            let fp = caller.get(RegisterSet::fp_number(registers.arch()));
            ended_by_null(fp, is_exact).map_or(Step::Outermost, Step::Cut)
        }
        Ok(return_address) => {
            if caller.get(RegisterSet::SP).is_none() {
                return Step::Cut(Truncation::OutsideCapture);
            }
            caller.set(RegisterSet::PC, return_address);
            *registers = caller;
            Step::Caller { is_exact: rule.is_signal_frame }
        }
        Err(failure) => cut(failure),
    }
}

fn restored(
    restore: &Restore,
    cfa: u64,
    registers: &RegisterSet,
    stack: &impl Memory,
) -> Result<u64, Failure> {
    let read = |address| stack.read(address).ok_or(Failure::OutsideCapture);
    match restore {
        Restore::Undefined => Err(Failure::Unusable),
        Restore::AtCfa(offset) => read(cfa.wrapping_add_signed(*offset)),
        Restore::CfaPlus(offset) => Ok(cfa.wrapping_add_signed(*offset)),
        Restore::InRegister(number) => registers.get(*number).ok_or(Failure::Unusable),
        Restore::AtExpression(code) => read(evaluate(code, Some(cfa), registers, stack)?),
        Restore::Expression(code) => evaluate(code, Some(cfa), registers, stack),
    }
}
