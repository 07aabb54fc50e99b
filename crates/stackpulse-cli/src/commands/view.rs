//! `view`: the page of `export -f html`, served to this machine's browser.

use crate::args::ViewArgs;
use crate::failure::Failure;
use crate::open;
use stackpulse_export::write_html;
use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::time::Duration;

/// What a browser may take to ask, or to take the next part of the answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// A request line that is longer is not one of ours.
const LONGEST_REQUEST: usize = 16 << 10;

pub(crate) fn run(args: &ViewArgs) -> Result<(), Failure> {
    let opened = open::profile_over_time(&args.file, &args.select)?;
    let mut page = Vec::new();
    write_html(&opened.profile, &mut page)?;
    drop(opened);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, args.port)).map_err(|error| {
        Failure::new(format!(
            "listen on port {} of this machine: {error}; choose another with --port",
            args.port
        ))
    })?;
    let token = token()?;
    let url = format!("http://{}/{token}/", listener.local_addr()?);
    writeln!(io::stdout(), "{url}")?;
    io::stdout().flush()?;
    // Standard error may be closed; the page is served all the same.
    let _ = writeln!(io::stderr(), "stackpulse: serving {} until Ctrl-C", args.file.display());
    if !args.no_open {
        open_browser(&url);
    }
    loop {
        // A browser that went away is no reason to stop serving the next.
        if let Ok((stream, _)) = listener.accept() {
            let _ = answer(stream, &token, &page);
        }
    }
}

/// A word that no other page or user can guess.
fn token() -> Result<String, Failure> {
    let mut bytes = [0; 16];
    File::open("/dev/urandom")
        .and_then(|mut file| file.read_exact(&mut bytes))
        .map_err(|error| Failure::new(format!("read a random number of /dev/urandom: {error}")))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn open_browser(url: &str) {
    let mut browser = Command::new("xdg-open");
    browser.arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    if browser.spawn().is_err() {
        let _ = writeln!(io::stderr(), "stackpulse: xdg-open is not here; open {url} in a browser");
    }
}

/// Answers one request: the page for the path with the token, nothing else.
fn answer(mut stream: TcpStream, token: &str, page: &[u8]) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let request = request(&mut stream)?;
    let mut words = request.split(|&byte| byte == b' ');
    let is_get = words.next() == Some(b"GET");
    let is_page = words.next() == Some(format!("/{token}/").as_bytes());
    let (status, body): (&str, &[u8]) = match (is_get, is_page) {
        (true, true) => ("200 OK", page),
        (true, false) => ("404 Not Found", b"not found"),
        (false, _) => ("405 Method Not Allowed", b"only GET"),
    };
    let kind = if is_get && is_page { "text/html" } else { "text/plain" };
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: {kind}; charset=utf-8\r\nContent-Length: {}\r\nCache-Control: no-store\r\n\
         Referrer-Policy: no-referrer\r\nX-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n",
        body.len()
    )?;
    stream.write_all(body)?;
    stream.flush()
}

/// Reads a request's head.
fn request(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let (mut head, mut part) = (Vec::new(), [0; 1024]);
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        let read = stream.read(&mut part)?;
        if read == 0 || head.len() > LONGEST_REQUEST {
            return Err(io::ErrorKind::InvalidData.into());
        }
        head.extend_from_slice(&part[..read]);
    }
    Ok(head)
}
