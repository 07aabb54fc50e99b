//! The calls: what the user's thread sees.

use crate::beginning;
use crate::bell::{Bell, Interrupter, interrupter};
use crate::capture_thread::{Captured, Command};
use crate::capturing::{Capturing, Whom};
use crate::error::{Error, ErrorKind};
use crate::options::RecorderOptions;
use crate::summary::Summary;
use crate::unwind_thread::{Ended, UnwindThread};
use stackpulse_perf::capture::{AttachMode, AttachOutcome, RefreshOutcome, Settings, Waker};
use stackpulse_spool::Tail;
use stackpulse_track::procfs::Procfs;
use stackpulse_track::{Engine, EngineOptions};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, SyncSender, TryRecvError, sync_channel};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

/// What a [`Recorder::poll`] saw.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Samples written since the last call.
    pub samples: u64,
    /// Events lost since the last call.
    pub lost: u64,
}

/// Records a process tree into a spool, on two threads of its own.
///
/// A user who never calls anything but [`finish`](Self::finish) gets a complete file. Dropped without it, the spool is marked
/// aborted and stays readable.
#[derive(Debug)]
pub struct Recorder<W: Write + Send + 'static = File> {
    commands: Sender<Command>,
    waker: Waker,
    progress: Receiver<Summary>,
    rung: Receiver<()>,
    interrupter: Interrupter,
    settings: Settings,
    latest: Summary,
    told: Progress,
    /// The spool, for the one reader that may follow it.
    followed: Option<File>,
    threads: Option<Threads<W>>,
}

#[derive(Debug)]
struct Threads<W> {
    capture: JoinHandle<Result<(), Error>>,
    unwind: JoinHandle<Ended<W>>,
}

impl Recorder<File> {
    /// Attaches to a process, and records it into a new file at `path`.
    ///
    /// # Errors
    ///
    /// When the process cannot be captured or the file not be made; then nothing stays open, and the target runs.
    pub fn attach(
        pid: u32,
        path: impl AsRef<Path>,
        mode: AttachMode,
        options: &RecorderOptions,
    ) -> Result<Self, Error> {
        Self::create(Whom::Process(pid, mode), path.as_ref(), options)
    }

    /// Records everything that runs, by CPU, into a new file at `path`. `inherit_children` has no meaning here.
    ///
    /// # Errors
    ///
    /// When that is not permitted (it needs CAP_PERFMON, root, or `kernel.perf_event_paranoid` of 0 or less), or the
    /// file cannot be made.
    pub fn system_wide(path: impl AsRef<Path>, options: &RecorderOptions) -> Result<Self, Error> {
        Self::create(Whom::Everything, path.as_ref(), options)
    }

    /// Records what a control group (version 2) and those below it run into a new file at `path`; `group` is its
    /// directory, such as `/sys/fs/cgroup/system.slice`.
    ///
    /// # Errors
    ///
    /// When the directory is no control group's, or as [`system_wide`](Self::system_wide).
    pub fn control_group(
        group: impl Into<PathBuf>,
        path: impl AsRef<Path>,
        options: &RecorderOptions,
    ) -> Result<Self, Error> {
        Self::create(Whom::ControlGroup(group.into()), path.as_ref(), options)
    }

    fn create(whom: Whom, path: &Path, options: &RecorderOptions) -> Result<Self, Error> {
        let mut followed = None;
        let mut recorder = Self::start(whom, options, || {
            let file =
                File::options().read(true).write(true).create(true).truncate(true).open(path);
            let attempt = format_args!("create {}", path.display());
            let file = file.map_err(|error| Error::caused(ErrorKind::Io, attempt, error))?;
            // Opened now, so that it is this file whatever becomes of the path; a pipe or a terminal cannot be followed.
            followed = File::open(path).ok().filter(is_regular);
            Ok(file)
        })?;
        recorder.followed = followed;
        Ok(recorder)
    }
}

fn is_regular(file: &File) -> bool {
    file.metadata().is_ok_and(|metadata| metadata.is_file())
}

