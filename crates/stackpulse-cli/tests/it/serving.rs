//! Who `view` serves, asked over plain sockets.

use crate::harness::{Scene, stackpulse};
use std::io::{BufRead, BufReader, Lines, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::{Duration, Instant};

/// A `view` that is running, and what it prints.
pub(crate) struct Viewed {
    process: Child,
    /// Address and port.
    pub(crate) host: String,
    /// The path of the invitation printed first.
    pub(crate) invitation: String,
    said: Lines<BufReader<ChildStderr>>,
}

impl Viewed {
    pub(crate) fn start(spool: &Path, prepare: impl FnOnce(&mut Command) -> &mut Command) -> Self {
        let mut view = stackpulse();
        view.arg("view").arg(spool).stdout(Stdio::piped()).stderr(Stdio::piped());
        prepare(&mut view);
        let mut process = view.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("http://").unwrap_or_else(|| panic!("{line:?}"));
        let (host, path) = address.split_once('/').unwrap();
        assert!(host.starts_with("127.0.0.1:"), "{line}");
        let said = BufReader::new(process.stderr.take().unwrap()).lines();
        Self { host: host.to_owned(), invitation: format!("/{path}"), process, said }
    }

    /// Without a browser.
    fn alone(spool: &Path) -> Self {
        Self::start(spool, |view| view.arg("--no-open"))
    }

    /// The answer to a request, sent as it stands.
    fn ask(&self, request: &[u8]) -> Answer {
        let mut stream = TcpStream::connect(&self.host).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream.write_all(request).unwrap();
        Answer::read(stream)
    }

    /// The answer to a browser that goes to a path with these fields.
    fn get(&self, path: &str, fields: &str) -> Answer {
        self.ask(format!("GET {path} HTTP/1.1\r\nHost: {}\r\n{fields}\r\n", self.host).as_bytes())
    }

    /// Takes up an invitation: the cookie, and the page's path.
    fn enter(&self, invitation: &str) -> (String, String) {
        let answer = self.get(invitation, "");
        assert_eq!(answer.status, 200, "{answer:?}");
        let cookie = answer.field("Set-Cookie").expect("a cookie");
        let (_, rest) = answer.body.split_once("href=\"/").expect("a link");
        let path = format!("/{}", rest.split('"').next().unwrap());
        assert!(cookie.contains("; HttpOnly") && cookie.contains("; SameSite=Strict"), "{cookie}");
        assert!(cookie.contains(&format!("; Path={path};")), "{cookie} for {path}");
        (cookie.split(';').next().unwrap().to_owned(), path)
    }

    /// The invitation that it prints next.
    fn next_invitation(&mut self) -> String {
        let said = self.said.by_ref().map(Result::unwrap);
        let address = said
            .filter_map(|line| {
                line.split_once("for another browser: http://").map(|(_, it)| it.to_owned())
            })
            .next()
            .expect("another invitation");
        address.strip_prefix(&self.host).expect("the same server").to_owned()
    }

    pub(crate) fn end(mut self, signal: &str) {
        let sent = Command::new("kill").args([signal, &self.process.id().to_string()]).status();
        assert!(sent.unwrap().success());
        let number = if signal == "-INT" { 2 } else { 15 };
        assert_eq!(self.process.wait().unwrap().signal(), Some(number));
    }
}

impl Drop for Viewed {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[derive(Debug)]
struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Answer {
    fn read(mut stream: TcpStream) -> Self {
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).expect("a whole answer");
        let text = String::from_utf8(bytes).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{text:?}"));
        let status = head.strip_prefix("HTTP/1.1 ").and_then(|rest| rest[..3].parse().ok());
        Self { status: status.unwrap(), head: head.to_owned(), body: body.to_owned() }
    }

    fn field(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }
}

fn recorded(scene: &Scene) -> PathBuf {
    scene.record(&["--no-kernel"], &scene.compile("shares.c", &[]), &["0.1"])
}

#[test]
fn an_address_opens_the_page_once() {
    let scene = Scene::new();
    let mut view = Viewed::alone(&recorded(&scene));
    let (cookie, path) = view.enter(&view.invitation);
    let again = view.get(&view.invitation, "");
    assert_eq!((again.status, again.field("Set-Cookie")), (404, None), "{again:?}");
    assert_ne!(view.invitation, path, "who saw the invitation does not know where the page is");

    let page = view.get(&path, &format!("Cookie: {cookie}\r\n"));
    assert_eq!((page.status, page.body.contains("leaf_sixty")), (200, true));
    assert_eq!(page.field("Cache-Control"), Some("no-store"));
    assert_eq!(
        view.get(&path, &format!("Cookie: x=y; {cookie}\r\n")).status,
        200,
        "as often as wanted"
    );
    for fields in ["", "Cookie: stackpulse=0123456789abcdef0123456789abcdef\r\n"] {
        let answer = view.get(&path, fields);
        assert_eq!((answer.status, answer.body.contains("leaf_sixty")), (403, false), "{fields}");
    }

    let next = view.next_invitation();
    let (other, _) = view.enter(&next);
    assert_eq!(view.get(&path, &format!("Cookie: {other}\r\n")).status, 200);
    assert_eq!(view.get(&next, "").status, 404);
    view.end("-TERM");
}

#[test]
fn other_names_sites_and_methods_are_refused() {
    let scene = Scene::new();
    let view = Viewed::alone(&recorded(&scene));
    let (cookie, path) = view.enter(&view.invitation);
    let port = view.host.rsplit(':').next().unwrap();
    let request = |method: &str, host: &str, more: &str| {
        let request = format!("{method} {path} HTTP/1.1\r\n{host}Cookie: {cookie}\r\n{more}\r\n");
        let answer = view.ask(request.as_bytes());
        assert!(answer.status == 200 || !answer.body.contains("leaf_sixty"), "{answer:?}");
        answer
    };
    let host = format!("Host: {}\r\n", view.host);
    for name in ["127.0.0.1", "localhost", "[::1]"] {
        assert_eq!(request("GET", &format!("Host: {name}:{port}\r\n"), "").status, 200, "{name}");
    }
    // A name of another site may lead here: its pages would be let to read the answer.
    for foreign in ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "10.0.0.1"]
    {
        let answer = request("GET", &format!("Host: {foreign}:{port}\r\n"), "");
        assert_eq!(answer.status, 421, "{foreign}");
    }
    assert_eq!(request("GET", "", "").status, 400, "no name at all");
    assert_eq!(request("GET", &host, &host).status, 400, "two names");
    assert_eq!(request("GET", &host, "Origin: http://evil.example\r\n").status, 403);
    assert_eq!(request("GET", &host, "Sec-Fetch-Dest: iframe\r\n").status, 403);
    for method in ["POST", "PUT", "DELETE", "OPTIONS", "CONNECT", "X"] {
        let answer = request(method, &host, "");
        assert_eq!((answer.status, answer.field("Allow")), (405, Some("GET, HEAD")), "{method}");
    }
    let (head, get) = (request("HEAD", &host, ""), request("GET", &host, ""));
    assert_eq!((head.status, head.body.as_str()), (200, ""));
    assert_eq!(head.field("Content-Length"), Some(&*get.body.len().to_string()));
}

