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

use crate::format::{Definition, Inside};

pub(crate) static FORMAT: Definition = Definition {
    name: "sqlite",
    begins: b"S",
    recognise: is_sqlite,
    recognise_end: None,
    inside: Inside::Tables(open_tables),
};

fn is_sqlite(head: &[u8]) -> bool {
    let Some((magic, rest)) = head.split_first_chunk::<16>() else { return false };
    let Some(&[page_high, page_low, write, read, _, most, least, leaf]) = rest.first_chunk::<8>() else {
        return false;
    };
    let page_size = u16::from_be_bytes([page_high, page_low]);
    // The version for writing may be of the future, that for reading not; three fractions never vary.
    magic == b"SQLite format 3\0"
        && (page_size == 1 || page_size.is_power_of_two() && page_size >= 512)
        && write >= 1
        && matches!(read, 1 | 2)
        && (most, least, leaf) == (64, 32, 32)
}
