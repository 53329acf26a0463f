//! TLS to database servers, by rustls: what was asked for is checked, no more and no less. One way for the book and for
//! the servers that are scanned.
//!
//! This crate must not know what is said over the connection.

mod client;
mod host;
pub mod postgres;
mod problem;

pub use client::{Client, Identity, TlsError, Verify, authorities};
pub use host::{is_socket, is_this_machine};
pub use problem::Problem;
