//! DWARF expressions in call frame information: bounded in steps and in depth.

use crate::memory::Memory;
use crate::registers::Registers;
use gimli::{EndianSlice, LittleEndian, Operation};

/// More steps than any compiler's expression takes.
const MAX_STEPS: usize = 1000;

/// Deeper than any compiler's expression goes.
const MAX_DEPTH: usize = 64;

/// Why an address could not be computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// Memory outside the captured bytes is needed.
    OutsideCapture,
    /// The information is not there, or makes no sense.
    Unusable,
}

/// Computes what an expression says; the CFA is put on the stack first where there is one (DWARF 5, 6.4.2.3).
pub(crate) fn evaluate(
    code: &[u8],
    cfa: Option<u64>,
    registers: &Registers,
    memory: &impl Memory,
) -> Result<u64, Failure> {
    let whole = EndianSlice::new(code, LittleEndian);
    let encoding = gimli::Encoding { address_size: 8, format: gimli::Format::Dwarf32, version: 4 };
    let mut rest = whole;
    let mut machine = Machine { stack: Vec::with_capacity(8) };
    if let Some(cfa) = cfa {
        machine.push(cfa)?;
    }
    for _ in 0..MAX_STEPS {
        if rest.is_empty() {
            return machine.pop();
        }
        let operation = Operation::parse(&mut rest, encoding).map_err(|_| Failure::Unusable)?;
        match operation {
            Operation::Skip { target } => rest = jump(whole, rest, target)?,
            Operation::Bra { target } => {
                if machine.pop()? != 0 {
                    rest = jump(whole, rest, target)?;
                }
            }
            other => machine.step(other, registers, memory)?,
        }
    }
    Err(Failure::Unusable)
}

type Code<'a> = EndianSlice<'a, LittleEndian>;

fn jump<'a>(whole: Code<'a>, rest: Code<'a>, distance: i16) -> Result<Code<'a>, Failure> {
    let at = whole.len() - rest.len();
    let target =
        at.checked_add_signed(isize::from(distance)).filter(|&target| target <= whole.len());
    let target = target.ok_or(Failure::Unusable)?;
    Ok(whole.range_from(target..))
}

struct Machine {
    stack: Vec<u64>,
}

impl Machine {
    fn push(&mut self, value: u64) -> Result<(), Failure> {
        if self.stack.len() >= MAX_DEPTH {
            return Err(Failure::Unusable);
        }
        self.stack.push(value);
        Ok(())
    }

    fn pop(&mut self) -> Result<u64, Failure> {
        self.stack.pop().ok_or(Failure::Unusable)
    }

    fn pick(&self, index: u8) -> Result<u64, Failure> {
        let at = self.stack.len().checked_sub(1 + usize::from(index)).ok_or(Failure::Unusable)?;
        self.stack.get(at).copied().ok_or(Failure::Unusable)
    }

    fn binary(&mut self, compute: impl FnOnce(u64, u64) -> u64) -> Result<(), Failure> {
        let right = self.pop()?;
        let left = self.pop()?;
        self.push(compute(left, right))
    }

    fn compare(&mut self, compare: impl FnOnce(i64, i64) -> bool) -> Result<(), Failure> {
        self.binary(|left, right| u64::from(compare(left.cast_signed(), right.cast_signed())))
    }

    fn step(
        &mut self,
        operation: Operation<Code<'_>>,
        registers: &Registers,
        memory: &impl Memory,
    ) -> Result<(), Failure> {
        let shift = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
        match operation {
            Operation::Nop => Ok(()),
            Operation::UnsignedConstant { value } => self.push(value),
            Operation::SignedConstant { value } => self.push(value.cast_unsigned()),
            Operation::RegisterOffset { register, offset, .. } => {
                let value = registers.by_dwarf_number(register.0).ok_or(Failure::Unusable)?;
                self.push(value.wrapping_add_signed(offset))
            }
            Operation::Deref { size, space: false, .. } => {
                let address = self.pop()?;
                let value = memory.read(address).ok_or(Failure::OutsideCapture)?;
                match size {
                    8 => self.push(value),
                    1 | 2 | 4 => self.push(value & ((1 << (u32::from(size) * 8)) - 1)),
                    _ => Err(Failure::Unusable),
                }
            }
            Operation::Drop => self.pop().map(|_| ()),
            Operation::Pick { index } => self.push(self.pick(index)?),
            Operation::Swap => {
                let (top, next) = (self.pop()?, self.pop()?);
                self.push(top)?;
                self.push(next)
            }
            Operation::Rot => {
                let (a, b, c) = (self.pop()?, self.pop()?, self.pop()?);
                self.push(a)?;
                self.push(c)?;
                self.push(b)
            }
            Operation::PlusConstant { value } => {
                let top = self.pop()?;
                self.push(top.wrapping_add(value))
            }
            Operation::Plus => self.binary(u64::wrapping_add),
            Operation::Minus => self.binary(u64::wrapping_sub),
            Operation::Mul => self.binary(u64::wrapping_mul),
            Operation::And => self.binary(|left, right| left & right),
            Operation::Or => self.binary(|left, right| left | right),
            Operation::Xor => self.binary(|left, right| left ^ right),
            Operation::Shl => {
                self.binary(|left, right| left.checked_shl(shift(right)).unwrap_or(0))
            }
            Operation::Shr => {
                self.binary(|left, right| left.checked_shr(shift(right)).unwrap_or(0))
            }
            Operation::Neg => {
                let top = self.pop()?;
                self.push(top.wrapping_neg())
            }
            Operation::Not => {
                let top = self.pop()?;
                self.push(!top)
            }
            Operation::Eq => self.compare(|left, right| left == right),
            Operation::Ne => self.compare(|left, right| left != right),
            Operation::Ge => self.compare(|left, right| left >= right),
            Operation::Gt => self.compare(|left, right| left > right),
            Operation::Le => self.compare(|left, right| left <= right),
            Operation::Lt => self.compare(|left, right| left < right),
            _ => Err(Failure::Unusable),
        }
    }
}
