//! What tests need from outside the workspace: real servers, started by the tests themselves, and a network
//! that can be slow or break.
//!
//! Only ever a dev-dependency. A server that is not installed is a failure that says how to get it, never
//! a test that passes without having run.
#![allow(clippy::unwrap_used, reason = "a test that cannot get its server fails by panicking")]

mod feed;
pub mod fleet;
pub mod http;
mod keeper;
pub mod mariadb;
pub mod pgbouncer;
pub mod postgres;
pub mod proxy;
#[cfg(feature = "s3")]
pub mod s3;
pub mod tds;
pub mod wait;

pub use feed::feed;
