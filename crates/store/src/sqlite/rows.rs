//! Statements as the verbs run them, each prepared once a connection, and their rows.

use rusqlite::{Connection, OptionalExtension, Params, Row};

use super::Result;
use crate::error::StoreError;
use crate::rows::{Columns, FromRow, Value};

impl Columns for Row<'_> {
    fn value<T: Value>(&self, column: usize) -> Result<T> {
        Ok(self.get(column)?)
    }

    fn number(&self, column: usize) -> Result<i64> {
        Ok(self.get(column)?)
    }
}

pub(super) trait Statements {
    /// Changes the book; how many rows.
    fn change(&self, sql: &str, params: impl Params) -> Result<u64>;

    /// Each of its rows, read.
    fn rows<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnMut(&Row<'_>) -> Result<T>,
    ) -> Result<Vec<T>>;

    /// Its row, read, if there is one.
    fn row<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnOnce(&Row<'_>) -> Result<T>,
    ) -> Result<Option<T>>;

    fn all<T: FromRow>(&self, sql: &str, params: impl Params) -> Result<Vec<T>> {
        self.rows(sql, params, |row| T::from_row(row))
    }

    fn one<T: FromRow>(&self, sql: &str, params: impl Params) -> Result<Option<T>> {
        self.row(sql, params, |row| T::from_row(row))
    }

    /// The row of a statement that always has one.
    fn only<T: FromRow>(&self, sql: &str, params: impl Params) -> Result<T> {
        let row = self.one(sql, params)?;
        row.ok_or_else(|| StoreError::Damaged("a statement that always has a row had none".into()))
    }
}

impl Statements for Connection {
    fn change(&self, sql: &str, params: impl Params) -> Result<u64> {
        Ok(self.prepare_cached(sql)?.execute(params)? as u64)
    }

    fn rows<T>(
        &self,
        sql: &str,
        params: impl Params,
        mut read: impl FnMut(&Row<'_>) -> Result<T>,
    ) -> Result<Vec<T>> {
        let mut statement = self.prepare_cached(sql)?;
        let rows = statement.query_map(params, |row| Ok(read(row)))?;
        rows.map(|row| row?).collect()
    }

    fn row<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnOnce(&Row<'_>) -> Result<T>,
    ) -> Result<Option<T>> {
        self.prepare_cached(sql)?.query_row(params, |row| Ok(read(row))).optional()?.transpose()
    }
}
