//! Clients: a thread each, and not more than a bounded number of them.

use super::answer::{Answer, Refusal};
use super::request::{Method, Request, Unread};
use crate::failure::Failure;
use std::io::{self, Read};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

/// So many are served at once.
const MOST: usize = 64;
/// What a client may take for the next part of its answer.
const PATIENCE: Duration = Duration::from_secs(30);
/// What a client that was answered may take to close, and how much more it may send meanwhile.
const GOODBYE: (Duration, usize) = (Duration::from_secs(1), 1 << 20);
/// How long to wait where a connection cannot be accepted, such as for want of descriptors.
const PAUSE: Duration = Duration::from_millis(50);

/// What the first thread is told.
#[derive(Debug)]
pub(super) enum Event {
    /// Somebody connected.
    Arrived(TcpStream),
    /// A client has asked, and waits for the answer.
    Asked { client: u64, request: Request, reply: SyncSender<Answer> },
    /// A client is gone.
    Left(u64),
    /// A signal asks for the end.
    Ended(i32),
}

/// Who is connected, in the order of their coming.
#[derive(Debug)]
pub(super) struct Clients {
    connected: Vec<Client>,
    next: u64,
    events: SyncSender<Event>,
}

#[derive(Debug)]
struct Client {
    number: u64,
    stream: TcpStream,
    /// Whether it is sent the page: it does not go for another.
    is_kept: bool,
}

impl Clients {
    /// Accepts connections for as long as the process lives.
    pub(super) fn accept_from(
        listener: TcpListener,
        events: SyncSender<Event>,
    ) -> Result<Self, Failure> {
        let arrivals = events.clone();
        start("view-accept", move || {
            loop {
                match listener.accept() {
                    Ok((stream, _)) => {
                        if arrivals.send(Event::Arrived(stream)).is_err() {
                            return;
                        }
                    }
                    Err(_) => thread::sleep(PAUSE),
                }
            }
        })
        .map_err(|error| Failure::new(format!("start a thread: {error}")))?;
        Ok(Self { connected: Vec::new(), next: 0, events })
    }

    /// Hears a client out. Where there are too many, the oldest that has not been granted anything goes for it.
    pub(super) fn take(&mut self, stream: TcpStream) {
        if self.connected.len() >= MOST {
            let Some(oldest) = self.connected.iter().position(|client| !client.is_kept) else {
                return turn_away(&stream);
            };
            let _ = self.connected.remove(oldest).stream.shutdown(Shutdown::Both);
        }
        let (number, events) = (self.next, self.events.clone());
        let Ok(same) = stream.try_clone() else { return turn_away(&stream) };
        let thread = start("view-client", move || {
            // A browser that went away is no reason to stop serving the next.
            let _ = serve(&same, number, &events);
            let _ = events.send(Event::Left(number));
        });
        if thread.is_err() {
            return turn_away(&stream);
        }
        self.next += 1;
        self.connected.push(Client { number, stream, is_kept: false });
    }

    /// Lets a client have its answer whole.
    pub(super) fn keep(&mut self, number: u64) {
        self.connected
            .iter_mut()
            .filter(|client| client.number == number)
            .for_each(|client| client.is_kept = true);
    }

    /// Takes note that a client is gone.
    pub(super) fn forget(&mut self, number: u64) {
        self.connected.retain(|client| client.number != number);
    }
}

fn start(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    thread::Builder::new().name(name.to_owned()).stack_size(256 << 10).spawn(work).map(drop)
}

/// Answers without a thread: so little fits what the kernel keeps for a connection.
fn turn_away(stream: &TcpStream) {
    let _ = stream.set_nonblocking(true);
    let _ = Answer::refusal(Refusal::Busy).write(Method::Get, stream);
}

/// One request and its answer.
fn serve(stream: &TcpStream, client: u64, events: &SyncSender<Event>) -> io::Result<()> {
    stream.set_write_timeout(Some(PATIENCE))?;
    let gone = || io::Error::from(io::ErrorKind::ConnectionAborted);
    let (method, answer) = match Request::read(stream) {
        Ok(request) => {
            let (reply, answer) = sync_channel(1);
            let method = request.method;
            events.send(Event::Asked { client, request, reply }).map_err(|_| gone())?;
            (method, answer.recv().map_err(|_| gone())?)
        }
        Err(Unread::Refused(refusal)) => (Method::Get, Answer::refusal(refusal)),
        Err(Unread::Gone) => return Err(gone()),
    };
    answer.write(method, stream)?;
    part(stream)
}

/// Lets the client read the answer before the connection ends: closed on what it still sends, it would be reset, answer and all.
fn part(mut stream: &TcpStream) -> io::Result<()> {
    stream.shutdown(Shutdown::Write)?;
    let (patience, mut left_bytes) = GOODBYE;
    let until = Instant::now() + patience;
    let mut rest = [0; 4096];
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() || left_bytes == 0 {
            return Ok(());
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut rest)? {
            0 => return Ok(()),
            read => left_bytes = left_bytes.saturating_sub(read),
        }
    }
}
