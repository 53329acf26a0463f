//! TLS to database servers, by rustls: what was asked for is checked, no more and no less. One way for the book and for
//! the servers that are scanned.
//!
//! This crate must not know what is said over the connection.

mod client;
pub mod postgres;

pub use client::{Client, Identity, TlsError, Verify, authorities};