#[test]
fn what_is_no_request_has_its_status() {
    let scene = Scene::new();
    let view = Viewed::alone(&recorded(&scene));
    let cases: [(&[u8], u16); 6] = [
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400),
        (b"GET\r\n\r\n", 400),
        (b"GET / HTTP/3.0\r\n\r\n", 505),
        (&[b"GET / HTTP/1.1\r\nX: ".as_slice(), &[b'x'; 100 << 10], b"\r\n\r\n"].concat(), 431),
        (&[b"GET / HTTP/1.1\r\n".as_slice(), &b"X: y\r\n".repeat(1000), b"\r\n"].concat(), 431),
        (&[b"GET /".as_slice(), &[b'x'; 100 << 10]].concat(), 431),
    ];
    for (request, status) in cases {
        let answer = view.ask(request);
        assert_eq!(
            answer.status,
            status,
            "{:?}",
            String::from_utf8_lossy(&request[..20.min(request.len())])
        );
    }
    let answer = view.get("/", "");
    assert_eq!(
        (answer.status, answer.field("Content-Type")),
        (404, Some("text/plain; charset=utf-8"))
    );
}

#[test]
fn silent_clients_keep_nobody_waiting() {
    let scene = Scene::new();
    let view = Viewed::alone(&recorded(&scene));
    // More than are served at once: some are silent, others stop in the middle.
    let silent: Vec<TcpStream> = (0..300)
        .map(|at| {
            let mut stream = TcpStream::connect(&view.host).unwrap();
            if at % 2 == 0 {
                stream.write_all(b"GET / HTTP/1.1\r\nHost: 127").unwrap();
            }
            stream
        })
        .collect();
    let (cookie, path) = view.enter(&view.invitation);
    let threads = std::fs::read_dir(format!("/proc/{}/task", view.process.id())).unwrap().count();
    assert!(threads < 80, "{threads} threads");
    assert_eq!(view.get(&path, &format!("Cookie: {cookie}\r\n")).status, 200);
    // The last of them was not sent away for another: it is told that it took too long.
    let last = silent.into_iter().last().unwrap();
    let began = Instant::now();
    assert_eq!(Answer::read(last).status, 408);
    assert!(began.elapsed() < Duration::from_secs(60));
}

