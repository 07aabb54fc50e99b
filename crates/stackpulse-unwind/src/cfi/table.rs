//! An image's call frame information: found by address, compiled at first use.

use super::rule::{Cfa, Restore, Rule};
use crate::registers::{Registers, number_of};
use gimli::{
    BaseAddresses, CfaRule, DebugFrame, EhFrame, EhFrameHdr, EndianSlice, FrameDescriptionEntry,
    LittleEndian, Register, RegisterRule, UnwindContext, UnwindExpression, UnwindSection,
    UnwindTableRow, Vendor,
};
use rustc_hash::FxHashMap;
use stackpulse_perf::regs::Arch;

type Bytes<'a> = EndianSlice<'a, LittleEndian>;

/// A section's bytes and where the image wants them.
#[derive(Clone, Debug, Default)]
pub struct Section {
    /// The address the file states.
    pub svma: u64,
    /// Its contents; empty where there is no such section.
    pub bytes: Vec<u8>,
}

/// The sections that call frame information is in.
#[derive(Clone, Debug, Default)]
pub struct CfiSections {
    /// `.eh_frame`.
    pub eh_frame: Section,
    /// `.eh_frame_hdr`: a table for searching it.
    pub eh_frame_hdr: Section,
    /// `.debug_frame`.
    pub debug_frame: Section,
    /// `.text`, for addresses relative to it; only the address is used.
    pub text_svma: u64,
    /// `.got`, likewise.
    pub got_svma: u64,
    /// Procedure linkage tables: the ranges of their stubs.
    pub plt: Vec<std::ops::Range<u64>>,
    /// Where the kernel's code for the return from signal handlers begins, which on AArch64 has no unwind information.
    pub signal_trampolines: Vec<u64>,
}

/// How many compiled addresses an image keeps; beyond that it begins afresh.
const MAX_COMPILED: usize = 1 << 19;

/// How many frame description entries of one section are indexed.
const MAX_ENTRIES: usize = 1 << 22;

/// One image's call frame information.
#[derive(Debug)]
pub(crate) struct CfiTable {
    sections: CfiSections,
    arch: Arch,
    /// Start and end of each function and the place of its entry, sorted; made only where there is no search table.
    eh_index: Option<Vec<Indexed>>,
    debug_index: Option<Vec<Indexed>>,
    /// The rule of each address that was asked for; `None`: there is none.
    compiled: FxHashMap<u64, Option<u32>>,
    rules: Vec<Rule>,
    rule_index: FxHashMap<Rule, u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Indexed {
    start: u64,
    end: u64,
    offset: usize,
}

impl CfiTable {
    pub(crate) fn new(sections: CfiSections, arch: Arch) -> Self {
        Self {
            sections,
            arch,
            eh_index: None,
            debug_index: None,
            compiled: FxHashMap::default(),
            rules: Vec::new(),
            rule_index: FxHashMap::default(),
        }
    }

    /// Whether there is no call frame information at all.
    pub(crate) fn is_empty(&self) -> bool {
        self.sections.eh_frame.bytes.is_empty() && self.sections.debug_frame.bytes.is_empty()
    }

    /// Returns the rule at an address of the image, if anything tells it.
    pub(crate) fn rule(&mut self, svma: u64) -> Option<&Rule> {
        let at = match self.compiled.get(&svma) {
            Some(&at) => at,
            None => {
                let at = self.compile(svma).map(|rule| self.intern(rule));
                if self.compiled.len() >= MAX_COMPILED {
                    self.compiled.clear();
                }
                self.compiled.insert(svma, at);
                at
            }
        };
        self.rules.get(at? as usize)
    }

    fn intern(&mut self, rule: Rule) -> u32 {
        if let Some(&at) = self.rule_index.get(&rule) {
            return at;
        }
        let at = u32::try_from(self.rules.len()).unwrap_or(u32::MAX);
        self.rules.push(rule.clone());
        self.rule_index.insert(rule, at);
        at
    }

