//! Recycled buffers for samples that cannot stay in ring memory.

use crate::payload::Payload;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// How many spent buffers may wait to be used again.
const WAITING: usize = 4096;

/// A bounded number of bytes in buffers, which come back when their samples are dropped.
#[derive(Debug)]
pub(crate) struct Pool {
    spent: Receiver<Vec<u8>>,
    home: SyncSender<Vec<u8>>,
    free: Vec<Vec<u8>>,
    /// Bytes of all buffers, in use and free.
    allocated: usize,
    limit: usize,
}

impl Pool {
    /// Makes a pool that never holds more than `limit` bytes.
    pub(crate) fn new(limit: usize) -> Self {
        let (home, spent) = sync_channel(WAITING);
        Self { spent, home, free: Vec::new(), allocated: 0, limit }
    }

    /// Copies the pieces of a record into one buffer; `None` if the pool is exhausted.
    pub(crate) fn copy(&mut self, pieces: [&[u8]; 2]) -> Option<Payload> {
        let len = pieces[0].len() + pieces[1].len();
        self.free.extend(self.spent.try_iter());
        let mut buffer = match self.free.pop() {
            Some(mut buffer) => {
                buffer.clear();
                buffer
            }
            None => Vec::new(),
        };
        let before = buffer.capacity();
        if before < len {
            let grown = len.next_power_of_two();
            if self.allocated - before + grown > self.limit {
                self.free.push(buffer);
                return None;
            }
            buffer.reserve_exact(grown);
            self.allocated = self.allocated - before + buffer.capacity();
        }
        pieces.iter().for_each(|piece| buffer.extend_from_slice(piece));
        Some(Payload::pooled(buffer, self.home.clone()))
    }
}
