//! Fleets of real processes on a real PostgreSQL, one scenario a test. What many disturbances at once do is
//! for `cargo xtask chaos`.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

#[path = "../common/mod.rs"]
mod common;

mod commands;
mod credentials;
mod first_fleet;
mod logins;
mod place;
mod secrets;
mod seen;
mod sharing;
mod workers;
