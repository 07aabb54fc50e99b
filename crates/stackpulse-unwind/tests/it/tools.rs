//! Programs that tests call.

use std::process::Command;

/// Whether a tool is here. Says so if not; with `STACKPULSE_SKIP_NOTHING` set, as in continuous integration, it must be.
pub(crate) fn has_tool(tool: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).any(|directory| directory.join(tool).is_file());
    if !found {
        assert!(std::env::var_os("STACKPULSE_SKIP_NOTHING").is_none(), "{tool} is not installed");
        eprintln!("skipped: {tool} is not installed");
    }
    found
}

/// Runs a program that must succeed.
pub(crate) fn run(program: &str, arguments: &[&str]) {
    let status = Command::new(program).args(arguments).status().unwrap();
    assert!(status.success(), "{program} {arguments:?}: {status}");
}
