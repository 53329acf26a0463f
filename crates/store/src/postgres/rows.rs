//! Values on their way between Rust and PostgreSQL's types.

use tokio_postgres::Row;
use tokio_postgres::types::FromSql;

use super::Result;
use crate::error::StoreError;
use crate::values::damaged;

/// A column. That it has another type than the schema says is damage.
pub(super) fn get<'a, T: FromSql<'a>>(row: &'a Row, column: usize) -> Result<T> {
    row.try_get(column).map_err(|error| StoreError::Damaged(error.to_string()))
}

/// A column of 128 bits.
pub(super) fn wide(row: &Row, column: usize) -> Result<[u8; 16]> {
    get::<&[u8]>(row, column)?.try_into().map_err(|_| damaged("id"))
}

/// A column of 128 bits that may be empty.
pub(super) fn tag(row: &Row, column: usize) -> Result<Option<[u8; 16]>> {
    let tag: Option<&[u8]> = get(row, column)?;
    tag.map(|tag| tag.try_into().map_err(|_| damaged("version tag"))).transpose()
}

pub(super) fn unsigned(row: &Row, column: usize) -> Result<u64> {
    get::<i64>(row, column).map(i64::cast_unsigned)
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
