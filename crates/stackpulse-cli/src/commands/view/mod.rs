//! `view`: the page of `export -f html`, served to this machine's browser.
//!
//! Who is served is decided in [`access`]. The first thread alone decides; each client has a thread that reads its request and
//! writes the answer, so that a slow one delays nobody.

mod access;
mod answer;
mod browser;
mod clients;
mod ending;
mod request;

use crate::args::ViewArgs;
use crate::failure::Failure;
use crate::open;
use access::{Access, Verdict};
use answer::Answer;
use browser::Doorway;
use clients::{Clients, Event};
use stackpulse_export::write_html;
use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};

/// So many events may wait for the first thread.
const WAITING_EVENTS: usize = 64;

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
    let port = listener.local_addr()?.port();
    let access = Access::new(port, &secret()?, &secret()?);
    let (sender, events) = sync_channel(WAITING_EVENTS);
    ending::watch(sender.clone())?;
    let mut service = Service {
        access,
        page: page.into(),
        origin: format!("http://127.0.0.1:{port}"),
        doorway: None,
    };
    writeln!(io::stdout(), "{}", service.invitation()?)?;
    io::stdout().flush()?;
    say(&format!("serving {} until Ctrl-C", args.file.display()));
    if !args.no_open {
        service.open_browser()?;
    }
    let clients = Clients::accept_from(listener, sender)?;
    service.run(clients, &events)
}

/// What one `view` serves, and to whom.
struct Service {
    access: Access,
    page: Arc<[u8]>,
    /// Scheme, address and port.
    origin: String,
    /// The way the browser came in, until it has.
    doorway: Option<Doorway>,
}

impl Service {
    /// Serves until a signal asks for the end.
    fn run(mut self, mut clients: Clients, events: &Receiver<Event>) -> Result<(), Failure> {
        loop {
            match events.recv().map_err(|_| Failure::new("nobody accepts connections any more"))? {
                Event::Arrived(stream) => clients.take(stream),
                Event::Left(client) => clients.forget(client),
                Event::Asked { client, request, reply } => {
                    let verdict = self.access.judge(&request);
                    if verdict == Verdict::Page {
                        clients.keep(client);
                    }
                    // A client that went away meanwhile has no use for an answer.
                    let _ = reply.send(self.answer(verdict)?);
                }
                Event::Ended(signal) => {
                    drop(self.doorway.take());
                    signal_hook::low_level::emulate_default_handler(signal)?;
                    return Ok(());
                }
            }
        }
    }

    fn answer(&mut self, verdict: Verdict) -> Result<Answer, Failure> {
        Ok(match verdict {
            Verdict::Page => Answer::page(Arc::clone(&self.page)),
            Verdict::Refused(refusal) => Answer::refusal(refusal),
            Verdict::WouldWelcome => Answer::welcome(self.access.page_path(), None),
            Verdict::Welcome { invitation } => {
                match self.doorway.take_if(|doorway| doorway.leads_to(&invitation)) {
                    Some(doorway) => drop(doorway),
                    None => say(&format!("opened; for another browser: {}", self.invitation()?)),
                }
                Answer::welcome(self.access.page_path(), Some(self.access.cookie()))
            }
        })
    }

    /// An address that lets in one browser, once.
    fn invitation(&mut self) -> Result<String, Failure> {
        let path = self.access.invite(&secret()?);
        Ok(format!("{}{path}", self.origin))
    }

    fn open_browser(&mut self) -> Result<(), Failure> {
        let invitation = self.invitation()?;
        match Doorway::to(&invitation, &secret()?) {
            Ok(doorway) => {
                browser::open(doorway.file());
                self.doorway = Some(doorway);
            }
            Err(error) => {
                say(&format!("cannot start the browser: {error}; open the address above in it"));
            }
        }
        Ok(())
    }
}

/// Tells on standard error. It may be closed; the page is served all the same.
fn say(text: &str) {
    let _ = writeln!(io::stderr(), "stackpulse: {text}");
}

/// A word that no other page or user can guess: 128 random bits.
fn secret() -> Result<String, Failure> {
    let mut bytes = [0; 16];
    File::open("/dev/urandom")
        .and_then(|mut file| file.read_exact(&mut bytes))
        .map_err(|error| Failure::new(format!("read random bytes from /dev/urandom: {error}")))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
