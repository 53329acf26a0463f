//! SQLite files: those that a scan meets as an object, and those that are a data source of their own.
//!
//! A file is only ever looked at: see [`Database::open`] for how, and [`Layout`] for what of it is read. Changes that
//! are still in a log beside the file are not read; [`unread_log`] names the log. Nothing of a row is kept.

mod database;
mod error;
mod key;
mod layout;
mod read;
mod sample;
mod tables;
#[cfg(test)]
mod tests;

pub use database::{Database, unread_log};
pub use error::SqliteError;
pub use layout::{Entry, Layout};
pub use read::{Cells, Span, too_many};
pub use tables::open_tables;
