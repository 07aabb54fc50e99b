//! What each module of a process brings for names and for unwinding.

use super::Check;
use gimli::{BaseAddresses, CieOrFde, EhFrame, EndianSlice, RunTimeEndian, UnwindSection};
use object::{Object, ObjectSection, ObjectSymbol, SectionKind};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

/// A file that is larger is not read here; the recorder reads it in parts.
const MAX_FILE_BYTES: u64 = 1 << 30;
/// More modules than this are not looked at.
const MAX_MODULES: usize = 2000;
/// More lines than this are not read of a memory map.
const MAX_MAPS_LINES: usize = 200_000;
/// Less of a module's code under unwind information is worth a word.
const GOOD_PERCENT: u64 = 90;
/// As much code without unwind information is in every program.
const START_CODE_BYTES: u64 = 384;

/// Where a module's names come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Symbols {
    /// Debug information: names, lines and inlined calls.
    Debug,
    /// A symbol table: names.
    Table,
    /// Exported functions only.
    Exported,
    /// None.
    None,
    /// It could not be read.
    Unreadable,
}

impl Symbols {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Table => "table",
            Self::Exported => "exported",
            Self::None => "none",
            Self::Unreadable => "?",
        }
    }
}

/// What is known of one module.
pub(super) struct ModuleFacts {
    pub(super) path: String,
    pub(super) build_id: Option<String>,
    pub(super) symbols: Symbols,
    /// How much of its code has unwind information; `None` where it could not be read.
    pub(super) unwind_percent: Option<u64>,
}

/// The modules of a process, by the order of their paths.
pub(super) fn of_process(pid: u32) -> Vec<ModuleFacts> {
    let mut modules: BTreeMap<String, String> = BTreeMap::new();
    for mapping in executable_mappings(pid) {
        if mapping.path.starts_with('/') && modules.len() < MAX_MODULES {
            modules.entry(mapping.path).or_insert(mapping.range);
        }
    }
    modules
        .into_iter()
        .map(|(path, range)| {
            let opened = File::open(format!("/proc/{pid}/map_files/{range}"))
                .or_else(|_| File::open(format!("/proc/{pid}/root{path}")));
            opened.ok().and_then(|file| facts(file, &path)).unwrap_or(ModuleFacts {
                path,
                build_id: None,
                symbols: Symbols::Unreadable,
                unwind_percent: None,
            })
        })
        .collect()
}

/// What is to be said of them.
pub(super) fn checks(pid: u32, modules: &[ModuleFacts]) -> Vec<Check> {
    let names = |is_so: &dyn Fn(&ModuleFacts) -> bool| -> Vec<&str> {
        let chosen = modules.iter().filter(|module| is_so(module));
        chosen.map(|module| module.path.rsplit('/').next().unwrap_or_default()).collect()
    };
    let mut checks = Vec::new();
    let nameless = names(&|module| matches!(module.symbols, Symbols::None | Symbols::Exported));
    checks.push(if nameless.is_empty() {
        Check::good("symbols", "every module that can be read has its names")
    } else {
        Check::limited(
            "symbols",
            format!("only exported names, or none, in {}", nameless.join(", ")),
            "install their debug packages, or keep symbols when building (no strip); report --debug-dir DIR finds debug files elsewhere",
        )
    });
    let bare = names(&|module| module.unwind_percent.is_some_and(|percent| percent < GOOD_PERCENT));
    checks.push(if bare.is_empty() {
        Check::good("unwinding", "every module that can be read has unwind information")
    } else {
        Check::limited(
            "unwinding",
            format!("code without unwind information in {}", bare.join(", ")),
            "build with -fasynchronous-unwind-tables (Rust: -C force-unwind-tables), or with frame pointers",
        )
    });
    let unreadable = names(&|module| module.symbols == Symbols::Unreadable);
    if !unreadable.is_empty() {
        checks.push(Check::limited(
            "module files",
            format!("cannot be read: {}", unreadable.join(", ")),
            "record as a user who may read them",
        ));
    }
    let generates = executable_mappings(pid).iter().any(|mapping| mapping.path.is_empty());
    let map = format!("/proc/{pid}/root/tmp/perf-{pid}.map");
    if generates && fs::metadata(&map).is_err() {
        checks.push(Check::limited(
            "generated code",
            format!("it runs code made at run time, and there is no /tmp/perf-{pid}.map with its names"),
            "have the runtime write one: node --perf-basic-prof, python -X perf, java with perf-map-agent",
        ));
    }
    checks
}

