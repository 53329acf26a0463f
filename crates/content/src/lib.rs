//! What is inside a blob: archives, compressors, text encodings and embedded databases. Bytes in; entries, text or
//! tables out.
//!
//! Everything is recognised by content, never by name, and read in memory as a stream: nothing is ever
//! unpacked to disk. All readers below one outermost object share one [`Budget`], and say why they stop
//! in an [`std::io::Error`] that carries a [`ContentError`]. What is readable before a damaged place is
//! always handed out first.
//!
//! The way in is [`detect`] on an object's first bytes, then [`unwrap()`], which peels the compressors off
//! and hands back plain bytes, an [`Archive`] of entries, each of which can be unwrapped in turn, or a [`TableFile`],
//! which gives [`Tables`]. What is plain bytes may be of a format that nothing here reads: [`recognise`] names it.
//!
//! A format that is read is one file or folder with a `Definition`, and a line in `format.rs`.
//!
//! This crate knows nothing of jobs, of the book's SQL, of data sources or of what is searched for in the bytes.

mod archive;
mod budget;
mod codec;
mod encoding;
mod error;
mod format;
mod input;
mod source;
pub mod sqlite;
mod table;
mod tar;
mod unsupported;
mod unwrap;
mod zip;

pub use archive::{Archive, Entry};
pub use budget::{Budget, Limits};
pub use encoding::{Encoding, Utf16Decoder, utf16_units};
pub use error::{ContentError, ObjectError};
pub use format::{Format, HEAD_LEN, detect, detect_seekable};
pub use input::{Input, ReadAt};
pub use table::{NestedTable, OpenTable, RowReader, TableFile, Tables};
pub use unsupported::{UnsupportedFormat, git_lfs_oid, recognise};
pub use unwrap::{Unwrapped, unwrap};

#[cfg(test)]
mod tests;
