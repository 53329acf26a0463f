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

impl ColumnShape {
    /// Whether its values are numbers that a database counts rows with, as far as its declared type tells.
    pub fn is_integer(&self) -> bool {
        let word = self.type_name.split([' ', '(']).next().unwrap_or_default();
        INTEGERS.iter().any(|name| name.eq_ignore_ascii_case(word))
    }

    /// Whether this value of the column is a plain integer, which names a row and tells nothing else.
    pub fn is_plain(&self, value: &[u8]) -> bool {
        let digits = value.strip_prefix(b"-").unwrap_or(value);
        self.is_integer()
            && (1..=INTEGER_DIGITS).contains(&digits.len())
            && digits.iter().all(u8::is_ascii_digit)
    }
}

/// Declared types of integers, without their arguments.
const INTEGERS: [&str; 14] = [
    "int",
    "integer",
    "bigint",
    "smallint",
    "tinyint",
    "mediumint",
    "int2",
    "int4",
    "int8",
    "serial",
    "bigserial",
    "smallserial",
    "oid",
    "xid",
];
/// Digits of the largest integer of 64 bits.
const INTEGER_DIGITS: usize = 20;

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_integers_of_integer_columns_are_plain() {
        let column = |type_name: &str| ColumnShape { type_name: type_name.into(), ..ColumnShape::default() };
        for (type_name, value, plain) in [
            ("bigint", "-5", true),
            ("INT(11) unsigned", "18446744073709551615", true),
            ("text", "731426508", false),
            ("interval", "5", false),
            ("", "5", false),
            // SQLite lets a column of integers hold anything.
            ("INTEGER", "ann@example.com", false),
            ("INTEGER", "", false),
        ] {
            assert_eq!(column(type_name).is_plain(value.as_bytes()), plain, "{type_name} {value}");
        }
    }
}
