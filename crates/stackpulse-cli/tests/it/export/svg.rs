//! Flame graphs, read by an XML parser.

use super::{export, reported, shares};
use crate::harness::{Scene, has_tool, stderr, stdout};
use std::path::Path;
use std::process::Command;

/// What an XML parser finds: the titles of all boxes.
fn titles(svg: &Path) -> Vec<String> {
    let script = "import sys, xml.etree.ElementTree as tree\n\
        for title in tree.parse(sys.argv[1]).iter('{http://www.w3.org/2000/svg}title'): print(title.text)";
    let output = Command::new("python3").args(["-c", script]).arg(svg).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    stdout(&output).lines().map(str::to_owned).collect()
}

#[test]
fn flame_graphs_are_xml_with_the_samples_of_the_report() {
    if !has_tool("python3") {
        return;
    }
    let scene = Scene::new();
    let spool = shares(&scene);
    let total = reported(&spool)["middle_sixty"].1;
    for options in [&[][..], &["--icicle"]] {
        let titles = titles(&export(&scene, &spool, "out.svg", options));
        let of_middle = format!("middle_sixty ({total} samples, ");
        assert!(titles.iter().any(|title| title.starts_with(&of_middle)), "{titles:?}");
    }
    let own = reported(&spool)["leaf_sixty"].0;
    let reversed = titles(&export(&scene, &spool, "out.svg", &["--reverse"]));
    let of_leaf = format!("leaf_sixty ({own} samples, ");
    assert!(reversed.iter().any(|title| title.starts_with(&of_leaf)), "{reversed:?}");
}
