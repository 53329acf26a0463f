//! Objects that are tables: rows instead of bytes.

use std::sync::Arc;

use domesday_columns::RowBatch;
use domesday_content::ReadAt;
use domesday_model::{Location, NestedStep, TableShape};

use crate::source::{ObjectDescriptor, ObjectError};

/// A table, or a range of its rows, to be read.
pub struct OpenTable {
    /// The table, which is what its findings are located by: a range's is that of its table. Of a table in a
    /// database file the scan core knows better, and this says nothing.
    pub table: Arc<Location>,
    pub shape: Arc<TableShape>,
    /// Whether the rows are a sample of what the object has.
    pub is_sample: bool,
    pub rows: Box<dyn RowReader>,
}

/// Rows in the order of their key, or in whichever the source has.
pub trait RowReader: Send {
    /// Fills the empty batch, which has as many columns as the shape; no rows are the end. Rows that it holds
    /// beside an error count; nothing is asked for after one. Called on the scan core's threads; may block.
    fn fill(&mut self, batch: &mut RowBatch) -> Result<(), ObjectError>;

    /// The seed of the sample, by which those values are chosen, too, that are kept of very many.
    fn seed(&self) -> u64 {
        0
    }
}

/// A database that is a file, met by the scan.
pub struct DatabaseFile<'a> {
    /// The object of the source that is this file and nothing else; `None` when it was inside another object, or
    /// compressed.
    pub object: Option<&'a ObjectDescriptor>,
    /// Its bytes. Unless it is an object of the source with random access they are in memory, and at most as many
    /// as [`Limits::max_buffered`](domesday_content::Limits) allows.
    pub bytes: Arc<dyn ReadAt>,
}

/// The tables of a database file, one after another: one is read or dropped before the next is asked for.
pub type DatabaseTables = Box<dyn Iterator<Item = NestedTable> + Send>;

/// A table in a database file.
pub struct NestedTable {
    /// Its name, and its place among the tables of its database.
    pub step: NestedStep,
    pub table: Result<OpenTable, ObjectError>,
}
