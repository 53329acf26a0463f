//! The book: the only place with SQL.
//!
//! The traits of [`roles`] have the domain verbs, one transaction each; [`Store`] is all of them. Every write by the holder of a claim or
//! a job lease is fenced: it fails with [`StoreError::LostClaim`] or [`StoreError::LostLease`] once the
//! claim or lease is someone else's. Backends: [`sqlite`], embedded, and
//! [`postgres`], for a fleet; what they decide alike is in modules of neither. This crate must not know connectors or the
//! engine.

mod base;
pub mod clock;
mod configured;
mod decide;
mod error;
mod fan_out;
mod hook;
pub mod migrate;
mod operated;
mod packing;
mod pages;
pub mod postgres;
mod reports;
pub mod roles;
pub mod sqlite;
mod staged;
mod statement;
mod targets;
#[cfg(test)]
mod testing;
mod totals;
mod types;
mod values;

#[cfg(feature = "conformance")]
pub mod conformance;

pub use error::StoreError;
pub use hook::{Fault, Stage, WriteHook};
pub use packing::{PACK_BYTES_MAX, PACK_CONTAINERS_MAX, PACK_OBJECTS_MAX};
pub use roles::*;
pub use types::*;
