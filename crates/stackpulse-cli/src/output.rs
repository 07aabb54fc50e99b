//! The file a recording goes into, and what was there before.

use crate::failure::{Failure, RECORDER_FAILED};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Stdout, Write};
use std::path::{Path, PathBuf};

/// Where a spool is written.
pub(crate) enum Output {
    /// A file.
    File(File),
    /// Standard output (`-o -`).
    Stdout(Stdout),
}

/// Puts back what was there, if the recording does not begin.
pub(crate) struct Undo {
    created: Option<PathBuf>,
    /// Where the file that was there has been moved.
    old: Option<PathBuf>,
}

impl Output {
    /// Makes the file; one that is there is kept as `FILE.old`, as perf does.
    pub(crate) fn create(path: &Path) -> Result<(Self, Undo), Failure> {
        if path == Path::new("-") {
            return Ok((Self::Stdout(io::stdout()), Undo { created: None, old: None }));
        }
        let mut old = None;
        if fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_file() && metadata.len() > 0)
        {
            let mut name = OsString::from(path);
            name.push(".old");
            let name = PathBuf::from(name);
            if fs::rename(path, &name).is_ok() {
                old = Some(name);
            }
        }
        let is_new = fs::symlink_metadata(path).is_err();
        let created = is_new.then(|| path.to_path_buf());
        let mut options = File::options();
        options.read(true).write(true);
        // A new file is made by this call or not at all: no link that appears meanwhile is followed.
        let options = if is_new { options.create_new(true) } else { options.truncate(true) };
        let file = options.open(path).inspect(|file| {
            if is_new {
                give_to_caller(file);
            }
        });
        let undo = Undo { created, old };
        match file {
            Ok(file) => Ok((Self::File(file), undo)),
            Err(error) => {
                undo.undo();
                let message = format!(
                    "create {}: {error}; name a file that can be written with -o FILE",
                    path.display()
                );
                Err(Failure::with_status(RECORDER_FAILED, message))
            }
        }
    }

    /// Returns the file, if it is one that can be added to.
    pub(crate) fn into_file(self) -> Option<File> {
        match self {
            Self::File(file) => {
                file.metadata().is_ok_and(|metadata| metadata.is_file()).then_some(file)
            }
            Self::Stdout(_) => None,
        }
    }
}

/// Under sudo a new file belongs to who called it, so that it can be read without them.
fn give_to_caller(file: &File) {
    let id = |name| std::env::var(name).ok().and_then(|id| id.parse::<u32>().ok());
    if let (Some(user), Some(group)) = (id("SUDO_UID"), id("SUDO_GID")) {
        // Only root may give files away; for others there is nothing to do.
        let _ = std::os::unix::fs::fchown(file, Some(user), Some(group));
    }
}

impl Undo {
    /// The recording has begun: nothing is put back.
    pub(crate) fn keep(self) {}

    pub(crate) fn undo(self) {
        // What cannot be put back is not worth a second error.
        if let Some(created) = &self.created {
            let _ = fs::remove_file(created);
            if let Some(old) = &self.old {
                let _ = fs::rename(old, created);
            }
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::File(file) => file.write(bytes),
            Self::Stdout(stdout) => stdout.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::File(file) => file.flush(),
            Self::Stdout(stdout) => stdout.flush(),
        }
    }
}
