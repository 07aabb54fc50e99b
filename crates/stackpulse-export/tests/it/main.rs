//! All forms over profiles of extreme shape.

#![allow(clippy::unwrap_used, reason = "a test says what failed")]

mod extremes;
