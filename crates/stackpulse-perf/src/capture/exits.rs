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
    /// Notes a process to be followed, of which a fork record tells.
    pub(crate) fn note(&mut self, pid: u32) {
        self.new.push(pid);
    }

    /// Follows what was noted.
    pub(crate) fn open_noted(&mut self, poller: &Poller) -> io::Result<()> {
        for pid in std::mem::take(&mut self.new) {
            if !self.follow(pid, poller)? {
                self.ended.push(pid);
            }
        }
        Ok(())
    }

    /// Follows a process; `Ok(false)` if it has ended.
    pub(crate) fn follow(&mut self, pid: u32, poller: &Poller) -> io::Result<bool> {
        // A pid seen again is a new process: its fork tells that the old one has ended.
        self.forget(pid, poller);
        match sys::pidfd_open(pid) {
            Ok(pidfd) => {
                poller.add(&pidfd, PIDFD_TOKEN | u64::from(pid))?;
                self.living.insert(pid, pidfd);
                Ok(true)
            }
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Follows a process no longer; nothing is told of its end.
    pub(crate) fn forget(&mut self, pid: u32, poller: &Poller) {
        if let Some(pidfd) = self.living.remove(&pid) {
            // Closing the descriptor takes it out of the set as well.
            let _ = poller.remove(&pidfd);
        }
    }

    /// Takes note that a pidfd became readable.
    pub(crate) fn saw_exit(&mut self, pid: u32, poller: &Poller) {
        if self.living.contains_key(&pid) {
            self.forget(pid, poller);
            self.ended.push(pid);
        }
    }

    /// Takes the processes that have ended since the last call.
    pub(crate) fn take_ended(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.ended)
    }

    /// Whether a fork record of this round began a new process with this pid.
    pub(crate) fn is_noted(&self, pid: u32) -> bool {
        self.new.contains(&pid)
    }

    /// Whether the process is followed and its end has not been told.
    pub(crate) fn is_followed(&self, pid: u32) -> bool {
        self.living.contains_key(&pid)
    }

    /// Whether a followed process has ended by now, told or not.
    pub(crate) fn has_ended(&self, pid: u32) -> io::Result<bool> {
        self.living.get(&pid).map_or(Ok(true), sys::is_readable)
    }

    pub(crate) fn living(&self) -> impl Iterator<Item = u32> + '_ {
        self.living.keys().copied()
    }
}
