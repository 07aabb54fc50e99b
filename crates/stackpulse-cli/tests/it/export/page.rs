//! The page, in a real browser.

use super::{export, reported, shares};
use crate::harness::{Scene, has_tool, stderr, stdout};
use crate::serving::Viewed;
use std::path::Path;
use std::process::Command;

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
fn a_browser_takes_up_the_invitation_of_view() {
    if !has_tool("chromium") {
        return;
    }
    let scene = Scene::new();
    let spool = shares(&scene);
    let view = Viewed::start(&spool, |view| view.arg("--no-open"));
    let dom = page(&scene, &format!("http://{}{}#search=leaf_sixty", view.host, view.invitation));
    assert!(text(&dom, "status").contains("match"), "{}", text(&dom, "status"));
    view.end("-TERM");
}
