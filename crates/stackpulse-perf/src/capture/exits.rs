//! The ends of processes: a pidfd each, in the same epoll set as the rings.

use super::sys::{self, Poller};
use std::collections::HashMap;
use std::io;
use std::os::fd::OwnedFd;

/// Tokens of pidfds in the epoll set are the pid with this bit.
pub(crate) const PIDFD_TOKEN: u64 = 1 << 32;

/// Processes that are followed until their last thread has ended.
#[derive(Debug, Default)]
pub(crate) struct Exits {
    living: HashMap<u32, OwnedFd>,
    /// Pids seen in fork records, to be opened after the round.
    new: Vec<u32>,
    /// Processes that have ended, to be told after everything of theirs that is queued.
    ended: Vec<u32>,
}

impl Exits {
    /// Notes a process to be followed.
    pub(crate) fn follow(&mut self, pid: u32) {
        self.new.push(pid);
    }

    /// Opens what was noted.
    pub(crate) fn open_noted(&mut self, poller: &Poller) -> io::Result<()> {
        for pid in std::mem::take(&mut self.new) {
            // A pid seen again is a new process: the old one's end has been, or the new could not be.
            if let Some(old) = self.living.remove(&pid) {
                poller.remove(&old)?;
            }
            match sys::pidfd_open(pid) {
                Ok(pidfd) => {
                    poller.add(&pidfd, PIDFD_TOKEN | u64::from(pid))?;
                    self.living.insert(pid, pidfd);
                }
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => self.ended.push(pid),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Takes note that a pidfd became readable.
    pub(crate) fn saw_exit(&mut self, pid: u32, poller: &Poller) -> io::Result<()> {
        if let Some(pidfd) = self.living.remove(&pid) {
            poller.remove(&pidfd)?;
            self.ended.push(pid);
        }
        Ok(())
    }

    /// Takes the processes that have ended since the last call.
    pub(crate) fn take_ended(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.ended)
    }

    /// Whether the process is followed and its end has not been seen.
    pub(crate) fn is_living(&self, pid: u32) -> bool {
        self.living.contains_key(&pid)
    }

    pub(crate) fn living(&self) -> impl Iterator<Item = u32> + '_ {
        self.living.keys().copied()
    }
}