struct Mapping {
    range: String,
    path: String,
}

fn executable_mappings(pid: u32) -> Vec<Mapping> {
    let Ok(file) = File::open(format!("/proc/{pid}/maps")) else { return Vec::new() };
    let lines = BufReader::new(file).split(b'\n').take(MAX_MAPS_LINES).map_while(Result::ok);
    lines
        .filter_map(|line| {
            let line = String::from_utf8_lossy(&line).into_owned();
            let mut fields = line.splitn(6, ' ');
            let (range, permissions) = (fields.next()?, fields.next()?);
            let path = fields.nth(3).unwrap_or_default().trim_start();
            let path = path.strip_suffix(" (deleted)").unwrap_or(path);
            permissions
                .contains('x')
                .then(|| Mapping { range: range.to_owned(), path: path.to_owned() })
        })
        .collect()
}

fn facts(file: File, path: &str) -> Option<ModuleFacts> {
    let metadata = file.metadata().ok()?;
    if !metadata.is_file() || metadata.len() > MAX_FILE_BYTES {
        return None;
    }
    let mut bytes = Vec::new();
    file.take(MAX_FILE_BYTES).read_to_end(&mut bytes).ok()?;
    let elf = object::File::parse(&bytes[..]).ok()?;
    let build_id = elf.build_id().ok().flatten().map(hex);
    let has_debug = |elf: &object::File<'_>| {
        elf.section_by_name(".debug_info").or_else(|| elf.section_by_name(".zdebug_info")).is_some()
    };
    let is_function = |symbol: object::Symbol<'_, '_>| {
        symbol.kind() == object::SymbolKind::Text && symbol.is_definition()
    };
    let symbols = if has_debug(&elf) || build_id.as_deref().is_some_and(has_debug_file) {
        Symbols::Debug
    } else if elf.symbols().any(is_function) || elf.section_by_name(".gnu_debugdata").is_some() {
        Symbols::Table
    } else if elf.dynamic_symbols().any(is_function) {
        Symbols::Exported
    } else {
        Symbols::None
    };
    Some(ModuleFacts {
        path: path.to_owned(),
        build_id,
        symbols,
        unwind_percent: unwind_percent(&elf),
    })
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn has_debug_file(build_id: &str) -> bool {
    build_id.is_char_boundary(2) && build_id.len() > 2 && {
        let (first, rest) = build_id.split_at(2);
        Path::new(&format!("/usr/lib/debug/.build-id/{first}/{rest}.debug")).exists()
    }
}

/// How much of the code lies under entries of `.eh_frame`, in percent; stubs of the linker are left out.
fn unwind_percent(elf: &object::File<'_>) -> Option<u64> {
    let code: Vec<_> = elf
        .sections()
        .filter(|section| {
            let is_stub = section
                .name()
                .is_ok_and(|name| name.starts_with(".plt") || matches!(name, ".init" | ".fini"));
            section.kind() == SectionKind::Text && !is_stub
        })
        .map(|section| (section.address(), section.size()))
        .collect();
    let size: u64 = code.iter().map(|&(_, size)| size).sum();
    if size == 0 {
        return None;
    }
    let Some(section) = elf.section_by_name(".eh_frame") else { return Some(0) };
    let data = section.uncompressed_data().ok()?;
    let endian = if elf.is_little_endian() { RunTimeEndian::Little } else { RunTimeEndian::Big };
    let eh_frame = EhFrame::from(EndianSlice::new(&data, endian));
    let mut bases = BaseAddresses::default().set_eh_frame(section.address());
    if let Some(text) = elf.section_by_name(".text") {
        bases = bases.set_text(text.address());
    }
    let mut covered = 0u64;
    let mut entries = eh_frame.entries(&bases);
    while let Ok(Some(entry)) = entries.next() {
        let CieOrFde::Fde(partial) = entry else { continue };
        let Ok(fde) = partial.parse(EhFrame::cie_from_offset) else { continue };
        let start = fde.initial_address();
        if code.iter().any(|&(from, size)| start >= from && start - from < size) {
            covered = covered.saturating_add(fde.len());
        }
    }
    // The C library's start code has no entries; in a small program it would look like a lot.
    if size.saturating_sub(covered) <= START_CODE_BYTES {
        return Some(100);
    }
    Some((covered.saturating_mul(100) / size).min(100))
}
