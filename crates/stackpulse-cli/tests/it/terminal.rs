//! A terminal of a given size, with keys that are typed and a screen that is read: tmux.

use crate::harness::stdout;
use std::process::Command;
use std::time::{Duration, Instant};

/// How long something may take to be seen; a machine under load is slow.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server of its own, ended with the test.
pub(crate) struct Terminal(tempfile::TempDir);

impl Terminal {
    pub(crate) fn new(columns: u32, rows: u32) -> Self {
        let terminal = Self(tempfile::tempdir().expect("make a directory"));
        let (columns, rows) = (columns.to_string(), rows.to_string());
        terminal.tmux(&[
            "-f",
            "/dev/null",
            "new-session",
            "-d",
            "-x",
            &columns,
            "-y",
            &rows,
            "env",
            "-u",
            "PAGER",
            "PS1=ready ",
            "sh",
        ]);
        terminal.wait_for(|screen| screen.contains("ready"));
        terminal
    }

    fn tmux(&self, words: &[&str]) -> String {
        let output = Command::new("tmux")
            .arg("-S")
            .arg(self.0.path().join("socket"))
            .args(words)
            .env_remove("TMUX")
            .output()
            .expect("run tmux");
        stdout(&output)
    }

    /// Types a line.
    pub(crate) fn run(&self, line: &str) {
        self.tmux(&["send-keys", "-l", line]);
        self.keys(&["Enter"]);
    }

    /// Presses keys, by tmux's names.
    pub(crate) fn keys(&self, keys: &[&str]) {
        let mut words = vec!["send-keys"];
        words.extend(keys);
        self.tmux(&words);
    }

    /// What is on the screen.
    pub(crate) fn screen(&self) -> String {
        self.tmux(&["capture-pane", "-p"])
    }

    /// Waits until the screen is so, and returns it.
    pub(crate) fn wait_for(&self, is_so: impl Fn(&str) -> bool) -> String {
        let since = Instant::now();
        loop {
            let screen = self.screen();
            if is_so(&screen) {
                return screen;
            }
            assert!(since.elapsed() < PATIENCE, "the screen stays:\n{screen}");
            std::thread::yield_now();
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
    }
}
