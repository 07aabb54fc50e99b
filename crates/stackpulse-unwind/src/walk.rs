//! From a frame to its caller, again and again.

use crate::address_space::{AddressSpace, Region, Shown};
use crate::cfi::{Cfa, Failure, Restore, Rule, evaluate};
use crate::code_address::CodeAddress;
use crate::cut::Cut;
use crate::images::Images;
use crate::last_stack::Steps;
use crate::memory::{CapturedStack, Memory};
use crate::registers::{Registers, without_signature};
use stackpulse_perf::regs::Arch;

/// Stacks of more frames are cut.
pub const MAX_DEPTH: usize = 1024;

/// One frame of a walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WalkedFrame {
    /// Where it is.
    pub address: CodeAddress,
    /// The region that covers it, if any.
    pub region: Option<Region>,
}

/// What a step from a frame led to.
pub(crate) enum Step {
    /// To the caller; its pc is of this kind.
    Caller(CodeAddress),
    Outermost,
    /// As `Outermost`, in code that nothing called: the pc is its first instruction.
    Root,
    Cut(Cut),
}

/// Walks the stacks of one process.
pub(crate) struct Walker<'a> {
    pub(crate) space: &'a AddressSpace,
    pub(crate) images: &'a mut Images,
    pub(crate) steps: Steps,
}