impl<W: Write + Send + 'static> Recorder<W> {
    /// Attaches to a process, and records it into `out`, which [`finish`](Self::finish) gives back.
    ///
    /// # Errors
    ///
    /// As [`Recorder::attach`].
    pub fn attach_with_writer(
        pid: u32,
        out: W,
        mode: AttachMode,
        options: &RecorderOptions,
    ) -> Result<Self, Error> {
        Self::start(Whom::Process(pid, mode), options, || Ok(out))
    }

    /// Records everything that runs into `out`.
    ///
    /// # Errors
    ///
    /// As [`Recorder::system_wide`].
    pub fn system_wide_with_writer(out: W, options: &RecorderOptions) -> Result<Self, Error> {
        Self::start(Whom::Everything, options, || Ok(out))
    }

    /// Records a control group into `out`.
    ///
    /// # Errors
    ///
    /// As [`Recorder::control_group`].
    pub fn control_group_with_writer(
        group: impl Into<PathBuf>,
        out: W,
        options: &RecorderOptions,
    ) -> Result<Self, Error> {
        Self::start(Whom::ControlGroup(group.into()), options, || Ok(out))
    }

    /// Attaches, and then opens the output: a recording that cannot be leaves no file.
    fn start(
        whom: Whom,
        options: &RecorderOptions,
        open: impl FnOnce() -> Result<W, Error>,
    ) -> Result<Self, Error> {
        let (interrupter, rung) = interrupter();
        let (capture, captures) = Capturing::start(whom, options, interrupter.clone())?;
        let settings = capture.settings;
        let (latest_sender, progress) = sync_channel(1);
        let begun = open().and_then(|out| beginning::begin(out, &settings, options));
        let unwinding = begun.and_then(|(start_ns, writer)| {
            let mut engine_options = EngineOptions::default();
            engine_options.kernel_frames = settings.kernel_frames;
            let thread = UnwindThread {
                engine: Engine::new(Procfs::new(), writer, engine_options),
                captures,
                progress: latest_sender,
                bell: Bell(interrupter.clone()),
                publish_interval: options.publish_interval,
                start_ns,
                settings,
                captured: Captured::default(),
            };
            let spawned = Builder::new().name("sp-unwind".to_owned()).spawn(move || thread.run());
            spawned
                .map(|thread| (start_ns, thread))
                .map_err(|error| Error::caused(ErrorKind::Io, "start the unwind thread", error))
        });
        let (start_ns, unwind) = match unwinding {
            Ok(unwinding) => unwinding,
            Err(error) => {
                capture.abort();
                return Err(error);
            }
        };
        Ok(Self {
            commands: capture.commands,
            waker: capture.waker,
            progress,
            rung,
            interrupter,
            settings,
            latest: Summary { start_ns, ..Summary::default() },
            told: Progress::default(),
            followed: None,
            threads: Some(Threads { capture: capture.thread, unwind }),
        })
    }

    /// Returns what the recording came to be after the kernel's limits: event, rate, ring sizes, kernel frames.
    #[must_use]
    pub fn settings(&self) -> Settings {
        self.settings
    }

    /// Follows one more process.
    ///
    /// # Errors
    ///
    /// When it cannot be captured; what this call opened is closed again.
    pub fn attach_process(&mut self, pid: u32, mode: AttachMode) -> Result<AttachOutcome, Error> {
        self.ask(|reply| Command::Attach(pid, mode, reply))?
    }

    /// Looks for threads of a followed process that are not followed yet, and follows them.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`] for a process that is not followed; otherwise as
    /// [`attach_process`](Self::attach_process).
    pub fn refresh_threads(&mut self, pid: u32) -> Result<RefreshOutcome, Error> {
        self.ask(|reply| Command::Refresh(pid, reply))?
    }

    /// Returns a reader that follows the spool as it is written: whole blocks, every publish interval.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`] at the second call, and where the spool is no regular file that was named by its path;
    /// [`ErrorKind::CorruptSpool`] when something else writes into the file.
    pub fn tail(&mut self) -> Result<Tail<File>, Error> {
        let file = self.followed.take().ok_or_else(|| {
            let why =
                "the spool has its one reader already, or is no regular file opened by its path";
            Error::new(ErrorKind::InvalidInput, why)
        })?;
        Tail::open(file)
            .map_err(|error| Error::caused(ErrorKind::CorruptSpool, "follow the spool", error))
    }

    /// Returns what ends a [`poll`](Self::poll) from another thread.
    #[must_use]
    pub fn interrupter(&self) -> Interrupter {
        self.interrupter.clone()
    }

    /// Waits for progress at most that long: for a publish, for the end of the last followed process, or until it is
    /// [interrupted](Self::interrupter). It may return early with nothing new.
    ///
    /// # Errors
    ///
    /// When the recording has ended by a failure.
    pub fn poll(&mut self, timeout: Duration) -> Result<Progress, Error> {
        let was_rung = self.rung.try_recv().is_ok();
        if !self.take_summary()? && !was_rung {
            // Whether it was rung or the time is over: there is nothing to do but to look.
            let _ = self.rung.recv_timeout(timeout);
            self.take_summary()?;
        }
        let progress = Progress {
            samples: self.latest.samples_written.saturating_sub(self.told.samples),
            lost: self.latest.events_lost.saturating_sub(self.told.lost),
        };
        self.told =
            Progress { samples: self.latest.samples_written, lost: self.latest.events_lost };
        Ok(progress)
    }

    /// Takes the newest summary, if there is one.
    fn take_summary(&mut self) -> Result<bool, Error> {
        match self.progress.try_recv() {
            Ok(summary) => self.latest = summary,
            Err(TryRecvError::Empty) => return Ok(false),
            Err(TryRecvError::Disconnected) => return Err(self.failure()),
        }
        Ok(true)
    }

    /// Writes and publishes everything collected so far; sampling goes on.
    ///
    /// # Errors
    ///
    /// When it cannot be written, or the recording has ended by a failure.
    pub fn flush(&mut self) -> Result<(), Error> {
        self.ask(Command::Flush)?
    }

    /// Resumes sampling.
    ///
    /// # Errors
    ///
    /// When the kernel refuses, or the recording has ended by a failure.
    pub fn enable(&mut self) -> Result<(), Error> {
        self.ask(|reply| Command::Switch(true, reply))?
    }

    /// Pauses sampling; what processes do meanwhile is followed.
    ///
    /// # Errors
    ///
    /// When the kernel refuses, or the recording has ended by a failure.
    pub fn disable(&mut self) -> Result<(), Error> {
        self.ask(|reply| Command::Switch(false, reply))?
    }

    /// Returns the totals so far.
    pub fn summary(&mut self) -> &Summary {
        if let Ok(summary) = self.progress.try_recv() {
            self.latest = summary;
        }
        &self.latest
    }

    /// Whether events wait to be written.
    ///
    /// # Errors
    ///
    /// When the recording has ended by a failure.
    pub fn has_pending_events(&mut self) -> Result<bool, Error> {
        self.ask(Command::Pending)
    }

    /// Returns how many followed processes have not ended.
    ///
    /// # Errors
    ///
    /// When the recording has ended by a failure.
    pub fn active_process_count(&mut self) -> Result<usize, Error> {
        self.ask(Command::Active).map(|active| active.len())
    }

    /// Whether a process is followed and has not ended.
    ///
    /// # Errors
    ///
    /// When the recording has ended by a failure.
    pub fn process_is_active(&mut self, pid: u32) -> Result<bool, Error> {
        self.ask(Command::Active).map(|active| active.contains(&pid))
    }

    /// Whether any followed process but this one has not ended.
    ///
    /// # Errors
    ///
    /// When the recording has ended by a failure.
    pub fn has_active_processes_except(&mut self, pid: u32) -> Result<bool, Error> {
        self.ask(Command::Active).map(|active| active.iter().any(|&other| other != pid))
    }

    /// Stops sampling, writes everything there is, and ends the spool.
    ///
    /// # Errors
    ///
    /// The first failure of the recording, with later ones as context.
    pub fn finish(mut self) -> Result<(Summary, W), Error> {
        self.send(Command::Finish);
        self.join()
    }

    /// Asks the capture thread, and waits for its answer.
    fn ask<T>(&mut self, command: impl FnOnce(SyncSender<T>) -> Command) -> Result<T, Error> {
        let (reply, answer) = sync_channel(1);
        self.send(command(reply));
        answer.recv().map_err(|_| self.failure())
    }

    fn send(&self, command: Command) {
        // A thread that has gone tells why when it is joined.
        let _ = self.commands.send(command);
        self.waker.wake();
    }

    /// Why a thread has gone.
    fn failure(&mut self) -> Error {
        match self.join() {
            Err(error) => error,
            Ok(_) => Error::new(ErrorKind::InvalidInput, "the recording has already ended"),
        }
    }

    /// Waits for both threads: capture ends first, then unwind, which alone writes the end of the file.
    fn join(&mut self) -> Result<(Summary, W), Error> {
        let Some(threads) = self.threads.take() else {
            return Err(Error::new(ErrorKind::InvalidInput, "the recording has already ended"));
        };
        let panicked = |name| Error::new(ErrorKind::Io, format!("the {name} thread panicked"));
        let captured = threads.capture.join().unwrap_or_else(|_| Err(panicked("capture")));
        let ended = threads.unwind.join().map_err(|_| panicked("unwind"))?;
        self.latest = ended.summary.clone();
        // When unwinding fails, capture only follows: its error is the later one.
        match (ended.error, captured) {
            (Some(error), Err(later)) => Err(error.followed_by(&later)),
            (Some(error), Ok(())) | (None, Err(error)) => Err(error),
            (None, Ok(())) => match ended.out {
                Some(out) => Ok((ended.summary, out)),
                None => Err(Error::new(ErrorKind::Io, "the output was lost")),
            },
        }
    }
}

impl<W: Write + Send + 'static> Drop for Recorder<W> {
    fn drop(&mut self) {
        if self.threads.is_some() {
            self.send(Command::Abort);
            // Best effort: nobody is left to be told.
            let _ = self.join();
        }
    }
}
