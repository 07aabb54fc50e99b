//! The thread that owns the engine and the writer.

use crate::bell::Bell;
use crate::capture_thread::{Captured, Message};
use crate::capturing::Captures;
use crate::error::{Error, ErrorKind};
use crate::summary::Summary;
use stackpulse_perf::Batch;
use stackpulse_perf::capture::Settings;
use stackpulse_perf::capture::clock;
use stackpulse_spool::{Record, RecordSink, WriteError, Writer};
use stackpulse_track::Engine;
use stackpulse_track::procfs::Procfs;
use std::io::Write;
use std::sync::mpsc::{RecvTimeoutError, SyncSender};
use std::time::{Duration, Instant};

/// Unwinds what comes, and writes it.
pub(crate) struct UnwindThread<W: Write> {
    pub(crate) engine: Engine<Procfs, Writer<W>>,
    pub(crate) captures: Captures,
    /// The latest summary goes here; one that nobody has taken yet is not replaced, but the next is newer.
    pub(crate) progress: SyncSender<Summary>,
    /// Rung after each summary, and, as it goes after them, at the end.
    pub(crate) bell: Bell,
    pub(crate) publish_interval: Duration,
    pub(crate) start_ns: u64,
    pub(crate) settings: Settings,
    pub(crate) captured: Captured,
}

/// How the recording ended, and what it was written to.
pub(crate) struct Ended<W> {
    pub(crate) summary: Summary,
    /// `None` if the writer was lost with an error.
    pub(crate) out: Option<W>,
    pub(crate) error: Option<Error>,
}

impl<W: Write> UnwindThread<W> {
    /// Runs until the capture thread ends the recording, or has gone.
    pub(crate) fn run(mut self) -> Ended<W> {
        let mut next_publish = Instant::now() + self.publish_interval;
        let outcome = loop {
            let wait = next_publish.saturating_duration_since(Instant::now());
            let step = match self.captures.messages.recv_timeout(wait) {
                Ok(Message::Batch(batch)) => self.handle(batch),
                Ok(Message::Captured(captured)) => {
                    self.captured = captured;
                    Ok(())
                }
                Ok(Message::Flush(reply)) => {
                    let published = self.publish();
                    let failed = published.as_ref().err().map(ToString::to_string);
                    let _ = reply.send(match failed {
                        Some(message) => Err(Error::new(ErrorKind::Io, message)),
                        None => Ok(()),
                    });
                    published
                }
                Ok(Message::End(captured)) => {
                    self.captured = captured;
                    break Ok(true);
                }
                Err(RecvTimeoutError::Timeout) => Ok(()),
                Err(RecvTimeoutError::Disconnected) => break Ok(false),
            };
            let step = match step {
                Ok(()) if Instant::now() >= next_publish => {
                    next_publish = Instant::now() + self.publish_interval;
                    self.publish()
                }
                other => other,
            };
            if let Err(error) = step {
                break Err(error);
            }
        };
        match outcome {
            Ok(is_finished) => self.end(is_finished),
            Err(error) => self.give_up(error),
        }
    }

    fn handle(&mut self, mut batch: Batch) -> Result<(), WriteError> {
        for event in batch.drain() {
            self.engine.handle(event)?;
        }
        // A capture thread that is busy, or gone, needs no batch back.
        let _ = self.captures.spent.try_send(batch);
        Ok(())
    }

    fn publish(&mut self) -> Result<(), WriteError> {
        self.engine.tick(clock::monotonic_ns())?;
        self.engine.sink().publish()?;
        self.tell();
        Ok(())
    }

    fn tell(&mut self) {
        // Where the user has not looked at the last one yet, the next is newer.
        let summary = self.summary();
        let _ = self.progress.try_send(summary);
        self.bell.ring();
    }

    fn summary(&mut self) -> Summary {
        let mut summary = Summary::of(
            &self.captured.statistics,
            &self.engine.statistics(),
            &self.settings,
            self.engine.sink().bytes_written(),
        );
        summary.took(
            self.start_ns..clock::monotonic_ns(),
            self.captured.cpu_ns + clock::thread_cpu_ns(),
        );
        summary
    }

    fn end(mut self, is_finished: bool) -> Ended<W> {
        let ended = self.write_end();
        let mut summary = self.summary();
        if let Err(error) = ended {
            return self.give_up(error);
        }
        let writer = self.engine.into_sink();
        let closed = if is_finished { writer.finish() } else { writer.abort() };
        match closed {
            Ok((out, bytes)) => {
                summary.bytes_written = bytes;
                Ended { summary, out: Some(out), error: None }
            }
            Err(unfinished) => Ended {
                summary,
                error: Some(write_failed(unfinished.error)),
                out: Some(unfinished.out),
            },
        }
    }

    fn write_end(&mut self) -> Result<(), WriteError> {
        let end_ns = clock::monotonic_ns();
        self.engine.finish(end_ns)?;
        let summary = self.summary();
        for (name, value) in &summary.counters {
            self.engine.sink().record(&Record::Counter { name: name.as_bytes(), value: *value })?;
        }
        self.engine.sink().record(&Record::End { time_ns: end_ns })
    }

    /// The spool ends at its last whole block; the failure is the cause of the recording's end.
    fn give_up(mut self, error: WriteError) -> Ended<W> {
        let summary = self.summary();
        Ended {
            summary,
            out: Some(self.engine.into_sink().into_inner()),
            error: Some(write_failed(error)),
        }
    }
}

fn write_failed(error: WriteError) -> Error {
    match error {
        // The cause's own number is kept; it is never taken for the target's end.
        WriteError::Io(source) => Error::caused(ErrorKind::Io, "write the spool", source),
        other => Error::plain(ErrorKind::CorruptSpool, other),
    }
}
