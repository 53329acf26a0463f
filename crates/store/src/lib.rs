//! The book: the only place with SQL.
//!
//! The traits of [`roles`] have the domain verbs, one transaction each; [`Store`] is all of them. Every write by the
//! holder of a claim or a job lease is fenced: it fails with [`StoreError::LostClaim`] or
//! [`StoreError::LostLease`] once the claim or lease is someone else's.
//!
//! Two backends implement them: [`sqlite`], embedded, and [`postgres`], for a fleet. What both share: `decide` (pure
//! decisions), `rows` (rows read into
//! records), `values` (values of columns), `queries` (statements). This crate must not know connectors or the engine.

pub mod clock;
mod decide;
mod error;
mod hook;
mod migrate;
pub mod postgres;
mod queries;
pub mod roles;
mod rows;
pub mod sqlite;
#[cfg(test)]
mod testing;
mod types;
mod values;

#[cfg(feature = "conformance")]
pub mod conformance;

pub use error::StoreError;
pub use hook::{Fault, Stage, WriteHook};
pub use roles::*;
pub use types::*;
