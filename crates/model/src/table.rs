//! Tables: what enumeration learns of one, and what its classification observed.

use serde::{Deserialize, Serialize};

use crate::finding::Location;
use crate::key::ObjectKey;

/// What a table is to its database.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TableKind {
    #[default]
    Table,
    View,
    MaterializedView,
    /// A file of separated values whose first line names its columns.
    File,
}

/// A table as it was listed.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TableShape {
    pub kind: TableKind,
    pub columns: Vec<ColumnShape>,
    /// Which columns identify a row, in the key's order; empty when nothing does.
    pub primary_key: Vec<u32>,
    /// The server's own guess.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub row_estimate: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
}

/// A column as it was listed.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ColumnShape {
    pub name: String,
    /// As the server writes it, such as `character varying(64)`; empty where nothing is declared.
    pub type_name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
}

/// What was observed of one table, or of one range of its rows. Ranges of a table are merged when they are read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TableObservation {
    /// The table: its key, and the way into the object it is in.
    pub table: Location,
    /// The object that was read: the table's own key, or a range's.
    pub part: ObjectKey,
    pub shape: TableShape,
    /// Rows that were read.
    pub rows: u64,
    /// Whether they are a sample of the part.
    pub is_sample: bool,
    /// Per column of the shape, in its order: an encoded sketch of its values, without any value.
    pub sketches: Vec<Vec<u8>>,
}
