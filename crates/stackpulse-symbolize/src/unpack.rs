//! Packed bytes unpacked into memory, as far as there is an allowance for them.

use crate::allowance::Allowance;
use crate::input::{Input, Position};
use lzma_rust2::{XzReader, xz_uncompressed_size};
use std::io::Read;
use std::sync::Arc;

/// How bytes are packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Packing {
    Zlib,
    Zstd,
    Xz,
}

/// Bytes in an input that are packed.
#[derive(Clone, Debug)]
pub(crate) struct Packed {
    pub(crate) input: Arc<Input>,
    pub(crate) offset: u64,
    pub(crate) len: u64,
    pub(crate) packing: Packing,
}

/// An unpacked byte is worth so many steps.
const STEPS_PER_BYTE: u64 = 2;

/// So much is unpacked at a time.
const CHUNK: usize = 256 << 10;

/// Windows that zstd looks back on, as powers of two: what is usual, and the largest that its manual has decoders accept.
const ZSTD_WINDOWS: (u32, u32) = (23, 27);

/// The largest window of xz: more than its highest level asks for.
const XZ_WINDOW: u64 = 128 << 20;

impl Packed {
    fn reader(&self) -> Position {
        Position::new(Arc::clone(&self.input), self.offset, self.len)
    }

    /// How long an xz file says that it is unpacked.
    pub(crate) fn stated_len(&self) -> Option<u64> {
        xz_uncompressed_size(self.reader()).ok()
    }

    /// Unpacks what is stated to be `len` bytes; `None` if it is not exactly that, or costs too much.
    pub(crate) fn unpack(&self, len: u64) -> Option<Input> {
        let allowance = self.input.allowance();
        let grant = allowance.grant(len)?;
        // Windows grow with what is unpacked.
        let window = |most: u64| allowance.grant(len.min(most));
        let bytes = match self.packing {
            Packing::Zlib => exactly(len, flate2::read::ZlibDecoder::new(self.reader()), allowance),
            Packing::Zstd => {
                let log = zstd_window(self.reader())?.clamp(ZSTD_WINDOWS.0, ZSTD_WINDOWS.1);
                let _window = window(1 << log)?;
                let mut decoder = zstd::stream::read::Decoder::new(self.reader()).ok()?;
                decoder.window_log_max(log).ok()?;
                exactly(len, decoder, allowance)
            }
            Packing::Xz => {
                let _window = window(XZ_WINDOW)?;
                let limit_kib = u32::try_from(XZ_WINDOW >> 10).ok()?.saturating_mul(2);
                exactly(len, XzReader::new_mem_limit(self.reader(), true, limit_kib), allowance)
            }
        };
        Some(Input::memory(bytes?, grant))
    }
}

/// The window that the first frame states, as a power of two that holds it (RFC 8878, section 3.1.1); zero where its content is
/// the window.
fn zstd_window(mut packed: impl Read) -> Option<u32> {
    let mut head = [0; 6];
    packed.read_exact(&mut head).ok()?;
    let [_, _, _, _, descriptor, window] = head;
    Some(if descriptor & 0x20 == 0 { u32::from(window >> 3) + 11 } else { 0 })
}

/// Reads so many bytes, after which there must be no more.
fn exactly(len: u64, mut reader: impl Read, allowance: &Allowance) -> Option<Vec<u8>> {
    // The system gives memory as it is written to: a length that is a lie costs nothing.
    let mut bytes = vec![0; usize::try_from(len).ok()?];
    for chunk in bytes.chunks_mut(CHUNK) {
        allowance.take(chunk.len() as u64 * STEPS_PER_BYTE)?;
        reader.read_exact(chunk).ok()?;
    }
    (reader.read(&mut [0]).ok()? == 0).then_some(bytes)
}