impl Walker<'_> {
    /// Walks from a sample's registers outwards; frames go to `frames`, innermost first. Returns why the walk ended before
    /// a root, or `None`.
    pub(crate) fn walk(
        &mut self,
        mut registers: Registers,
        stack: CapturedStack<'_>,
        frames: &mut Vec<WalkedFrame>,
    ) -> Option<Cut> {
        let mut address = CodeAddress::InstructionPointer(registers.pc());
        let mut region: Option<Region> = None;
        loop {
            let lookup_avma = address.lookup_avma();
            if !region.is_some_and(|region| region.contains(lookup_avma)) {
                region = self.space.find(lookup_avma).copied();
            }
            // The sampled instruction is a fact wherever it is; a caller must be code.
            if region.is_none() && !frames.is_empty() {
                return Some(Cut::BadCfa);
            }
            let frame = WalkedFrame { address, region };
            frames.push(frame);
            if frames.len() >= MAX_DEPTH {
                return Some(Cut::DepthLimit);
            }
            // A signal handler returns to the trampoline's first instruction, which is what is to be named; its entry begins a byte
            // earlier, so that it is found by the address minus one. Nothing called a root either.
            let named_exactly = CodeAddress::InstructionPointer(registers.pc());
            match self.step(&mut registers, frame, &stack) {
                Step::Caller(caller) => {
                    if caller.is_interrupted()
                        && let Some(trampoline) = frames.last_mut()
                    {
                        trampoline.address = named_exactly;
                    }
                    address = caller;
                }
                Step::Outermost => return None,
                Step::Root => {
                    if let Some(root) = frames.last_mut() {
                        root.address = named_exactly;
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
        registers: &mut Registers,
        WalkedFrame { address, region }: WalkedFrame,
        stack: &impl Memory,
    ) -> Step {
        let Some(region) = region else { return Step::Cut(Cut::NoUnwindInfo) };
        let (lookup_avma, is_exact) = (address.lookup_avma(), address.is_interrupted());
        match region.shown {
            Shown::Image { image, file_offset } => {
                let offset = file_offset + (lookup_avma - region.start_avma);
                match self.images.rule(image, offset) {
                    Some(rule) => {
                        let step = apply(rule, registers, stack, is_exact);
                        let is_null = matches!(step, Step::Cut(Cut::NullReturnAddress));
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
                            return Step::Caller(CodeAddress::ReturnAddress(registers.pc()));
                        }
                        self.steps.frame_pointer_image += 1;
                        self.step_by_frame_pointer(registers, stack, is_exact)
                    }
                }
            }
            Shown::Anonymous => {
                self.steps.frame_pointer_generated += 1;
                self.step_by_frame_pointer(registers, stack, is_exact)
            }
        }
    }

    /// On AArch64, code of an image that nothing tells of is the kernel's vDSO, or a stub: it keeps its return address in the link
    /// register. That is good only where execution was interrupted; in a caller the register has been used again.
    fn step_by_link_register(&mut self, registers: &mut Registers) -> bool {
        if registers.arch() != Arch::Aarch64 {
            return false;
        }
        let Some(link) = registers.get(Registers::LR) else { return false };
        let return_address = without_signature(Arch::Aarch64, link);
        if !self.is_inside_function(return_address.wrapping_sub(1)) {
            return false;
        }
        registers.set(Registers::PC, return_address);
        registers.forget(Registers::LR);
        true
    }

    /// Follows the frame record at the frame pointer: the caller's frame pointer and the return address. What does not
    /// look like one is not followed: it must lie above the stack pointer, and lead into code. The caller's frame pointer
    /// may be anything: its code may use the register for something else, and have unwind information of its own.
    fn step_by_frame_pointer(
        &mut self,
        registers: &mut Registers,
        stack: &impl Memory,
        is_exact: bool,
    ) -> Step {
        let cut = Step::Cut(Cut::NoUnwindInfo);
        let fp_number = Registers::fp_number(registers.arch());
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
        registers.set(Registers::PC, return_address);
        registers.set(fp_number, caller_fp);
        registers.set(Registers::SP, fp.wrapping_add(16));
        if registers.arch() == Arch::Aarch64 {
            // There the frame record may lie anywhere in the frame: the stack pointer is somewhere above.
            registers.forget(Registers::SP);
        }
        Step::Caller(CodeAddress::ReturnAddress(return_address))
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
pub(crate) fn ended_by_null(caller_fp: Option<u64>, is_exact: bool) -> Option<Cut> {
    (caller_fp != Some(0) || is_exact).then_some(Cut::NullReturnAddress)
}

/// Goes to the caller by compiled call frame information.
fn apply(rule: &Rule, registers: &mut Registers, stack: &impl Memory, is_exact: bool) -> Step {
    if rule.is_outermost {
        return Step::Outermost;
    }
    let cut = |failure| {
        Step::Cut(match failure {
            Failure::OutsideCapture => Cut::OutsideCapture,
            Failure::Unusable => Cut::BadCfa,
        })
    };
    let cfa = match &rule.cfa {
        Cfa::Register(number, offset) => match registers.get(*number) {
            Some(value) => value.wrapping_add_signed(*offset),
            None => return Step::Cut(Cut::BadCfa),
        },
        Cfa::Expression(code) => match evaluate(code, None, registers, stack) {
            Ok(cfa) => cfa,
            Err(failure) => return cut(failure),
        },
    };
    // A frame lies above the one it called; only a signal may have come on another stack.
    let sp = registers.sp();
    if !rule.is_signal_frame && (cfa < sp || cfa == sp && !is_exact) {
        return Step::Cut(if cfa == sp { Cut::Loop } else { Cut::BadCfa });
    }
    let mut caller = *registers;
    caller.set(Registers::SP, cfa);
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
            let fp = caller.get(Registers::fp_number(registers.arch()));
            ended_by_null(fp, is_exact).map_or(Step::Outermost, Step::Cut)
        }
        Ok(return_address) => {
            if caller.get(Registers::SP).is_none() {
                return Step::Cut(Cut::OutsideCapture);
            }
            caller.set(Registers::PC, return_address);
            *registers = caller;
            Step::Caller(if rule.is_signal_frame {
                CodeAddress::InstructionPointer(return_address)
            } else {
                CodeAddress::ReturnAddress(return_address)
            })
        }
        Err(failure) => cut(failure),
    }
}

fn restored(
    restore: &Restore,
    cfa: u64,
    registers: &Registers,
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
