//! Values on their way between Rust and PostgreSQL's types.

use tokio_postgres::Row;
use tokio_postgres::types::{FromSql, Type};

use super::Result;
use crate::error::StoreError;
use crate::rows::{Columns, FromRow, Value};
use crate::values::damaged;

impl Columns for Row {
    fn value<T: Value>(&self, column: usize) -> Result<T> {
        get(self, column)
    }

    fn number(&self, column: usize) -> Result<i64> {
        match self.columns().get(column).map(|column| column.type_()) {
            Some(&Type::INT2) => get::<i16>(self, column).map(i64::from),
            _ => get(self, column),
        }
    }
}

/// Rows, each read.
pub(super) fn all_of<T: FromRow>(rows: &[Row]) -> Result<Vec<T>> {
    rows.iter().map(T::from_row).collect()
}

/// A column. That it has another type than the schema says is damage.
pub(super) fn get<'a, T: FromSql<'a>>(row: &'a Row, column: usize) -> Result<T> {
    row.try_get(column).map_err(|error| StoreError::Damaged(error.to_string()))
}

/// A column of 128 bits.
pub(super) fn wide(row: &Row, column: usize) -> Result<[u8; 16]> {
    get::<&[u8]>(row, column)?.try_into().map_err(|_| damaged("id"))
}

/// The only row of a statement that always has one.
pub(super) fn only(rows: &[Row]) -> Result<&Row> {
    rows.first().ok_or_else(|| StoreError::Damaged("a statement that always has a row had none".into()))
}

/// Text from outside. PostgreSQL has no NUL in text, and a message is no less clear without it.
pub(super) fn text(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

/// A column of a list of things, as an array.
pub(super) fn column<'a, T, U>(things: &'a [T], value: impl FnMut(&'a T) -> U) -> Vec<U> {
    things.iter().map(value).collect()
}
