//! The thread that owns every descriptor: rings, pidfds, the sorter.

use crate::bell::Bell;
use crate::error::{Error, ErrorKind};
use stackpulse_perf::capture::{
    AttachMode, AttachOutcome, Capture, RefreshOutcome, clock, schedule,
};
use stackpulse_perf::{Batch, CaptureError, OpenError, Statistics};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError};
use std::time::Duration;

/// What the user's thread asks of the capture thread.
#[derive(Debug)]
pub(crate) enum Command {
    /// Follow one more process.
    Attach(u32, AttachMode, SyncSender<Result<AttachOutcome, Error>>),
    /// Resume (`true`) or pause sampling.
    Switch(bool, SyncSender<Result<(), Error>>),
    /// Send on everything collected so far, and answer when it has been published.
    Flush(SyncSender<Result<(), Error>>),
    /// Look for threads of a process that are not followed.
    Refresh(u32, SyncSender<Result<RefreshOutcome, Error>>),
    /// List the processes that have not ended.
    Active(SyncSender<Vec<u32>>),
    /// Whether something waits to be read or sorted.
    Pending(SyncSender<bool>),
    /// Drain to the end and stop.
    Finish,
    /// Stop at once.
    Abort,
}

/// What goes to the unwind thread, in order.
#[derive(Debug)]
pub(crate) enum Message {
    /// Events in the order of time.
    Batch(Batch),
    /// Publish what has come, and answer.
    Flush(SyncSender<Result<(), Error>>),
    /// What the capture has come to, as of now.
    Captured(Captured),
    /// Nothing comes after this: the recording ends as it should.
    End(Captured),
}

/// What a capture has come to.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Captured {
    pub(crate) statistics: Statistics,
    /// CPU time of the thread, nanoseconds.
    pub(crate) cpu_ns: u64,
}

/// How long it sleeps while the unwind thread is behind.
const BEHIND: Duration = Duration::from_millis(2);

/// The capture thread's state.
pub(crate) struct CaptureThread {
    pub(crate) capture: Capture,
    pub(crate) commands: Receiver<Command>,
    pub(crate) messages: SyncSender<Message>,
    pub(crate) spent: Receiver<Batch>,
    /// Events that wait to be sent.
    pub(crate) batch: Batch,
    /// Rung when the last followed process has ended.
    pub(crate) bell: Bell,
    /// How long to sleep when nothing happens: rings that fill, and processes that end, wake the thread.
    pub(crate) idle: Duration,
    /// Whether to ask the scheduler to run this thread ahead of others.
    pub(crate) is_prompt: bool,
}

/// How the thread goes on.
enum Next {
    GoOn,
    Finish,
    Stop,
}

impl CaptureThread {
    /// Runs until the end is asked for, or the unwind thread has gone.
    pub(crate) fn run(mut self) -> Result<(), Error> {
        if self.is_prompt {
            // Best effort: a thread that runs later than it could loses more.
            let _ = schedule::run_promptly();
        }
        let mut any_active = false;
        loop {
            let timeout = if self.batch.is_empty() { self.idle } else { BEHIND };
            self.capture.wait(timeout).map_err(failed)?;
            self.capture.drain(&mut self.batch).map_err(failed)?;
            if !self.send_batch() {
                return Ok(());
            }
            let had_active = std::mem::replace(&mut any_active, self.any_active());
            if had_active && !any_active {
                self.bell.ring();
            }
            match self.obey()? {
                Next::GoOn => {}
                Next::Finish => return self.finish(),
                Next::Stop => return Ok(()),
            }
        }
    }

    /// Sends the batch if there is room; else its samples leave the rings, so that the kernel can go on writing.
    /// `false`: nobody receives any more.
    fn send_batch(&mut self) -> bool {
        if self.batch.is_empty() {
            return true;
        }
        let next = self.spent.try_recv().unwrap_or_default();
        let full = std::mem::replace(&mut self.batch, next);
        match self.messages.try_send(Message::Batch(full)) {
            Ok(()) => {
                // Only a snapshot: it may be left out when the channel is full.
                let _ = self.messages.try_send(Message::Captured(self.captured()));
                true
            }
            Err(TrySendError::Full(Message::Batch(batch))) => {
                self.batch = batch;
                self.capture.detach(&mut self.batch);
                true
            }
            Err(_) => false,
        }
    }

    fn any_active(&self) -> bool {
        self.capture.active_processes().next().is_some()
    }

    fn captured(&self) -> Captured {
        Captured { statistics: self.capture.statistics(), cpu_ns: clock::thread_cpu_ns() }
    }

    fn obey(&mut self) -> Result<Next, Error> {
        while let Ok(command) = self.commands.try_recv() {
            match command {
                Command::Attach(pid, mode, reply) => {
                    answer(&reply, self.capture.attach_process(pid, mode).map_err(Error::from));
                }
                Command::Refresh(pid, reply) => {
                    answer(&reply, self.capture.refresh_threads(pid).map_err(Error::from));
                }
                Command::Switch(on, reply) => {
                    let switched = if on { self.capture.enable() } else { self.capture.disable() };
                    answer(&reply, switched.map_err(failed));
                }
                Command::Flush(reply) => {
                    if !self.flush(reply)? {
                        return Ok(Next::Stop);
                    }
                }
                Command::Active(reply) => answer(&reply, self.capture.active_processes().collect()),
                Command::Pending(reply) => {
                    let pending = !self.batch.is_empty() || self.capture.has_pending_events();
                    answer(&reply, pending);
                }
                Command::Finish => return Ok(Next::Finish),
                Command::Abort => return Ok(Next::Stop),
            }
        }
        Ok(Next::GoOn)
    }

    /// Sends on everything there is now: two rounds put in order what the first has read.
    fn flush(&mut self, reply: SyncSender<Result<(), Error>>) -> Result<bool, Error> {
        for _ in 0..2 {
            self.capture.drain(&mut self.batch).map_err(failed)?;
        }
        let batch = std::mem::take(&mut self.batch);
        Ok(self.messages.send(Message::Batch(batch)).is_ok()
            && self.messages.send(Message::Flush(reply)).is_ok())
    }

    fn finish(mut self) -> Result<(), Error> {
        let finished = self.capture.finish(&mut self.batch).map_err(failed);
        let captured = self.captured();
        // An unwind thread that has gone tells its own error.
        let _ = self.messages.send(Message::Batch(self.batch));
        if finished.is_ok() {
            let _ = self.messages.send(Message::End(captured));
        }
        finished
    }
}

/// A user's thread that no longer waits needs no answer.
pub(crate) fn answer<T>(reply: &SyncSender<T>, value: T) {
    let _ = reply.send(value);
}

fn failed(error: CaptureError) -> Error {
    Error::caused(ErrorKind::Io, "capture events", error)
}

impl From<OpenError> for Error {
    fn from(error: OpenError) -> Self {
        let kind = match &error {
            OpenError::NoSuchProcess { .. } | OpenError::Zombie { .. } => ErrorKind::TargetGone,
            OpenError::Refused { source, .. } => match source.kind() {
                std::io::ErrorKind::PermissionDenied => ErrorKind::Permission,
                std::io::ErrorKind::Unsupported => ErrorKind::Unsupported,
                _ => ErrorKind::Io,
            },
            OpenError::UnsupportedArchitecture => ErrorKind::Unsupported,
            _ => ErrorKind::InvalidInput,
        };
        Error::plain(kind, error)
    }
}
