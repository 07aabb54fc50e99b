//! The browser of the user's desktop, and how it is told where to go.
//!
//! What a program is started with can be read by every user of the machine. So the browser is not given the address but a file, which
//! leads on to it, and which nobody else can read: not even a user who is quicker than the browser learns the address.

use super::say;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

/// A file that leads to an address, alone in its directory; both are removed when it is dropped.
#[derive(Debug)]
pub(super) struct Doorway {
    directory: PathBuf,
    file: PathBuf,
    address: String,
}

impl Doorway {
    /// Makes the file in a directory of this name that is new, below where the user's running programs keep theirs.
    pub(super) fn to(address: &str, name: &str) -> io::Result<Self> {
        let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
        let parent = runtime.filter(|path| path.is_absolute() && path.is_dir());
        let directory =
            parent.unwrap_or_else(std::env::temp_dir).join(format!("stackpulse-{name}"));
        let failed = |what: &Path, error: io::Error| {
            io::Error::new(error.kind(), format!("create {}: {error}", what.display()))
        };
        DirBuilder::new()
            .mode(0o700)
            .create(&directory)
            .map_err(|error| failed(&directory, error))?;
        let file = directory.join("open.html");
        let doorway = Self { directory, file, address: address.to_owned() };
        let mut opened = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&doorway.file)
            .map_err(|error| failed(&doorway.file, error))?;
        write!(
            opened,
            "<!DOCTYPE html><html lang=\"en\"><meta charset=\"utf-8\"><title>Stackpulse</title>\n\
             <meta name=\"referrer\" content=\"no-referrer\"><meta http-equiv=\"refresh\" content=\"0;url={address}\">\n\
             <a href=\"{address}\">to the profile</a></html>\n"
        )?;
        Ok(doorway)
    }

    /// The file.
    pub(super) fn file(&self) -> &Path {
        &self.file
    }

    /// Whether it leads to this path.
    pub(super) fn leads_to(&self, path: &str) -> bool {
        self.address.ends_with(path)
    }
}

impl Drop for Doorway {
    fn drop(&mut self) {
        // What is left of it leads nowhere once the server is gone.
        let _ = fs::remove_file(&self.file);
        let _ = fs::remove_dir(&self.directory);
    }
}

/// Starts the browser on a file, and says so where that fails.
pub(super) fn open(file: &Path) {
    let mut browser = Command::new("xdg-open");
    browser.arg(file).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    match browser.spawn() {
        Err(error) => {
            say(&format!("cannot run xdg-open: {error}; open the address above in a browser"));
        }
        Ok(mut started) => {
            let waits = thread::Builder::new().name("view-browser".to_owned()).spawn(move || {
                if !started.wait().is_ok_and(|status| status.success()) {
                    say("xdg-open started no browser; open the address above in one");
                }
            });
            // Without that thread the page is served all the same.
            drop(waits);
        }
    }
}
