//! One ELF file's symbols and debug information.

use crate::lookup::{Call, Lookup, Origin, Reason};
use addr2line::Context;
use gimli::{EndianArcSlice, RunTimeEndian};
use object::{
    CompressionFormat, Endianness, Object, ObjectSection, ObjectSegment, ObjectSymbol, SymbolKind,
};
use std::fs::File;
use std::io::Read;
use std::sync::Arc;

type Bytes = EndianArcSlice<RunTimeEndian>;

/// Sections larger than this, stored or decompressed, are not read.
const MAX_SECTION_BYTES: u64 = 2 << 30;

/// More inlined calls than this at one address are not shown.
const MAX_INLINED: usize = 256;

/// What a file says of itself before its symbols are read.
#[derive(Clone, Debug, Default)]
pub(crate) struct Identity {
    pub(crate) build_id: Vec<u8>,
    /// Name and checksum of a separate debug file.
    pub(crate) debug_link: Option<(Vec<u8>, u32)>,
    /// Executable segments: file offset, length in the file, SVMA.
    pub(crate) segments: Vec<(u64, u64, u64)>,
}

/// A file's function symbols and its debug information.
pub(crate) struct ElfNames {
    /// Sorted by address; of several at one address the best.
    symbols: Vec<Symbol>,
    context: Option<Context<Bytes>>,
}

struct Symbol {
    svma: u64,
    /// Zero: up to the next symbol.
    size: u64,
    name: Arc<str>,
}

/// Reads what identifies a file.
pub(crate) fn identify(file: File) -> Option<Identity> {
    let cache = object::ReadCache::new(file);
    let elf = object::read::elf::ElfFile64::<Endianness, _>::parse(&cache).ok()?;
    let link = elf.gnu_debuglink().ok().flatten();
    let segments = elf.segments().filter_map(|segment| {
        let object::SegmentFlags::Elf { p_flags, .. } = segment.flags() else { return None };
        let (offset, len) = segment.file_range();
        (p_flags.0 & object::elf::PF_X.0 != 0).then(|| (offset, len, segment.address()))
    });
    Some(Identity {
        build_id: elf.build_id().ok().flatten().unwrap_or_default().to_vec(),
        debug_link: link.map(|(name, checksum)| (name.to_vec(), checksum)),
        segments: segments.collect(),
    })
}

impl ElfNames {
    /// Reads a file's symbols and prepares its debug information.
    pub(crate) fn read(file: File) -> Option<Self> {
        let cache = object::ReadCache::new(file);
        let elf = object::read::elf::ElfFile64::<Endianness, _>::parse(&cache).ok()?;
        let endian =
            if elf.is_little_endian() { RunTimeEndian::Little } else { RunTimeEndian::Big };
        let load = |id: gimli::SectionId| -> Result<Bytes, gimli::Error> {
            let bytes = elf.section_by_name(id.name()).and_then(|section| contents(&section));
            Ok(Bytes::new(bytes.unwrap_or_default().into(), endian))
        };
        let has_debug_information = elf.section_by_name(".debug_info").is_some();
        let context = has_debug_information
            .then(|| {
                gimli::Dwarf::load(load).ok().and_then(|dwarf| Context::from_dwarf(dwarf).ok())
            })
            .flatten();
        let mut symbols = Vec::new();
        collect_symbols(elf.symbols(), &mut symbols);
        collect_symbols(elf.dynamic_symbols(), &mut symbols);
        sort_symbols(&mut symbols);
        Some(Self { symbols: symbols.into_iter().map(|(symbol, _)| symbol).collect(), context })
    }

    /// Whether there is anything to look up.
    pub(crate) fn is_empty(&self) -> bool {
        self.symbols.is_empty() && self.context.is_none()
    }

    /// Whether there is debug information.
    pub(crate) fn has_debug_information(&self) -> bool {
        self.context.is_some()
    }

    /// Looks an address up: debug information first; a symbol where that has no name.
    pub(crate) fn lookup(&self, svma: u64) -> Lookup {
        let symbol = self.symbol(svma);
        let mut calls = self.debug_calls(svma);
        // The machine function's symbol tells its scope and arguments, where debug information has the bare name.
        if let Some(outermost) = calls.last_mut()
            && outermost.function.as_ref().is_none_or(|name| !is_mangled(name))
            && symbol
                .as_ref()
                .is_some_and(|symbol| outermost.function.is_none() || is_mangled(symbol))
        {
            outermost.function.clone_from(&symbol);
        }
        if calls.iter().any(|call| call.function.is_some()) {
            return Lookup::Resolved { calls, origin: Origin::DebugInformation };
        }
        match symbol {
            Some(name) => {
                let call = Call { function: Some(name), ..Call::default() };
                Lookup::Resolved { calls: vec![call], origin: Origin::SymbolTable }
            }
            None => Lookup::Unresolved { reason: Reason::NoSymbol },
        }
    }