#[test]
fn clients_that_drip_or_leave_are_no_harm() {
    let scene = Scene::new();
    let view = Viewed::alone(&recorded(&scene));
    let mut drip = TcpStream::connect(&view.host).unwrap();
    let dripping = std::thread::spawn(move || {
        // One byte after another, each in good time: the head as a whole is late.
        for byte in std::iter::repeat_n(b'x', 10_000) {
            if drip.write_all(&[byte]).is_err() {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("served for ever");
    });
    for _ in 0..100 {
        let stream = TcpStream::connect(&view.host).unwrap();
        (&stream).write_all(b"GET / HTTP/1.1\r\n").unwrap();
        stream.shutdown(Shutdown::Both).unwrap();
    }
    assert_eq!(view.get("/", "").status, 404);
    dripping.join().unwrap();
    assert_eq!(view.get("/", "").status, 404);
}

/// A stand-in for the desktop's way to start a browser: keeps what it was started with, and the file's text.
fn browser(scene: &Scene) -> PathBuf {
    let directory = scene.path("bin");
    std::fs::create_dir(&directory).unwrap();
    let opener = directory.join("xdg-open");
    let script = format!(
        "#!/bin/sh\nstat -c %a \"$1\" \"${{1%/*}}\" > {0}/modes\ncp \"$1\" {0}/text\nprintf '%s\\n' \"$*\" > {0}/new\nmv {0}/new {0}/arguments\n",
        directory.display()
    );
    std::fs::write(&opener, script).unwrap();
    std::fs::set_permissions(&opener, std::fs::Permissions::from_mode(0o755)).unwrap();
    directory
}

#[test]
fn the_browser_is_started_with_a_file_that_only_its_user_can_read() {
    let scene = Scene::new();
    let directory = browser(&scene);
    let spool = recorded(&scene);
    for signal in ["-TERM", "-INT"] {
        let _ = std::fs::remove_file(directory.join("arguments"));
        let view = Viewed::start(&spool, |view| {
            let path = std::env::var("PATH").unwrap();
            view.env("PATH", format!("{}:{path}", directory.display()));
            view.env("XDG_RUNTIME_DIR", scene.path("")).current_dir("/")
        });
        let until = Instant::now() + Duration::from_secs(60);
        let arguments = loop {
            match std::fs::read_to_string(directory.join("arguments")) {
                Ok(arguments) => break arguments,
                Err(error) => assert!(Instant::now() < until, "{error}"),
            }
            std::thread::yield_now();
        };
        let kept = |name: &str| std::fs::read_to_string(directory.join(name)).unwrap();
        assert_eq!(kept("modes"), "600\n700\n");
        let file = PathBuf::from(arguments.trim());
        let text = kept("text");
        let (_, rest) = text.split_once(&format!("url=http://{}", view.host)).expect("the way");
        let invitation = rest.split('"').next().unwrap();
        let secret = invitation.trim_matches('/');
        assert!(secret.len() == 32 && !arguments.contains(secret), "{arguments} leads to {secret}");
        if signal == "-TERM" {
            view.enter(invitation);
            assert!(!file.exists(), "gone once it was used");
            view.enter(&view.invitation);
            view.end(signal);
        } else {
            assert!(file.exists());
            view.end(signal);
            assert!(!file.parent().unwrap().exists(), "gone with the server");
        }
    }
}

#[test]
fn without_a_browser_the_page_is_served_all_the_same() {
    let scene = Scene::new();
    let directory = browser(&scene);
    std::fs::write(directory.join("xdg-open"), "#!/bin/sh\nexit 3\n").unwrap();
    let spool = recorded(&scene);
    let told = [
        ("started no browser", directory.as_path()),
        ("cannot run xdg-open", Path::new("/nowhere")),
    ];
    for (words, path) in told {
        let mut view = Viewed::start(&spool, |view| view.env("PATH", path));
        let line = view.said.by_ref().map(Result::unwrap).find(|line| line.contains(words));
        assert!(line.is_some_and(|line| line.contains("open the address above")), "{words}");
        view.enter(&view.invitation);
    }
}
