//! Records inside compressed ones (`perf record -z`).

use super::framing::{Framing, Next};
use std::io;
use zstd::stream::raw::{Decoder, Operation};

/// A compressed record of at most 64 KiB that holds more than this is no recording's.
const MAX_INFLATED: u64 = 256 << 20;

/// The one compressed stream that runs through all compressed records.
pub(super) struct Inflated {
    decoder: Decoder<'static>,
    framing: Framing,
    /// Compressed bytes that were not taken in yet.
    waiting: Vec<u8>,
    taken: usize,
    /// Bytes that came out of the record so far.
    inflated: u64,
}

impl std::fmt::Debug for Inflated {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inflated").field("waiting", &self.waiting.len()).finish_non_exhaustive()
    }
}

impl Inflated {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self {
            decoder: Decoder::new()?,
            framing: Framing::new(),
            waiting: Vec::new(),
            taken: 0,
            inflated: 0,
        })
    }

    /// Takes in the compressed bytes of one record; before that, [`next`](Self::next) must have come to an end.
    pub(super) fn push(&mut self, compressed: &[u8]) {
        self.waiting.clear();
        self.waiting.extend_from_slice(compressed);
        self.taken = 0;
        self.inflated = 0;
    }

    /// Returns the next record inside; the end is the end of what was pushed.
    pub(super) fn next(&mut self) -> io::Result<Next> {
        let Self { decoder, framing, waiting, taken, inflated } = self;
        framing.next(&mut |into: &mut [u8]| {
            let mut written = 0;
            // What the decoder still holds comes out without further input.
            loop {
                let status = decoder.run_on_buffers(
                    waiting.get(*taken..).unwrap_or_default(),
                    into.get_mut(written..).unwrap_or_default(),
                )?;
                *taken += status.bytes_read;
                written += status.bytes_written;
                if written == into.len() || status.bytes_read == 0 && status.bytes_written == 0 {
                    break;
                }
            }
            *inflated = inflated.saturating_add(written as u64);
            if *inflated > MAX_INFLATED {
                return Err(io::Error::other(
                    "a compressed record holds more than any recording's",
                ));
            }
            Ok(written)
        })
    }
}
