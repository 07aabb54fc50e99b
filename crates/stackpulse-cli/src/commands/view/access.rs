//! Who is served: who was invited, and shows what they were given then.
//!
//! An invitation is an address with a secret in it. Addresses get known: as arguments of a browser they are shown to every user of
//! the machine. So an invitation is good for one visit; that visit is given a cookie, and the page is served to who shows it.
//! The browser that this command starts is not told an address at all (see [`super::browser`]).
//!
//! Cookies do not know ports: what is set here would be sent to any server of this machine. It is bound to the page's path,
//! which no other server knows, and a page of another site cannot have it sent (`SameSite=Strict`).
//!
//! A name that leads to this machine by DNS only is refused: a page of that name could read what is served under it.

use super::answer::Refusal;
use super::request::{Method, Request};

/// What is served, and the secrets that it takes.
#[derive(Debug)]
pub(super) struct Access {
    /// By which names and port this server may be called.
    authorities: Vec<String>,
    page_path: String,
    cookie_value: String,
    /// Paths that are good for one visit.
    invitations: Vec<String>,
}

/// What to answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The page.
    Page,
    /// The cookie; the invitation is used up.
    Welcome {
        /// Its path.
        invitation: String,
    },
    /// As `Welcome`, to who only asks what there would be.
    WouldWelcome,
    /// Neither.
    Refused(Refusal),
}

impl Access {
    /// `page` and `cookie` are secrets.
    pub(super) fn new(port: u16, page: &str, cookie: &str) -> Self {
        let names = ["127.0.0.1", "localhost", "[::1]"];
        let mut authorities: Vec<String> =
            names.iter().map(|name| format!("{name}:{port}")).collect();
        if port == 80 {
            authorities.extend(names.map(str::to_owned));
        }
        Self {
            authorities,
            page_path: format!("/{page}/"),
            cookie_value: cookie.to_owned(),
            invitations: Vec::new(),
        }
    }

    /// Makes an invitation of a secret and returns its path.
    pub(super) fn invite(&mut self, secret: &str) -> String {
        let path = format!("/{secret}/");
        self.invitations.push(path.clone());
        path
    }

    /// Where the page is.
    pub(super) fn page_path(&self) -> &str {
        &self.page_path
    }

    /// What a `Set-Cookie` field says to who was invited.
    pub(super) fn cookie(&self) -> String {
        format!(
            "stackpulse={}; Path={}; HttpOnly; SameSite=Strict",
            self.cookie_value, self.page_path
        )
    }

    /// Decides about a request, and uses up the invitation that it came by.
    pub(super) fn judge(&mut self, request: &Request) -> Verdict {
        if let Some(refusal) = self.objection(request) {
            return Verdict::Refused(refusal);
        }
        if is_same(request.path(), &self.page_path) {
            let has_cookie =
                request.cookies("stackpulse").any(|it| is_same(it, &self.cookie_value));
            return if has_cookie { Verdict::Page } else { Verdict::Refused(Refusal::NotInvited) };
        }
        let Some(at) = self.invitations.iter().position(|it| is_same(it, request.path())) else {
            return Verdict::Refused(Refusal::NotFound);
        };
        if request.is_ahead_of_need() {
            return Verdict::Refused(Refusal::NotYet);
        }
        match request.method {
            Method::Head => Verdict::WouldWelcome,
            _ => Verdict::Welcome { invitation: self.invitations.swap_remove(at) },
        }
    }

    /// What is wrong with a request, whatever it asks for.
    fn objection(&self, request: &Request) -> Option<Refusal> {
        if request.method == Method::Other {
            return Some(Refusal::Method);
        }
        let is_ours =
            |authority: &str| self.authorities.iter().any(|it| it.eq_ignore_ascii_case(authority));
        match request.authority() {
            None => return Some(Refusal::BadRequest),
            Some(authority) if !is_ours(authority) => return Some(Refusal::Misdirected),
            Some(_) => {}
        }
        let is_foreign = |origin: &str| !origin.strip_prefix("http://").is_some_and(is_ours);
        // The page is looked at, not embedded in another or fetched by it.
        let is_part = |destination: &str| destination != "document";
        (request.values("origin").any(is_foreign) || request.values("sec-fetch-dest").any(is_part))
            .then_some(Refusal::Foreign)
    }
}

