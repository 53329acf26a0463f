//! Structured databases, listed level by level: databases, schemas, tables, and the row ranges of tables that
//! are read whole.
//!
//! One connector for all kinds ([`DatabaseConnector`]): what levels mean, what is left out, how much is read and
//! how fast, and how rows reach the scan core. A kind adds a [`Dialect`]: the protocol, the catalogue and the
//! types of its server, and a factory that gives both to [`DatabaseConnector::new`].

mod address;
mod column_search;
mod config;
#[cfg(test)]
mod conformance;
mod connector;
mod dialect;
mod error;
mod factory;
#[cfg(feature = "fuzz")]
#[doc(hidden)]
pub mod fuzz;
mod limits;
mod listing;
mod login;
pub mod mysql;
mod name;
mod packet;
mod parts;
mod patterns;
pub mod postgres;
mod rows;
pub mod sqlite;
pub mod sqlserver;
mod tls;

pub use address::{BadAddress, parse_address};
pub use config::{DatabaseConfig, Mode, TlsMode};
pub use factory::ServerFactory;
