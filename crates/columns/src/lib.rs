//! Columns: the values of a table's columns in, matches in cells and a label per column out.
//!
//! Rows come in batches that are kept by column. Each cell is scanned as a text of its own, with the column's
//! name beside it; what the distinct values of a column are is kept in a sketch of bounded size that can be
//! merged with those of other parts of the table. Labels are derived from sketches when they are read.
//!
//! This crate must not know where tables come from, nor the book.

mod header;
mod label;
mod scan;
mod sketch;

pub use label::{ColumnLabel, ColumnVerdict, Example, LabelKind, classify};
pub use scan::{CellMatch, TableScan};
pub use sketch::ColumnSketch;