/// Compares in a time that does not tell where two words differ.
fn is_same(one: &str, other: &str) -> bool {
    one.len() == other.len()
        && one.bytes().zip(other.bytes()).fold(0, |all, (a, b)| all | (a ^ b)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access() -> Access {
        let mut access = Access::new(8080, "page", "cookie");
        access.invite("once");
        access
    }

    fn request(line: &str, fields: &[&str]) -> Request {
        let host = if fields.iter().any(|field| field.starts_with("Host")) {
            ""
        } else {
            "Host: localhost:8080\r\n"
        };
        let fields: String = fields.iter().map(|field| format!("{field}\r\n")).collect();
        Request::parse(format!("{line} HTTP/1.1\r\n{host}{fields}\r\n").as_bytes())
            .unwrap()
            .unwrap()
    }

    #[test]
    fn an_invitation_is_good_for_one_visit() {
        let mut access = access();
        let visit = request("GET /once/", &[]);
        assert_eq!(access.judge(&request("HEAD /once/", &[])), Verdict::WouldWelcome);
        let early = request("GET /once/", &["Sec-Purpose: prefetch;prerender"]);
        assert_eq!(access.judge(&early), Verdict::Refused(Refusal::NotYet));
        assert_eq!(access.judge(&visit), Verdict::Welcome { invitation: "/once/".to_owned() });
        assert_eq!(access.judge(&visit), Verdict::Refused(Refusal::NotFound));
    }

    #[test]
    fn the_page_is_for_who_shows_the_cookie() {
        let mut access = access();
        for (field, verdict) in [
            ("Cookie: stackpulse=cookie", Verdict::Page),
            ("Cookie: a=b; stackpulse=cookie;c=d", Verdict::Page),
            ("Cookie: stackpulse=other; stackpulse=cookie", Verdict::Page),
            ("Cookie: stackpulse=cookies", Verdict::Refused(Refusal::NotInvited)),
            ("Cookie: stackpulse=cooki", Verdict::Refused(Refusal::NotInvited)),
            ("Cookie: xstackpulse=cookie", Verdict::Refused(Refusal::NotInvited)),
            ("X: y", Verdict::Refused(Refusal::NotInvited)),
        ] {
            assert_eq!(access.judge(&request("GET /page/", &[field])), verdict, "{field}");
        }
    }

    #[test]
    fn names_of_other_sites_are_refused() {
        let mut access = access();
        for (host, refusal) in [
            ("Host: evil.example:8080", Refusal::Misdirected),
            ("Host: 127.0.0.1", Refusal::Misdirected),
            ("Host: 127.0.0.1:8081", Refusal::Misdirected),
            ("Host: 127.0.0.1.evil.example:8080", Refusal::Misdirected),
            ("Host:", Refusal::Misdirected),
            ("Host: localhost:8080\r\nHost: localhost:8080", Refusal::BadRequest),
        ] {
            let answer = access.judge(&request("GET /page/", &["Cookie: stackpulse=cookie", host]));
            assert_eq!(answer, Verdict::Refused(refusal), "{host}");
        }
        for host in ["127.0.0.1:8080", "LocalHost:8080", "[::1]:8080"] {
            let fields = ["Cookie: stackpulse=cookie", &format!("Host: {host}")];
            assert_eq!(access.judge(&request("GET /page/", &fields)), Verdict::Page, "{host}");
        }
        let whole = request("GET http://evil.example/page/", &["Cookie: stackpulse=cookie"]);
        assert_eq!(access.judge(&whole), Verdict::Refused(Refusal::Misdirected));
    }

    #[test]
    fn requests_of_other_pages_are_refused() {
        let mut access = access();
        for field in [
            "Origin: https://evil.example",
            "Origin: null",
            "Sec-Fetch-Dest: iframe",
            "Sec-Fetch-Dest: empty",
        ] {
            let answer =
                access.judge(&request("GET /page/", &["Cookie: stackpulse=cookie", field]));
            assert_eq!(answer, Verdict::Refused(Refusal::Foreign), "{field}");
        }
        let own = [
            "Cookie: stackpulse=cookie",
            "Origin: http://127.0.0.1:8080",
            "Sec-Fetch-Dest: document",
        ];
        assert_eq!(access.judge(&request("GET /page/", &own)), Verdict::Page);
    }
}