    fn compile(&mut self, svma: u64) -> Option<Rule> {
        self.compile_eh_frame(svma).or_else(|| self.compile_debug_frame(svma)).or_else(|| {
            if self.is_trampoline(svma) {
                return Some(Rule::of_signal_trampoline());
            }
            let is_stub = self.sections.plt.iter().any(|plt| plt.contains(&svma));
            is_stub.then(|| Rule::at_entry(self.arch))
        })
    }

    /// A handler returns to the trampoline's first instruction: it is found by the address before that, too.
    fn is_trampoline(&self, svma: u64) -> bool {
        let mut starts = self.sections.signal_trampolines.iter();
        starts.any(|&start| (start.wrapping_sub(1)..start.saturating_add(8)).contains(&svma))
    }

    fn bases(&self) -> BaseAddresses {
        BaseAddresses::default()
            .set_eh_frame(self.sections.eh_frame.svma)
            .set_eh_frame_hdr(self.sections.eh_frame_hdr.svma)
            .set_text(self.sections.text_svma)
            .set_got(self.sections.got_svma)
    }

    fn compile_eh_frame(&mut self, svma: u64) -> Option<Rule> {
        if self.sections.eh_frame.bytes.is_empty() {
            return None;
        }
        let bases = self.bases();
        if self.eh_index.is_none() {
            match self.search_header(svma, &bases) {
                Search::Found(rule) => return rule,
                Search::Unusable => {
                    let section = eh_frame(&self.sections, self.arch);
                    self.eh_index = Some(index(&section, &bases));
                }
            }
        }
        let offset = find(self.eh_index.as_deref()?, svma)?;
        let section = eh_frame(&self.sections, self.arch);
        let fde = section.fde_from_offset(&bases, offset.into(), EhFrame::cie_from_offset).ok()?;
        compile_fde(&section, &bases, &fde, (svma, self.arch))
    }

    fn search_header(&self, svma: u64, bases: &BaseAddresses) -> Search {
        let header = &self.sections.eh_frame_hdr;
        let parsed = EhFrameHdr::new(&header.bytes, LittleEndian).parse(bases, 8);
        let Ok(parsed) = parsed else { return Search::Unusable };
        let Some(table) = parsed.table() else { return Search::Unusable };
        let section = eh_frame(&self.sections, self.arch);
        let fde = table.fde_for_address(&section, bases, svma, EhFrame::cie_from_offset);
        Search::Found(
            fde.ok().and_then(|fde| compile_fde(&section, bases, &fde, (svma, self.arch))),
        )
    }

    fn compile_debug_frame(&mut self, svma: u64) -> Option<Rule> {
        if self.sections.debug_frame.bytes.is_empty() {
            return None;
        }
        let bases = self.bases();
        if self.debug_index.is_none() {
            self.debug_index = Some(index(&debug_frame(&self.sections, self.arch), &bases));
        }
        let offset = find(self.debug_index.as_deref()?, svma)?;
        let section = debug_frame(&self.sections, self.arch);
        let fde =
            section.fde_from_offset(&bases, offset.into(), DebugFrame::cie_from_offset).ok()?;
        compile_fde(&section, &bases, &fde, (svma, self.arch))
    }
}

enum Search {
    Found(Option<Rule>),
    /// There is no table that could be searched.
    Unusable,
}

fn eh_frame(sections: &CfiSections, arch: Arch) -> EhFrame<Bytes<'_>> {
    let mut section = EhFrame::new(&sections.eh_frame.bytes, LittleEndian);
    section.set_address_size(8);
    section.set_vendor(vendor(arch));
    section
}

fn debug_frame(sections: &CfiSections, arch: Arch) -> DebugFrame<Bytes<'_>> {
    let mut section = DebugFrame::new(&sections.debug_frame.bytes, LittleEndian);
    section.set_address_size(8);
    section.set_vendor(vendor(arch));
    section
}

/// Whose opcodes of their own the sections may hold.
fn vendor(arch: Arch) -> Vendor {
    if arch == Arch::Aarch64 { Vendor::AArch64 } else { Vendor::Default }
}

