//! The book: the only place with SQL.
//!
//! [`Store`] is a trait of domain verbs, one transaction each. Every write by the holder of a claim or
//! a job lease is fenced: it fails with [`StoreError::LostClaim`] or [`StoreError::LostLease`] once the
//! claim or lease is someone else's. Backends: [`sqlite`]. This crate must not know connectors or the
//! engine.

pub mod clock;
mod error;
pub mod migrate;
mod packing;
pub mod sqlite;
mod statement;
mod types;
mod verbs;

#[cfg(feature = "conformance")]
pub mod conformance;

pub use error::StoreError;
pub use packing::{PACK_BYTES_MAX, PACK_CONTAINERS_MAX, PACK_OBJECTS_MAX};
pub use types::*;
pub use verbs::Store;