    fn symbol(&self, svma: u64) -> Option<Arc<str>> {
        let after = self.symbols.partition_point(|symbol| symbol.svma <= svma);
        let symbol = self.symbols.get(after.checked_sub(1)?)?;
        let covers = symbol.size == 0 || svma - symbol.svma < symbol.size;
        covers.then(|| Arc::clone(&symbol.name))
    }

    fn debug_calls(&self, svma: u64) -> Vec<Call> {
        let Some(context) = &self.context else { return Vec::new() };
        let mut calls = Vec::new();
        // Split debug information that is elsewhere is done without: the skeleton's lines remain.
        let Ok(mut frames) = context.find_frames(svma).skip_all_loads() else { return calls };
        while let Ok(Some(frame)) = frames.next() {
            if calls.len() >= MAX_INLINED {
                break;
            }
            let function = frame.function.as_ref().and_then(|function| function.raw_name().ok());
            let location = frame.location.as_ref();
            calls.push(Call {
                function: function.map(|name| name.as_ref().into()),
                file: location.and_then(|location| location.file).map(Into::into),
                line: location.and_then(|location| location.line).filter(|&line| line > 0),
                column: location.and_then(|location| location.column).filter(|&column| column > 0),
            });
        }
        calls
    }
}

fn is_mangled(name: &str) -> bool {
    name.starts_with("_Z") || name.starts_with("_R")
}

/// A section's contents, decompressed within limits.
fn contents<'a>(section: &impl ObjectSection<'a>) -> Option<Vec<u8>> {
    let compressed = section.compressed_data().ok()?;
    let stored = compressed.data;
    if stored.len() as u64 > MAX_SECTION_BYTES || compressed.uncompressed_size > MAX_SECTION_BYTES {
        return None;
    }
    let size = usize::try_from(compressed.uncompressed_size).ok()?;
    match compressed.format {
        CompressionFormat::None => Some(stored.to_vec()),
        CompressionFormat::Zlib => {
            let mut bytes = Vec::new();
            let inflated =
                flate2::read::ZlibDecoder::new(stored).take(size as u64).read_to_end(&mut bytes);
            (inflated.ok()? == size).then_some(bytes)
        }
        CompressionFormat::Zstandard => {
            let mut bytes = Vec::new();
            let mut decoder = zstd::stream::read::Decoder::new(stored).ok()?.take(size as u64);
            (decoder.read_to_end(&mut bytes).ok()? == size).then_some(bytes)
        }
        _ => None,
    }
}

/// A symbol and how good it is where several have the same address.
type Ranked = (Symbol, u8);

fn collect_symbols<'a>(
    table: impl Iterator<Item = impl ObjectSymbol<'a>>,
    symbols: &mut Vec<Ranked>,
) {
    for symbol in table {
        let is_function = match symbol.kind() {
            SymbolKind::Text => true,
            // Labels of assembly code have no type.
            SymbolKind::Label | SymbolKind::Unknown => {
                symbol.is_definition() && symbol.section_index().is_some()
            }
            _ => false,
        };
        // No code is at address zero: linkers leave it in symbols of what they dropped.
        if !is_function || !symbol.is_definition() || symbol.address() == 0 {
            continue;
        }
        let Ok(name) = symbol.name_bytes() else { continue };
        // Mapping symbols such as `$x` mark kinds of bytes, not functions.
        if name.is_empty() || name.starts_with(b"$") {
            continue;
        }
        let rank = u8::from(symbol.kind() == SymbolKind::Text) * 4
            + u8::from(symbol.size() > 0) * 2
            + u8::from(symbol.is_global());
        let name = String::from_utf8_lossy(name).into();
        symbols.push((Symbol { svma: symbol.address(), size: symbol.size(), name }, rank));
    }
}

/// Sorts by address, and keeps the best of those at one address; of equals the first by name, to be always the same.
fn sort_symbols(symbols: &mut Vec<Ranked>) {
    symbols.sort_by(|(a, a_rank), (b, b_rank)| {
        a.svma.cmp(&b.svma).then(b_rank.cmp(a_rank)).then_with(|| a.name.cmp(&b.name))
    });
    symbols.dedup_by_key(|(symbol, _)| symbol.svma);
}
