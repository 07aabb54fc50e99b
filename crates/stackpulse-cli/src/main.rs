//! The `stackpulse` command.
fn main() {}
