//! Where text for people goes: through a pager on a terminal, plain elsewhere.

use std::env;
use std::ffi::OsStr;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::process::{Child, Command, Stdio};

/// How wide text is where no terminal says otherwise.
const PLAIN_WIDTH: usize = 100;

/// Standard output, or a pager on it.
pub(crate) struct Screen {
    out: Option<BufWriter<Box<dyn Write>>>,
    pager: Option<Child>,
    /// Characters a line may have.
    pub(crate) width: usize,
    /// Whether colours are wanted.
    pub(crate) is_coloured: bool,
}

impl Screen {
    /// Opens the screen; `pages` says whether a pager is wanted on a terminal.
    pub(crate) fn open(pages: bool) -> Self {
        let is_terminal = io::stdout().is_terminal();
        let colours = anstream::AutoStream::choice(&io::stdout());
        let mut screen = Self {
            out: None,
            pager: None,
            width: if is_terminal { terminal_width() } else { PLAIN_WIDTH },
            is_coloured: colours != anstream::ColorChoice::Never,
        };
        screen.pager = (pages && is_terminal).then(pager).flatten();
        let out: Box<dyn Write> = match screen.pager.as_mut().and_then(|pager| pager.stdin.take()) {
            Some(input) => Box::new(input),
            None => Box::new(io::stdout()),
        };
        screen.out = Some(BufWriter::with_capacity(1 << 16, out));
        screen
    }
}

impl Write for Screen {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.as_mut().map_or(Ok(bytes.len()), |out| out.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.as_mut().map_or(Ok(()), Write::flush)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // The pager sees the end of its input, and lives until its reader has seen enough.
        drop(self.out.take());
        if let Some(pager) = &mut self.pager {
            let _ = pager.wait();
        }
    }
}

/// Starts the pager that is asked for, else `less`; none if it is `cat` or nothing, or cannot be started.
fn pager() -> Option<Child> {
    let asked = ["STACKPULSE_PAGER", "PAGER"].into_iter().find_map(env::var_os);
    let line = asked.unwrap_or_else(|| "less".into());
    if line.is_empty() || line == "cat" || !is_installed(&line) {
        return None;
    }
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(line).stdin(Stdio::piped());
    if env::var_os("LESS").is_none() {
        // Quit if it fits, keep colours, leave the text on the screen.
        shell.env("LESS", "FRX");
    }
    shell.spawn().ok()
}

/// Whether the first word of a command line is a program: a pager that cannot be started would swallow the text.
fn is_installed(line: &OsStr) -> bool {
    let line = line.to_string_lossy();
    let program = line.split_whitespace().next().unwrap_or_default();
    let path = env::var_os("PATH").unwrap_or_default();
    program.contains('/')
        || env::split_paths(&path).any(|directory| directory.join(program).is_file())
}

fn terminal_width() -> usize {
    let asked = env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    asked
        .or_else(|| terminal_size::terminal_size().map(|(width, _)| usize::from(width.0)))
        .filter(|&width| width > 0)
        .unwrap_or(80)
}
