//! The head of a request: read within a time and a size.

use super::answer::Refusal;
use std::io::{self, Read};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// What a client may take to send the head of its request.
const PATIENCE: Duration = Duration::from_secs(5);
/// A longer head is not one of a browser's.
const LONGEST_BYTES: usize = 16 << 10;
/// Nor is one of more fields.
const MOST_FIELDS: usize = 64;

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Method {
    Get,
    Head,
    /// Not done here.
    Other,
}

/// A request's head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) method: Method,
    target: String,
    /// Names in small letters, and values.
    fields: Vec<(String, String)>,
}

/// Why there is no request.
#[derive(Debug)]
pub(super) enum Unread {
    /// The client is to be told.
    Refused(Refusal),
    /// The client went away.
    Gone,
}

impl Request {
    /// Reads a head.
    pub(super) fn read(mut stream: &TcpStream) -> Result<Self, Unread> {
        let until = Instant::now() + PATIENCE;
        let (mut head, mut part) = (Vec::new(), [0; 4096]);
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(Unread::Refused(Refusal::TooSlow));
            }
            stream.set_read_timeout(Some(left)).map_err(|_| Unread::Gone)?;
            match stream.read(&mut part) {
                Ok(0) => return Err(Unread::Gone),
                Ok(read) => head.extend_from_slice(&part[..read]),
                Err(error) if is_for_now(&error) => continue,
                Err(_) => return Err(Unread::Gone),
            }
            match Self::parse(&head) {
                Ok(None) if head.len() > LONGEST_BYTES => {
                    return Err(Unread::Refused(Refusal::TooLarge));
                }
                Ok(None) => {}
                Ok(Some(request)) => return Ok(request),
                Err(refusal) => return Err(Unread::Refused(refusal)),
            }
        }
    }

    /// Returns the request, if its head is whole.
    pub(super) fn parse(head: &[u8]) -> Result<Option<Self>, Refusal> {
        let mut fields = [httparse::EMPTY_HEADER; MOST_FIELDS];
        let mut parsed = httparse::Request::new(&mut fields);
        match parsed.parse(head) {
            Ok(httparse::Status::Partial) => return Ok(None),
            Ok(httparse::Status::Complete(length)) if length > LONGEST_BYTES => {
                return Err(Refusal::TooLarge);
            }
            Ok(httparse::Status::Complete(_)) => {}
            Err(httparse::Error::TooManyHeaders) => return Err(Refusal::TooLarge),
            Err(httparse::Error::Version) => return Err(Refusal::Version),
            Err(_) => return Err(Refusal::BadRequest),
        }
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
        Ok(Some(Self {
            method: match parsed.method {
                Some("GET") => Method::Get,
                Some("HEAD") => Method::Head,
                _ => Method::Other,
            },
            target: parsed.path.unwrap_or_default().to_owned(),
            fields: parsed
                .headers
                .iter()
                .map(|it| (it.name.to_ascii_lowercase(), text(it.value)))
                .collect(),
        }))
    }

    /// Scheme, name and port, where the target says them, and the rest of it.
    fn target(&self) -> (Option<&str>, &str) {
        let Some(rest) = self.target.strip_prefix("http://") else { return (None, &self.target) };
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        (Some(&rest[..end]), &rest[end..])
    }

    /// The path, without a query.
    pub(super) fn path(&self) -> &str {
        let (_, path) = self.target();
        path.split('?').next().unwrap_or_default()
    }

    /// By which name and port the server is called; `None` if that is said not at all, or more than once.
    pub(super) fn authority(&self) -> Option<&str> {
        let mut hosts = self.values("host");
        let host = hosts.next().filter(|_| hosts.next().is_none())?;
        Some(self.target().0.unwrap_or(host))
    }

    /// The values of a field, which may stand there several times; its name in small letters.
    pub(super) fn values(&self, name: &'static str) -> impl Iterator<Item = &str> {
        self.fields.iter().filter(move |(it, _)| it == name).map(|(_, value)| value.as_str())
    }

    /// The values of cookies of this name.
    pub(super) fn cookies(&self, name: &'static str) -> impl Iterator<Item = &str> {
        self.values("cookie")
            .flat_map(|value| value.split(';'))
            .filter_map(|pair| pair.trim().split_once('='))
            .filter_map(move |(it, value)| (it == name).then_some(value))
    }

    /// Whether a browser asks because the user might.
    pub(super) fn is_ahead_of_need(&self) -> bool {
        ["sec-purpose", "purpose", "x-moz"]
            .iter()
            .flat_map(|name| self.values(name))
            .any(|value| value.contains("prefetch") || value.contains("prerender"))
    }
}

fn is_for_now(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted
    )
}
