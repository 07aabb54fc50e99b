//! Signals that end a recording, and that tell of the launched program's end.

use crate::failure::{Failure, RECORDER_FAILED};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::exfiltrator::WithOrigin;
use signal_hook::iterator::{Handle, SignalsInfo};
use signal_hook::low_level::siginfo::Cause;
use stackpulse_record::Interrupter;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

/// A SIGINT this soon after the first is taken for the same one: timeout(1) sends it to the process and to its group.
const SAME: Duration = Duration::from_millis(300);

/// The signals that finish the file, as a thread of their own takes them; a second SIGINT leaves at once.
pub(crate) struct EndSignals {
    told: Receiver<Notice>,
    interrupters: Sender<Interrupter>,
    handle: Handle,
}

/// What the thread tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Notice {
    /// A signal asks for the end.
    End(EndSignal),
    /// The state of a child has changed.
    Child,
}

/// A signal that asked for the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EndSignal {
    /// Its number.
    pub(crate) number: i32,
    /// Whether the terminal sent it, so that the launched program got it too.
    pub(crate) from_terminal: bool,
}

impl EndSignals {
    /// Takes SIGINT, SIGTERM and SIGHUP over; SIGHUP not where it is ignored, as nohup(1) has it.
    pub(crate) fn take_over() -> Result<Self, Failure> {
        let taken = [SIGINT, SIGTERM, SIGHUP].into_iter();
        let taken = taken.filter(|&signal| signal != SIGHUP || !is_ignored(signal));
        let signals = SignalsInfo::<WithOrigin>::new(taken).map_err(|error| failed(&error))?;
        let handle = signals.handle();
        let (tell, told) = channel();
        let (interrupters, new_interrupters) = channel();
        let listener = Listener { tell, interrupters: new_interrupters };
        let thread = std::thread::Builder::new().name("sp-signals".to_owned());
        thread.spawn(move || listener.listen(signals)).map_err(|error| failed(&error))?;
        Ok(Self { told, interrupters, handle })
    }

    /// Signals end the polls of this recorder from now on; those that came before are [pending](Self::pending).
    pub(crate) fn interrupt(&self, interrupter: Interrupter) {
        // The thread runs as long as this is there.
        let _ = self.interrupters.send(interrupter);
    }

    /// Tells of children as well from now on.
    pub(crate) fn watch_children(&self) -> Result<(), Failure> {
        self.handle.add_signal(SIGCHLD).map_err(|error| failed(&error))
    }

    /// Returns a signal that has come since the last call, if any; never waits.
    pub(crate) fn pending(&mut self) -> Option<EndSignal> {
        self.told.try_iter().find_map(|notice| match notice {
            Notice::End(signal) => Some(signal),
            Notice::Child => None,
        })
    }

    /// Waits for a signal, or until a child's state changes; `None` when the time is over.
    pub(crate) fn wait(&mut self, timeout: Duration) -> Option<Notice> {
        self.told.recv_timeout(timeout).ok()
    }
}

impl Drop for EndSignals {
    fn drop(&mut self) {
        self.handle.close();
    }
}

/// What the thread has.
struct Listener {
    tell: Sender<Notice>,
    interrupters: Receiver<Interrupter>,
}

impl Listener {
    fn listen(self, mut signals: SignalsInfo<WithOrigin>) {
        let mut interrupter: Option<Interrupter> = None;
        let mut first_interrupt: Option<Instant> = None;
        for origin in signals.forever() {
            let number = origin.signal;
            let is_interrupt = number == SIGINT;
            if is_interrupt && first_interrupt.is_some_and(|first| first.elapsed() > SAME) {
                std::process::exit(128 + SIGINT);
            }
            if is_interrupt {
                first_interrupt.get_or_insert_with(Instant::now);
            }
            let notice = match number {
                SIGCHLD => Notice::Child,
                _ => {
                    Notice::End(EndSignal { number, from_terminal: origin.cause == Cause::Kernel })
                }
            };
            // Who has ended needs not be told, but a second SIGINT still ends the process.
            let _ = self.tell.send(notice);
            interrupter = self.interrupters.try_iter().last().or(interrupter);
            if let Some(interrupter) = &interrupter {
                interrupter.interrupt();
            }
        }
    }
}

fn failed(error: &std::io::Error) -> Failure {
    let message = format!("take over the signals that end a recording: {error}");
    Failure::with_status(RECORDER_FAILED, message)
}

/// Whether a signal is ignored, as whoever started this process has it.
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask & 1 << (signal - 1) != 0)
}
