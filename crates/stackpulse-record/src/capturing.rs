//! The capture thread and what leads to it.

use crate::bell::{Bell, Interrupter};
use crate::capture_thread::{CaptureThread, Command, Message, answer};
use crate::error::{Error, ErrorKind};
use crate::options::RecorderOptions;
use stackpulse_perf::capture::{AttachMode, Capture, CaptureOptions, Settings, Waker};
use stackpulse_perf::{Batch, OpenError};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

/// Batches under way between the threads.
const BATCHES: usize = 8;

/// How long the capture thread sleeps when nothing happens: as long as readers wait for a block, within these.
const LEAST_IDLE: Duration = Duration::from_millis(100);
const MOST_IDLE: Duration = Duration::from_millis(500);

/// What is to be recorded.
#[derive(Clone, Debug)]
pub(crate) enum Whom {
    /// A process, and with `inherit_children` its descendants.
    Process(u32, AttachMode),
    /// What a control group runs.
    ControlGroup(PathBuf),
    /// Everything that runs.
    Everything,
}

impl Whom {
    fn capture(&self, options: &CaptureOptions) -> Result<Capture, OpenError> {
        match self {
            Self::Process(pid, mode) => Capture::attach(*pid, *mode, options),
            Self::ControlGroup(directory) => Capture::cgroup(directory, options),
            Self::Everything => Capture::system_wide(options),
        }
    }
}

/// A capture that runs on its thread.
#[derive(Debug)]
pub(crate) struct Capturing {
    pub(crate) thread: JoinHandle<Result<(), Error>>,
    pub(crate) commands: Sender<Command>,
    pub(crate) waker: Waker,
    pub(crate) settings: Settings,
}

/// What comes from the capture thread, and the way back for what is spent.
#[derive(Debug)]
pub(crate) struct Captures {
    pub(crate) messages: Receiver<Message>,
    pub(crate) spent: SyncSender<Batch>,
}

impl Capturing {
    /// Attaches. The thread that will read the rings does so itself: it reads from the first moment on, whatever else is
    /// still to be prepared.
    pub(crate) fn start(
        whom: Whom,
        options: &RecorderOptions,
        interrupter: Interrupter,
    ) -> Result<(Self, Captures), Error> {
        if let Whom::Process(pid, _) = whom
            && (pid == 0 || i32::try_from(pid).is_err())
        {
            return Err(Error::new(ErrorKind::InvalidInput, format!("{pid} is no process id")));
        }
        let capture_options = options.capture_options()?;
        let is_prompt = options.prompt_capture;
        let idle = options.publish_interval.clamp(LEAST_IDLE, MOST_IDLE);
        let bell = Bell(interrupter);
        let (commands, command_receiver) = channel();
        let (message_sender, messages) = sync_channel(BATCHES);
        let (spent, spent_receiver) = sync_channel(BATCHES);
        let (reply, attached) = sync_channel(1);
        let run = move || {
            let capture = match whom.capture(&capture_options) {
                Ok(capture) => capture,
                Err(error) => {
                    answer(&reply, Err(Error::from(error)));
                    return Ok(());
                }
            };
            answer(&reply, Ok((capture.settings(), capture.waker())));
            let (commands, messages, spent) = (command_receiver, message_sender, spent_receiver);
            let batch = Batch::new();
            CaptureThread { capture, commands, messages, spent, batch, bell, idle, is_prompt }.run()
        };
        let thread = Builder::new().name("sp-capture".to_owned()).spawn(run);
        let thread = thread
            .map_err(|error| Error::caused(ErrorKind::Io, "start the capture thread", error))?;
        let panicked = |_| Err(Error::new(ErrorKind::Io, "the capture thread panicked"));
        let (settings, waker) = attached.recv().unwrap_or_else(panicked)?;
        Ok((Self { thread, commands, waker, settings }, Captures { messages, spent }))
    }

    /// Ends it at once: what it should have been for cannot be.
    pub(crate) fn abort(self) {
        // A thread that has gone needs no command, and nobody is told how it went.
        let _ = self.commands.send(Command::Abort);
        self.waker.wake();
        let _ = self.thread.join();
    }
}
