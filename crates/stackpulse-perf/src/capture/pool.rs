//! Recycled buffers for samples that cannot stay in ring memory.

use crate::payload::Payload;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// At most this many buffers: all of them may wait to be used again at a time.
const MAX_BUFFERS: usize = 1 << 14;

/// Buffers grow in steps of this many bytes.
const STEP_BYTES: usize = 4096;

/// A bounded number of bytes in buffers, which come back when their samples are dropped.
#[derive(Debug)]
pub(crate) struct Pool {
    spent: Receiver<Vec<u8>>,
    home: SyncSender<Vec<u8>>,
    free: Vec<Vec<u8>>,
    /// Buffers in use and free, and their bytes.
    buffers: usize,
    allocated: usize,
    limit: usize,
}

impl Pool {
    /// Makes a pool that holds no more than `limit` bytes.
    pub(crate) fn new(limit: usize) -> Self {
        let (home, spent) = sync_channel(MAX_BUFFERS);
        Self { spent, home, free: Vec::new(), buffers: 0, allocated: 0, limit }
    }

    /// Copies the pieces of a record into one buffer; `None` if the pool is exhausted.
    pub(crate) fn copy(&mut self, pieces: [&[u8]; 2]) -> Option<Payload> {
        if self.free.is_empty() {
            self.free.extend(self.spent.try_iter());
        }
        let len = pieces[0].len() + pieces[1].len();
        let mut buffer = match self.free.pop() {
            Some(buffer) => buffer,
            None if self.buffers < MAX_BUFFERS => {
                self.buffers += 1;
                Vec::new()
            }
            None => return None,
        };
        buffer.clear();
        if buffer.capacity() < len {
            self.give_up(buffer);
            let grown = len.next_multiple_of(STEP_BYTES);
            if self.allocated + grown > self.limit {
                // What is free may be too small: it makes room.
                std::mem::take(&mut self.free).into_iter().for_each(|buffer| self.give_up(buffer));
            }
            if self.allocated + grown > self.limit {
                return None;
            }
            buffer = Vec::with_capacity(grown);
            self.allocated += buffer.capacity();
            self.buffers += 1;
        }
        pieces.iter().for_each(|piece| buffer.extend_from_slice(piece));
        Some(Payload::pooled(buffer, self.home.clone()))
    }

    fn give_up(&mut self, buffer: Vec<u8>) {
        self.allocated -= buffer.capacity();
        drop(buffer);
        self.buffers -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_pool_refuses_until_a_sample_is_dropped() {
        let mut pool = Pool::new(2 * STEP_BYTES);
        let bytes = [7; STEP_BYTES];
        let first = pool.copy([&bytes, &[]]).unwrap();
        let second = pool.copy([&bytes[..10], &bytes[10..]]).unwrap();
        assert_eq!(second.bytes(), bytes);
        assert!(pool.copy([&bytes, &[]]).is_none());
        drop(first);
        assert!(pool.copy([&bytes, &[]]).is_some());
    }

    #[test]
    fn free_buffers_that_are_too_small_make_room() {
        let mut pool = Pool::new(4 * STEP_BYTES);
        let small: Vec<_> = (0..4).map(|_| pool.copy([&[1; 8], &[]])).collect();
        drop(small);
        assert!(pool.copy([&[2; 3 * STEP_BYTES], &[]]).is_some());
    }

    #[test]
    fn buffers_that_come_back_are_counted_once() {
        let mut pool = Pool::new(1 << 20);
        for round in 0..100 {
            let samples: Vec<_> = (0..200).map(|_| pool.copy([&[1; 64], &[2; 8]])).collect();
            assert!(samples.iter().all(Option::is_some), "round {round}");
        }
        assert_eq!(pool.buffers, 200);
    }
}
