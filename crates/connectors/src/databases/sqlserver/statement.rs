//! The statements that read tables. Every name is quoted, every key is a parameter, and nothing else is from outside
//! but numbers.

use std::fmt::{self, Write};

use domesday_model::{ColumnShape, TableShape};

use super::super::dialect::{RowKey, TableName};
use super::types::{key_text, key_value, selected};

/// A statement, and the texts of its parameters `@P1`, `@P2` and so on.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Statement {
    pub sql: String,
    pub parameters: Vec<String>,
}

/// A name in brackets, whatever it is.
pub(super) fn quote(name: &str) -> String {
    format!("[{}]", name.replace(']', "]]"))
}

fn from(table: &TableName) -> String {
    format!(" FROM {}.{}", quote(&table.schema), quote(&table.table))
}

/// What is selected for each of a table's columns, in their order. A column that is left out has no values.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Selection(Vec<String>);

impl Selection {
    pub fn new(shape: &TableShape, is_out: impl Fn(usize) -> bool) -> Selection {
        let one = |(place, column)| if is_out(place) { "NULL".to_owned() } else { selected(column) };
        Selection(shape.columns.iter().enumerate().map(one).collect())
    }
}

impl fmt::Display for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(", "))
    }
}

/// All rows.
pub(super) fn all(table: &TableName, columns: &Selection) -> Statement {
    plain(format!("SELECT {columns}{}", from(table)))
}

/// So many rows, whichever the server gives first.
pub(super) fn first(table: &TableName, columns: &Selection, rows: u64) -> Statement {
    plain(format!("SELECT TOP ({rows}) {columns}{}", from(table)))
}

/// The rows of so many percent of the pages, wherever they are in the table, and so many of them at most.
pub(super) fn sample(
    table: &TableName,
    columns: &Selection,
    percent: f64,
    seed: u64,
    rows: u64,
) -> Statement {
    // The server takes a seed that is a positive number of 63 bits.
    let seed = seed & (i64::MAX as u64);
    plain(format!(
        "SELECT TOP ({rows}) {columns}{} TABLESAMPLE SYSTEM ({percent:.6} PERCENT) REPEATABLE ({seed})",
        from(table)
    ))
}

/// Rows after one key, up to and with another, in the order of keys.
pub(super) fn range(
    table: &TableName,
    shape: &TableShape,
    columns: &Selection,
    after: Option<&RowKey>,
    to: Option<&RowKey>,
) -> Statement {
    let key = key_columns(shape);
    let mut statement = plain(format!("SELECT {columns}{}", from(table)));
    let mut word = " WHERE ";
    for (bound, sign, last_sign) in [(after, ">", ">"), (to, "<", "<=")] {
        if let Some(bound) = bound {
            statement.sql.push_str(word);
            statement.bound(&key, bound, sign, last_sign);
            word = " AND ";
        }
    }
    statement.order(&key);
    statement
}

/// The key of the row that is so many rows after another, or from the beginning.
pub(super) fn boundary(
    table: &TableName,
    shape: &TableShape,
    after: Option<&RowKey>,
    rows: u64,
) -> Statement {
    let key = key_columns(shape);
    let texts: Vec<String> = key.iter().map(|column| key_text(column)).collect();
    let mut statement = plain(format!("SELECT {}{}", texts.join(", "), from(table)));
    if let Some(after) = after {
        statement.sql.push_str(" WHERE ");
        statement.bound(&key, after, ">", ">");
    }
    statement.order(&key);
    let before = rows.saturating_sub(1);
    let _ = write!(statement.sql, " OFFSET {before} ROWS FETCH NEXT 1 ROWS ONLY");
    statement
}

fn key_columns(shape: &TableShape) -> Vec<&ColumnShape> {
    shape.primary_key.iter().filter_map(|place| shape.columns.get(*place as usize)).collect()
}

fn plain(sql: String) -> Statement {
    Statement { sql, parameters: Vec::new() }
}

impl Statement {
    /// Compares whole keys, column by column, as the language has no comparison of rows. The comparison of the first
    /// column alone comes first: it is what an index is searched by.
    fn bound(&mut self, key: &[&ColumnShape], bound: &RowKey, sign: &str, last_sign: &str) {
        let first = self.parameters.len() + 1;
        self.parameters.extend(bound.iter().cloned());
        let name = |at: usize| quote(&key[at].name);
        let value = |at: usize| key_value(key[at], first + at);
        let count = key.len().min(bound.len());
        if count == 1 {
            let _ = write!(self.sql, "({} {last_sign} {})", name(0), value(0));
            return;
        }
        let _ = write!(self.sql, "({} {sign}= {} AND (", name(0), value(0));
        for last in 0..count {
            if last > 0 {
                self.sql.push_str(" OR ");
            }
            self.sql.push('(');
            for equal in 0..last {
                let _ = write!(self.sql, "{} = {} AND ", name(equal), value(equal));
            }
            let sign = if last + 1 == count { last_sign } else { sign };
            let _ = write!(self.sql, "{} {sign} {})", name(last), value(last));
        }
        self.sql.push_str("))");
    }

    fn order(&mut self, key: &[&ColumnShape]) {
        let names: Vec<String> = key.iter().map(|column| quote(&column.name)).collect();
        let _ = write!(self.sql, " ORDER BY {}", names.join(", "));
    }
}
