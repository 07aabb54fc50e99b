//! What a client is answered.

use super::request::Method;
use std::io::{self, Write};
use std::sync::Arc;

/// Why a request is not granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// Not a request, or one without a name for the server.
    BadRequest,
    /// No cookie.
    NotInvited,
    /// Another site's page asks.
    Foreign,
    /// There is nothing, or no more.
    NotFound,
    /// Neither GET nor HEAD.
    Method,
    /// The head took too long.
    TooSlow,
    /// The server is called by a name that is not its own.
    Misdirected,
    /// The head is too long.
    TooLarge,
    /// An invitation is not for browsers that ask ahead.
    NotYet,
    /// Too many ask at once.
    Busy,
    /// Neither HTTP 1.0 nor 1.1.
    Version,
}

impl Refusal {
    /// The status, and what to tell people.
    fn status_and_text(self) -> (&'static str, &'static str) {
        match self {
            Self::BadRequest => ("400 Bad Request", "this is not a request that a browser makes"),
            Self::NotInvited => (
                "403 Forbidden",
                "this browser was not invited: open the address that `stackpulse view` printed last",
            ),
            Self::Foreign => ("403 Forbidden", "the page is not served to other pages"),
            Self::NotFound => (
                "404 Not Found",
                "nothing is here: each address that `stackpulse view` prints opens the page once, and the last one still does",
            ),
            Self::Method => ("405 Method Not Allowed", "only GET and HEAD are served"),
            Self::TooSlow => ("408 Request Timeout", "the request took too long"),
            Self::Misdirected => (
                "421 Misdirected Request",
                "served as 127.0.0.1 or localhost only, with the same port at both ends of a tunnel",
            ),
            Self::TooLarge => {
                ("431 Request Header Fields Too Large", "the request's head is too long")
            }
            Self::NotYet => ("503 Service Unavailable", "the page is served to who looks at it"),
            Self::Busy => ("503 Service Unavailable", "too many browsers ask at once; try again"),
            Self::Version => ("505 HTTP Version Not Supported", "only HTTP 1.0 and 1.1 are served"),
        }
    }
}

/// An answer.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    status: &'static str,
    kind: &'static str,
    /// More fields, each with its end of line.
    fields: String,
    body: Arc<[u8]>,
}

impl Answer {
    /// The page.
    pub(super) fn page(page: Arc<[u8]>) -> Self {
        // What the page may do it says itself.
        let fields = "Content-Security-Policy: frame-ancestors 'none'\r\n".to_owned();
        Self { status: "200 OK", kind: "text/html", fields, body: page }
    }

    /// Gives the cookie, and goes on to the page. That is not left to a redirection: it would belong to the visit that came from
    /// elsewhere, on which browsers send no strict cookie.
    pub(super) fn welcome(page_path: &str, cookie: Option<String>) -> Self {
        let cookie = cookie.map(|cookie| format!("Set-Cookie: {cookie}\r\n")).unwrap_or_default();
        let fields = format!(
            "{cookie}Content-Security-Policy: default-src 'none'; script-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'\r\n"
        );
        let body = format!(
            "<!DOCTYPE html><html lang=\"en\"><meta charset=\"utf-8\"><title>Stackpulse</title><link rel=\"icon\" href=\"data:,\">\n\
             <a href=\"{page_path}\">to the profile</a>\n\
             <script>location.replace(document.querySelector('a').href + location.hash)</script></html>\n"
        );
        Self { status: "200 OK", kind: "text/html", fields, body: body.into_bytes().into() }
    }

    /// Says no.
    pub(super) fn refusal(refusal: Refusal) -> Self {
        let (status, text) = refusal.status_and_text();
        let fields = match refusal {
            Refusal::Method => "Allow: GET, HEAD\r\n".to_owned(),
            Refusal::Busy => "Retry-After: 1\r\n".to_owned(),
            _ => String::new(),
        };
        Self { status, kind: "text/plain", fields, body: format!("{text}\n").into_bytes().into() }
    }

    /// Writes it in answer to a request by this method.
    pub(super) fn write(&self, method: Method, mut out: impl Write) -> io::Result<()> {
        let head = format!(
            "HTTP/1.1 {}\r\nContent-Type: {}; charset=utf-8\r\nContent-Length: {}\r\n{}Cache-Control: no-store\r\n\
             Referrer-Policy: no-referrer\r\nX-Content-Type-Options: nosniff\r\nX-Frame-Options: DENY\r\n\
             Cross-Origin-Resource-Policy: same-origin\r\nCross-Origin-Opener-Policy: same-origin\r\nConnection: close\r\n\r\n",
            self.status,
            self.kind,
            self.body.len(),
            self.fields,
        );
        out.write_all(head.as_bytes())?;
        if method != Method::Head {
            out.write_all(&self.body)?;
        }
        out.flush()
    }
}
