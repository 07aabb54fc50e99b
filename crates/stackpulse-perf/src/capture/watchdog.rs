//! Stopping processes where ptrace is denied: by SIGSTOP, and a child that lets them go on should this process die.
//!
//! The kernel lets go of what is held by ptrace when its holder ends; nobody sends SIGCONT for one who was killed. So a shell reads
//! from a pipe the processes that are about to be stopped, and when the pipe closes without a last word, it sends the signal.

use super::{sys, tasks};
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Reads pids until the last word. Its own end of the pipe is closed by nothing but the end of who writes.
const SCRIPT: &str = "while read -r pid; do [ \"$pid\" = done ] && exit; all=\"$all $pid\"; done; \
                      [ -z \"$all\" ] || kill -CONT $all";

/// How often it is looked whether a process stands still, and how long that waits each time.
const STILL_ATTEMPTS: u32 = 200;
const STILL_INTERVAL: Duration = Duration::from_micros(50);

/// Processes that stand still by SIGSTOP; dropped, it lets them go on.
#[derive(Debug)]
pub(crate) struct Stopped {
    watchdog: Child,
    pids: Vec<u32>,
}

impl Stopped {
    /// Stops nothing yet. `None` if there is no shell: then nothing may be stopped.
    pub(crate) fn none() -> Option<Self> {
        let mut shell = Command::new("/bin/sh");
        // In a group of its own, it does not get what the terminal sends to this one.
        shell.args(["-c", SCRIPT]).process_group(0);
        shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        Some(Self { watchdog: shell.spawn().ok()?, pids: Vec::new() })
    }

    /// Stops a process, unless somebody has stopped it already, or traces it and would be told, or it is the watchdog.
    pub(crate) fn stop(&mut self, pid: u32) {
        if pid == self.watchdog.id()
            || self.pids.contains(&pid)
            || !tasks::may_be_stopped(pid)
            || !self.tell(&pid.to_string())
        {
            return;
        }
        self.pids.push(pid);
        if sys::kill(pid, libc::SIGSTOP).is_err() {
            return;
        }
        // One that does not get there in time is attached to while it still runs.
        for _ in 0..STILL_ATTEMPTS {
            if tasks::is_stopped(pid) {
                return;
            }
            std::thread::sleep(STILL_INTERVAL);
        }
    }

    /// Whether the shell was told.
    fn tell(&mut self, word: &str) -> bool {
        let input = self.watchdog.stdin.as_mut();
        input.is_some_and(|input| input.write_all(format!("{word}\n").as_bytes()).is_ok())
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        for &pid in &self.pids {
            // A stop that somebody else has sent meanwhile waits behind ours, and SIGCONT would take it away.
            if !tasks::has_pending_stop(pid) {
                // One that was killed meanwhile needs nothing more.
                let _ = sys::kill(pid, libc::SIGCONT);
            }
        }
        // A shell that is gone needs no word, and one that was told ends.
        self.tell("done");
        let _ = self.watchdog.wait();
    }
}
