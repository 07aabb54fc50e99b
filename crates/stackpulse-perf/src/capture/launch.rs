//! Starting the program to record: suspended before its exec, so that nothing of it is missed.
#![allow(unsafe_code)]

use super::sys;
use std::ffi::OsString;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus};
use std::thread::JoinHandle;
use thiserror::Error;

/// What to start, and how.
#[derive(Clone, Debug, Default)]
pub struct Launch {
    /// The program: looked for in the child's `PATH` if it has no slash.
    pub program: OsString,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// Environment variables to set.
    pub environment: Vec<(OsString, OsString)>,
    /// Where to start it.
    pub directory: Option<PathBuf>,
    /// Whether its standard output goes to our standard error, because ours carries something else.
    pub output_to_stderr: bool,
}

/// Why a program could not be started.
#[derive(Debug, Error)]
#[error("{}: {source}", program.display())]
pub struct LaunchError {
    /// The program.
    pub program: OsString,
    /// The answer of fork(2) or execve(2).
    pub source: io::Error,
}

/// A child that waits just before its exec. Dropped, it ends without having run.
#[derive(Debug)]
pub struct SuspendedProcess {
    program: OsString,
    pid: u32,
    /// Written to, the child goes on; closed, it ends.
    go: Option<PipeWriter>,
    /// Returns once the child has gone through its exec, or ended.
    spawner: Option<JoinHandle<io::Result<Child>>>,
}

/// A program that was started.
#[derive(Debug)]
pub struct LaunchedProcess(Child);

impl SuspendedProcess {
    /// Makes the child. Standard input, output and error, process group and terminal are inherited; SIGPIPE has its
    /// default action.
    ///
    /// # Errors
    ///
    /// When no process can be made.
    pub fn launch(launch: &Launch) -> Result<Self, LaunchError> {
        let failed = |source| LaunchError { program: launch.program.clone(), source };
        let (pid_reader, pid_writer) = io::pipe().map_err(failed)?;
        let (go_reader, go_writer) = io::pipe().map_err(failed)?;
        let mut command = Command::new(&launch.program);
        command.args(&launch.arguments).envs(launch.environment.iter().cloned());
        if let Some(directory) = &launch.directory {
            command.current_dir(directory);
        }
        if launch.output_to_stderr {
            command.stdout(io::stderr());
        }
        suspend_before_exec(&mut command, &pid_writer, &go_reader, &go_writer);
        // The call returns only after the exec, so it waits on a thread of its own.
        let spawner = std::thread::Builder::new()
            .name("sp-launch".to_owned())
            .spawn(move || {
                let spawned = command.spawn();
                drop((pid_writer, go_reader));
                spawned
            })
            .map_err(failed)?;
        let mut suspended = Self {
            program: launch.program.clone(),
            pid: 0,
            go: Some(go_writer),
            spawner: Some(spawner),
        };
        match read_pid(pid_reader) {
            Some(pid) => suspended.pid = pid,
            None => return Err(suspended.spawn_error()),
        }
        Ok(suspended)
    }

    /// Returns the child's pid.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Lets the child exec, and waits until it has.
    ///
    /// # Errors
    ///
    /// When the exec fails: its error, and the program.
    pub fn resume(mut self) -> Result<LaunchedProcess, LaunchError> {
        if let Some(mut go) = self.go.take() {
            // A child that has been killed meanwhile is told by the spawner.
            let _ = go.write_all(&[1]);
        }
        match self.spawner.take().map(JoinHandle::join) {
            Some(Ok(Ok(child))) => Ok(LaunchedProcess(child)),
            Some(Ok(Err(source))) => {
                Err(LaunchError { program: std::mem::take(&mut self.program), source })
            }
            _ => Err(self.spawn_error()),
        }
    }

    fn spawn_error(&mut self) -> LaunchError {
        self.go = None;
        let source = match self.spawner.take().map(JoinHandle::join) {
            Some(Ok(Err(error))) => error,
            _ => io::Error::other("the child ended before it could be started"),
        };
        LaunchError { program: self.program.clone(), source }
    }
}

impl Drop for SuspendedProcess {
    fn drop(&mut self) {
        self.go = None;
        if let Some(spawner) = self.spawner.take() {
            // The child sees the closed pipe and ends; what remains is reaped with the spawner.
            if let Ok(Ok(mut child)) = spawner.join() {
                let _ = child.kill();
                let _ = child.wait();
            }
        }
    }
}

impl LaunchedProcess {
    /// Returns the pid.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.0.id()
    }

    /// Waits for its end.
    ///
    /// # Errors
    ///
    /// Those of waitpid(2).
    pub fn wait(&mut self) -> io::Result<ExitStatus> {
        self.0.wait()
    }

    /// Returns its status if it has ended; never waits.
    ///
    /// # Errors
    ///
    /// Those of waitpid(2).
    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        self.0.try_wait()
    }

    /// Sends it a signal.
    ///
    /// # Errors
    ///
    /// Those of kill(2).
    pub fn signal(&self, signal: i32) -> io::Result<()> {
        sys::kill(self.pid(), signal)
    }
}

fn read_pid(mut reader: PipeReader) -> Option<u32> {
    let mut bytes = [0; 4];
    reader.read_exact(&mut bytes).ok()?;
    Some(u32::from_ne_bytes(bytes))
}

/// Makes the child tell its pid and wait, between fork and exec.
fn suspend_before_exec(
    command: &mut Command,
    pid: &PipeWriter,
    go: &PipeReader,
    go_writer: &PipeWriter,
) {
    let (pid, go, go_writer) = (pid.as_raw_fd(), go.as_raw_fd(), go_writer.as_raw_fd());
    let wait = move || {
        // The child's own copy of the writing end would keep the pipe open for ever.
        close(go_writer);
        write(pid, &std::process::id().to_ne_bytes())?;
        if read_one(go)? { Ok(()) } else { Err(io::Error::from_raw_os_error(libc::ECANCELED)) }
    };
    // SAFETY: the closure runs in the child between fork and exec, where only async-signal-safe calls are
    // allowed: it calls close, write, getpid and read, and allocates nothing (errors are bare numbers). The
    // descriptors were open at the fork: the parent keeps them until the spawn has returned.
    unsafe { command.pre_exec(wait) };
}

fn close(fd: RawFd) {
    // SAFETY: closes a descriptor of the forked child, which nothing in it uses.
    unsafe { libc::close(fd) };
}

fn write(fd: RawFd, bytes: &[u8]) -> io::Result<()> {
    // SAFETY: reads `bytes.len()` bytes of `bytes`. Four bytes go into a pipe in one piece (pipe(7)).
    let written = unsafe { libc::write(fd, bytes.as_ptr().cast(), bytes.len()) };
    if written < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Waits for a byte; `false` if the pipe was closed instead.
fn read_one(fd: RawFd) -> io::Result<bool> {
    let mut byte = 0u8;
    loop {
        // SAFETY: writes at most one byte into `byte`.
        let read = unsafe { libc::read(fd, (&raw mut byte).cast(), 1) };
        if read >= 0 {
            return Ok(read == 1);
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}
