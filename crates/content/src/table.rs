//! Tables: what is read row by row, whether a server sends the rows or they lie in a file.
//!
//! This module owns what whoever reads a table gives and whoever matches it takes. It must not know where the table is
//! or how its rows come.

use std::sync::Arc;

use domesday_model::{NestedStep, RowBatch, TableShape};

use crate::error::ObjectError;
use crate::input::ReadAt;

/// A table, or a range of its rows, to be read.
pub struct OpenTable {
    pub shape: Arc<TableShape>,
    /// Whether the rows are a sample of what the table, or the range, has.
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

/// The tables of one object, one after another: one is read or dropped before the next is asked for.
pub type Tables = Box<dyn Iterator<Item = NestedTable> + Send>;

/// One of several tables of an object.
pub struct NestedTable {
    /// Its name, and its place among the tables of the object.
    pub step: NestedStep,
    pub table: Result<OpenTable, ObjectError>,
}

/// Opens the tables of a file, which is read at any place.
pub(crate) type OpenTables = fn(&Arc<dyn ReadAt>) -> Result<Tables, ObjectError>;

/// An object that is tables, and how they are read.
pub struct TableFile {
    bytes: Arc<dyn ReadAt>,
    open: OpenTables,
}

impl TableFile {
    pub(crate) fn new(bytes: Arc<dyn ReadAt>, open: OpenTables) -> TableFile {
        TableFile { bytes, open }
    }

    /// The bytes, as they are. Memory that holds them is given back with the last reference.
    pub fn bytes(&self) -> &Arc<dyn ReadAt> {
        &self.bytes
    }

    pub fn tables(&self) -> Result<Tables, ObjectError> {
        (self.open)(&self.bytes)
    }
}