/// Lists a section's entries by address. Damage ends the list; what came before it counts.
fn index<'a, S>(section: &S, bases: &BaseAddresses) -> Vec<Indexed>
where
    S: UnwindSection<Bytes<'a>>,
    S::Offset: gimli::UnwindOffset<usize>,
{
    let mut found = Vec::new();
    let mut entries = section.entries(bases);
    while let Ok(Some(entry)) = entries.next() {
        let gimli::CieOrFde::Fde(partial) = entry else { continue };
        if let Ok(fde) = partial.parse(S::cie_from_offset)
            && fde.len() > 0
        {
            let start = fde.initial_address();
            let end = start.saturating_add(fde.len());
            found.push(Indexed { start, end, offset: fde.offset() });
        }
        if found.len() >= MAX_ENTRIES {
            break;
        }
    }
    found.sort_unstable();
    found
}

/// The entry whose function covers the address: of overlapping ones, the one that begins last.
fn find(index: &[Indexed], svma: u64) -> Option<usize> {
    let after = index.partition_point(|entry| entry.start <= svma);
    let entry = index.get(after.checked_sub(1)?)?;
    (svma < entry.end).then_some(entry.offset)
}

fn compile_fde<'a, S: UnwindSection<Bytes<'a>>>(
    section: &S,
    bases: &BaseAddresses,
    fde: &FrameDescriptionEntry<Bytes<'a>>,
    (svma, arch): (u64, Arch),
) -> Option<Rule> {
    let mut context = UnwindContext::new();
    let row = fde.unwind_info_for_address(section, bases, &mut context, svma).ok()?;
    let return_address = fde.cie().return_address_register();
    compile_row(section, row, (return_address, arch), fde.is_signal_trampoline())
}

fn compile_row<'a, S: UnwindSection<Bytes<'a>>>(
    section: &S,
    row: &UnwindTableRow<usize>,
    (return_address, arch): (Register, Arch),
    is_signal_frame: bool,
) -> Option<Rule> {
    let code = |expression: &UnwindExpression<usize>| -> Option<Box<[u8]>> {
        Some(expression.get(section).ok()?.0.slice().into())
    };
    let cfa = match row.cfa() {
        CfaRule::RegisterAndOffset { register, offset } => {
            Cfa::Register(number_of(arch, register.0)?, *offset)
        }
        CfaRule::Expression(expression) => Cfa::Expression(code(expression)?),
    };
    let return_register = number_of(arch, return_address.0)?;
    let mut rule = Rule {
        cfa,
        registers: Box::default(),
        // The pc itself is never the caller's: without a word on it nothing is known.
        return_address: match return_register {
            Registers::PC => Restore::Undefined,
            link => Restore::InRegister(link),
        },
        is_signed: false,
        is_outermost: false,
        is_signal_frame,
    };
    let mut registers = Vec::new();
    for (register, told) in row.registers() {
        if arch == Arch::Aarch64 && *register == gimli::AArch64::RA_SIGN_STATE {
            rule.is_signed = matches!(told, RegisterRule::Constant(state) if state & 1 != 0);
            continue;
        }
        let restore = match told {
            RegisterRule::Undefined => Restore::Undefined,
            RegisterRule::Offset(offset) => Restore::AtCfa(*offset),
            RegisterRule::ValOffset(offset) => Restore::CfaPlus(*offset),
            RegisterRule::Register(other) => Restore::InRegister(number_of(arch, other.0)?),
            RegisterRule::Expression(expression) => Restore::AtExpression(code(expression)?),
            RegisterRule::ValExpression(expression) => Restore::Expression(code(expression)?),
            // The same value is what registers that are not named keep.
            _ => continue,
        };
        // Vector registers and the like are not followed.
        let Some(number) = number_of(arch, register.0) else { continue };
        if number == return_register {
            rule.is_outermost = restore == Restore::Undefined;
            rule.return_address = restore.clone();
        }
        if number != Registers::PC {
            registers.push((number, restore));
        }
    }
    registers.sort_by_key(|&(number, _)| number);
    rule.registers = registers.into();
    Some(rule)
}
