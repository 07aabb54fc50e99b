//! The same question to each library.

use blazesym::symbolize::source::{Elf, Source};
use blazesym::symbolize::{self, Input};
use stackpulse_symbolize::{ImageQuery, Lookup, Symbolizer, SymbolizerOptions};
use std::error::Error;
use std::path::Path;
use wholesym::{LookupAddress, SymbolManager, SymbolManagerConfig};

/// One call as a library tells it; the name is not demangled where the library allows that.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) function: Option<String>,
    pub(crate) file: Option<String>,
    /// Zero: none.
    pub(crate) line: u32,
}

/// For each address its calls, innermost first.
pub(crate) type Answers = Result<Vec<Vec<Frame>>, Box<dyn Error>>;

/// A library: its name, and how it is asked.
pub(crate) type Peer = (&'static str, fn(&Path, &[u64]) -> Answers);

/// Ours first.
pub(crate) const PEERS: [Peer; 4] = [
    ("stackpulse-symbolize", stackpulse),
    ("addr2line 0.27", addr2line),
    ("wholesym 0.8", wholesym),
    ("blazesym 0.2", blazesym),
];

pub(crate) fn stackpulse(program: &Path, addresses: &[u64]) -> Answers {
    let mut symbolizer = Symbolizer::new(SymbolizerOptions::default());
    let lookups = symbolizer.symbolize(&ImageQuery::file(program), addresses);
    Ok(lookups.into_iter().map(frames_of).collect())
}

fn frames_of(lookup: Lookup) -> Vec<Frame> {
    let Lookup::Resolved { calls, .. } = lookup else { return Vec::new() };
    let frames = calls.into_iter().map(|call| Frame {
        function: call.function.as_deref().map(str::to_owned),
        file: call.file.as_deref().map(str::to_owned),
        line: call.line.unwrap_or_default(),
    });
    frames.collect()
}

pub(crate) fn addr2line(program: &Path, addresses: &[u64]) -> Answers {
    let loader = addr2line::Loader::new(program)?;
    let mut answers = Vec::with_capacity(addresses.len());
    for &address in addresses {
        let mut frames = Vec::new();
        let mut found = loader.find_frames(address)?;
        while let Some(frame) = found.next()? {
            let function = frame.function.as_ref().and_then(|name| name.raw_name().ok());
            frames.push(Frame {
                function: function.map(std::borrow::Cow::into_owned),
                file: frame.location.as_ref().and_then(|at| at.file).map(str::to_owned),
                line: frame.location.as_ref().and_then(|at| at.line).unwrap_or_default(),
            });
        }
        if frames.iter().all(|frame| frame.function.is_none())
            && let Some(symbol) = loader.find_symbol(address)
        {
            frames.resize(1, Frame::default());
            frames[0].function = Some(symbol.to_owned());
        }
        answers.push(frames);
    }
    Ok(answers)
}

fn wholesym(program: &Path, addresses: &[u64]) -> Answers {
    let runtime = tokio::runtime::Builder::new_multi_thread().build()?;
    runtime.block_on(async {
        let manager = SymbolManager::with_config(SymbolManagerConfig::default());
        let map = manager.load_symbol_map_for_binary_at_path(program, None).await?;
        let mut answers = Vec::with_capacity(addresses.len());
        for &address in addresses {
            let Some(found) = map.lookup(LookupAddress::Svma(address)).await else {
                answers.push(Vec::new());
                continue;
            };
            let symbol = Frame { function: Some(found.symbol.name.clone()), ..Frame::default() };
            let frames = found.frames.unwrap_or_default().into_iter().map(|frame| Frame {
                function: frame.function,
                file: frame.file_path.map(|path| path.display_path()),
                line: frame.line_number.unwrap_or_default(),
            });
            let frames: Vec<Frame> = frames.collect();
            answers.push(if frames.is_empty() { vec![symbol] } else { frames });
        }
        Ok(answers)
    })
}

fn blazesym(program: &Path, addresses: &[u64]) -> Answers {
    let symbolizer = symbolize::Symbolizer::builder().enable_demangling(false).build();
    let source = Source::Elf(Elf::new(program));
    let found = symbolizer.symbolize(&source, Input::VirtOffset(addresses))?;
    let answers = found.into_iter().map(|found| {
        let Some(symbol) = found.into_sym() else { return Vec::new() };
        let frame = |name: &str, code: Option<&symbolize::CodeInfo<'_>>| Frame {
            function: Some(name.to_owned()),
            file: code.map(|code| code.to_path().display().to_string()),
            line: code.and_then(|code| code.line).unwrap_or_default(),
        };
        let mut frames: Vec<Frame> =
            symbol.inlined.iter().rev().map(|it| frame(&it.name, it.code_info.as_ref())).collect();
        frames.push(frame(&symbol.name, symbol.code_info.as_deref()));
        frames
    });
    Ok(answers.collect())
}
