//! The page, in a real browser.

use super::{export, reported, shares};
use crate::harness::{Scene, has_tool, stackpulse, stderr, stdout};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};

/// The page's elements after it has run, as Chromium prints them. Anything the page complains of fails the test.
fn page(scene: &Scene, url: &str) -> String {
    let output = Command::new("chromium")
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--enable-logging=stderr",
            "--window-size=1200,800",
        ])
        .args(["--virtual-time-budget=10000", "--dump-dom"])
        .arg(format!("--user-data-dir={}", scene.path("browser").display()))
        .arg(url)
        .output()
        .expect("run chromium");
    assert!(output.status.success(), "{}", stderr(&output));
    let said = stderr(&output);
    let complaints: Vec<&str> = said.lines().filter(|line| line.contains("CONSOLE")).collect();
    assert!(complaints.is_empty(), "{complaints:?}");
    let dom = stdout(&output);
    // The data itself is not what is looked at.
    let (before, rest) = dom.split_once("<script type=\"application/json\"").expect("data");
    let dom = before.to_owned() + rest.split_once("</script>").expect("its end").1;
    assert!(dom.contains("data-ready=\"yes\""), "{dom}");
    dom
}

fn url(path: &Path, selected: &str) -> String {
    format!("file://{}#{selected}", path.display())
}

/// The text between the tags of the element with this id.
fn text<'a>(dom: &'a str, id: &str) -> &'a str {
    let (_, rest) = dom.split_once(&format!("id=\"{id}\"")).expect("the element");
    rest.split_once('>').unwrap().1.split_once('<').unwrap().0
}

#[test]
fn the_page_shows_searches_zooms_and_selects() {
    if !has_tool("chromium") {
        return;
    }
    let scene = Scene::new();
    let spool = shares(&scene);
    let file = export(&scene, &spool, "out.html", &[]);
    let all = crate::harness::info(&spool)["samples"].as_u64().unwrap();
    let reported = reported(&spool);
    let dom = page(&scene, &url(&file, ""));
    assert_eq!(text(&dom, "status"), format!("{all} of {all} samples"));
    let (own, total) = reported["leaf_sixty"];
    assert!(dom.contains(&format!("self {own}, total {total}")), "the table counts as the report");

    let dom = page(&scene, &url(&file, "search=leaf_sixty"));
    assert!(text(&dom, "status").contains(&format!("; {total} (")), "{}", text(&dom, "status"));

    let dom = page(&scene, &url(&file, "zoom=0.0.0"));
    assert!(dom.contains("data-zoom=\"") && !dom.contains("data-zoom=\"all\""), "zoomed");
    assert!(text(&dom, "detail").contains(" samples, "), "{}", text(&dom, "detail"));

    let dom = page(&scene, &url(&file, "function=middle_sixty"));
    let of_middle = format!("data-zoom-samples=\"{}\"", reported["middle_sixty"].1);
    assert!(dom.contains("data-zoom=\"middle_sixty\"") && dom.contains(&of_middle), "sandwich");

    let dom = page(&scene, &url(&file, "reverse=1&zoom=0"));
    assert!(dom.contains("data-zoom=\"leaf_sixty\""), "the hottest function is first");
    assert!(dom.contains(&format!("data-zoom-samples=\"{own}\"")));

    let halves = ["time=0-0.25", "time=0.25-1000"].map(|span| {
        let dom = page(&scene, &url(&file, span));
        text(&dom, "status").split(' ').next().unwrap().parse::<u64>().unwrap()
    });
    assert!(halves[0] > 0 && halves[1] > 0 && halves[0] + halves[1] == all, "{halves:?} of {all}");
}

#[test]
fn names_never_run_in_the_page() {
    if !has_tool("chromium") || !has_tool("objcopy") {
        return;
    }
    let scene = Scene::new();
    let program = scene.compile("shares.c", &["-g0"]);
    let name = "</script><script>document.title=1</script><img/src=x/onerror=alert(1)><!--";
    let renamed = Command::new("objcopy")
        .arg(format!("--redefine-sym=leaf_sixty={name}"))
        .arg(&program)
        .status()
        .unwrap();
    assert!(renamed.success());
    let spool = scene.record(&["--no-kernel"], &program, &["0.4"]);
    let file = export(&scene, &spool, "out.html", &[]);
    let dom = page(&scene, &url(&file, "reverse=1&zoom=0"));
    assert!(dom.contains("<title>shares</title>"), "the title is the page's own");
    assert!(!dom.contains("<img"), "the name made no element");
    assert!(dom.contains("&lt;/script&gt;&lt;script&gt;document.title"), "it is shown as text");
}

#[test]
fn view_serves_the_page_to_who_knows_its_address() {
    if !has_tool("chromium") {
        return;
    }
    let scene = Scene::new();
    let spool = shares(&scene);
    let mut view = stackpulse()
        .args(["view", "--no-open"])
        .arg(&spool)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(view.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let address = line.trim().strip_prefix("http://").expect("an address");
    let (host, path) = address.split_once('/').unwrap();
    assert!(host.starts_with("127.0.0.1:") && path.len() == 33, "{line}");
    let dom = page(&scene, &format!("http://{address}#search=leaf_sixty"));
    assert!(text(&dom, "status").contains("match"), "{}", text(&dom, "status"));
    let mut stream = TcpStream::connect(host).unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 404"), "{answer}");
    let ended = Command::new("kill").args(["-TERM", &view.id().to_string()]).status().unwrap();
    assert!(ended.success());
    use std::os::unix::process::ExitStatusExt;
    assert_eq!(view.wait().unwrap().signal(), Some(15));
}
