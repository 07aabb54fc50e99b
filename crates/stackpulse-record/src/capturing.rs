//! The capture thread and what leads to it.

use crate::capture_thread::{CaptureThread, Command, Message, answer};
use crate::error::{Error, ErrorKind};
use crate::options::RecorderOptions;
use crossbeam_channel::{Receiver, Sender, bounded, unbounded};
use stackpulse_perf::capture::{AttachMode, Capture, CaptureOptions, Settings, Waker};
use stackpulse_perf::{Batch, OpenError};
use std::path::PathBuf;
use std::thread::{Builder, JoinHandle};

/// Batches under way between the threads.
const BATCHES: usize = 8;

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

/// A capture that runs on its thread, and the ends of its channels.
#[derive(Debug)]
pub(crate) struct Capturing {
    pub(crate) thread: JoinHandle<Result<(), Error>>,
    pub(crate) commands: Sender<Command>,
    pub(crate) messages: Receiver<Message>,
    pub(crate) spent: Sender<Batch>,
    pub(crate) waker: Waker,
    pub(crate) settings: Settings,
}

impl Capturing {
    /// Attaches. The thread that will read the rings does so itself: it reads from the first moment on, whatever else is
    /// still to be prepared.
    pub(crate) fn start(whom: Whom, options: &RecorderOptions) -> Result<Self, Error> {
        if let Whom::Process(pid, _) = whom
            && (pid == 0 || i32::try_from(pid).is_err())
        {
            return Err(Error::new(ErrorKind::InvalidInput, format!("{pid} is no process id")));
        }
        let capture_options = options.capture_options()?;
        let is_prompt = options.prompt_capture;
        let (commands, command_receiver) = unbounded();
        let (message_sender, messages) = bounded(BATCHES);
        let (spent, spent_receiver) = bounded(BATCHES);
        let (reply, attached) = bounded(1);
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
            CaptureThread { capture, commands, messages, spent, batch: Batch::new(), is_prompt }
                .run()
        };
        let thread = Builder::new().name("sp-capture".to_owned()).spawn(run);
        let thread = thread
            .map_err(|error| Error::caused(ErrorKind::Io, "start the capture thread", error))?;
        let panicked = |_| Err(Error::new(ErrorKind::Io, "the capture thread panicked"));
        let (settings, waker) = attached.recv().unwrap_or_else(panicked)?;
        Ok(Self { thread, commands, messages, spent, waker, settings })
    }

    /// Ends it at once: what it should have been for cannot be.
    pub(crate) fn abort(self) {
        // A thread that has gone needs no command, and nobody is told how it went.
        let _ = self.commands.send(Command::Abort);
        self.waker.wake();
        let _ = self.thread.join();
    }
}
