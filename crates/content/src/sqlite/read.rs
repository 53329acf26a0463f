//! Rows of a table: which, and their values as text or bytes.
//!
//! A value that is much longer than what is kept of one is not loaded: its length is in the row's header, and its
//! beginning is read by itself. Where that is not possible the library loads it, within a limit.

use std::fmt::Write as _;
use std::io::{Read as _, Write as _};

use domesday_model::RowBatch;
use rusqlite::limits::Limit;
use rusqlite::types::{Value, ValueRef};
use rusqlite::{MAIN_DB, Row, params_from_iter};

use super::database::{COMPUTED_LENGTH_MAX, Database, LENGTH_MAX, VIEW_LOOKS_MAX, WHOLE_LENGTH_MAX};
use super::error::SqliteError;
use super::key;
use super::layout::{Key, Layout, column, quoted};

/// Bytes kept of one row: those of wide tables have less of each value.
const ROW_BYTES_MAX: usize = 16 << 20;
/// Bytes kept of a value, however wide the table is.
const VALUE_MIN: usize = 1 << 10;
/// Values of one row whose beginning is read by itself: each may be far into the row.
const READ_ALONE_MAX: usize = 16;
/// Numbers from here on, and as far below one, are written with their exponent.
const PLAIN_MAX: f64 = 1e17;

/// Which rows, in the order of the key.
#[derive(Clone, Default)]
pub struct Span {
    pub(super) after: Option<Vec<Value>>,
    /// The last one.
    pub(super) to: Option<Vec<Value>>,
    pub(super) limit: Option<u64>,
    pub(super) offset: u64,
}

impl Span {
    /// The first rows, at most so many.
    pub fn first(rows: u64) -> Span {
        Span { limit: Some(rows), ..Span::default() }
    }

    /// Those after one key up to and with another, both as [`Database::boundary`] gives them.
    pub fn between(after: Option<&[String]>, to: Option<&[String]>) -> Result<Span, SqliteError> {
        let decoded = |key: Option<&[String]>| key.map(key::decode).transpose();
        Ok(Span { after: decoded(after)?, to: decoded(to)?, ..Span::default() })
    }

    /// What follows the table's name, and its parameters.
    fn write(&self, layout: &Layout) -> (String, Vec<Value>) {
        let (keys, mut values) = (layout.key_expressions().join(", "), Vec::new());
        let mut sql = String::new();
        for (bound, sign) in [(&self.after, ">"), (&self.to, "<=")] {
            let Some(bound) = bound else { continue };
            let places: Vec<String> = (1..=bound.len()).map(|at| format!("?{}", values.len() + at)).collect();
            let word = if values.is_empty() { "WHERE" } else { "AND" };
            // Writing to a string cannot fail.
            let _ = write!(sql, " {word} ({keys}) {sign} ({})", places.join(", "));
            values.extend(bound.iter().cloned());
        }
        if !keys.is_empty() {
            let _ = write!(sql, " ORDER BY {keys}");
        }
        if self.limit.is_some() || self.offset > 0 {
            let limit = self.limit.map_or(-1, |limit| limit.min(i64::MAX as u64) as i64);
            let _ = write!(sql, " LIMIT {limit} OFFSET {}", self.offset);
        }
        (sql, values)
    }
}

/// One row as it is read.
pub struct Cells<'a> {
    row: &'a Row<'a>,
    database: &'a Database,
    layout: &'a Layout,
    value_max: usize,
}

impl Database {
    /// Hands these rows over one by one, until there are no more or nobody wants another.
    pub fn select(
        &self,
        layout: &Layout,
        span: &Span,
        each: &mut dyn FnMut(&Cells<'_>) -> Result<bool, SqliteError>,
    ) -> Result<(), SqliteError> {
        let count = layout.shape.columns.len().max(1);
        let value_max = (ROW_BYTES_MAX / count).clamp(VALUE_MIN, RowBatch::VALUE_MAX);
        let columns: Vec<String> = (0..count).map(|index| expression(layout, index, value_max)).collect();
        let (rest, values) = span.write(layout);
        let sql = format!("SELECT {} FROM main.{} AS t{rest}", columns.join(", "), quoted(&layout.name));
        let fail = |error| self.error(error);
        self.connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, length_max(layout)).map_err(fail)?;
        self.watch.allow(if layout.is_view() { VIEW_LOOKS_MAX } else { 0 });
        let mut statement = self.connection.prepare_cached(&sql).map_err(fail)?;
        let mut rows = statement.query(params_from_iter(values)).map_err(fail)?;
        let mut read = 0;
        while let Some(row) = rows.next().map_err(fail)? {
            self.watch.step();
            read += 1;
            if read > self.rows_max() && !layout.is_view() {
                return Err(too_many(layout));
            }
            if !each(&Cells { row, database: self, layout, value_max })? {
                break;
            }
        }
        Ok(())
    }

    /// The key, as text, of the row that is so many rows after `after`.
    pub fn boundary(
        &self,
        layout: &Layout,
        after: Option<&[String]>,
        rows: u64,
    ) -> Result<Option<Vec<String>>, SqliteError> {
        let after = after.map(key::decode).transpose()?;
        let found = self.boundary_values(layout, after, rows)?;
        Ok(found.as_deref().map(key::encode))
    }

    /// The same with the values of the keys.
    pub(super) fn boundary_values(
        &self,
        layout: &Layout,
        after: Option<Vec<Value>>,
        rows: u64,
    ) -> Result<Option<Vec<Value>>, SqliteError> {
        let span = Span { after, to: None, limit: Some(1), offset: rows.saturating_sub(1) };
        let (rest, values) = span.write(layout);
        let keys = layout.key_expressions();
        let sql = format!("SELECT {} FROM main.{} AS t{rest}", keys.join(", "), quoted(&layout.name));
        self.watch.allow(0);
        let read = || {
            let mut statement = self.connection.prepare_cached(&sql)?;
            let mut found = statement.query(params_from_iter(values))?;
            let Some(row) = found.next()? else { return Ok(None) };
            (0..keys.len())
                .map(|index| row.get_ref(index).map(Value::try_from))
                .collect::<Result<_, _>>()
                .map(Some)
        };
        let found: Option<Vec<_>> = read().map_err(|error| self.error(error))?;
        let whole = |values: Vec<Result<Value, _>>| values.into_iter().collect::<Result<Vec<Value>, _>>();
        found.map(whole).transpose().map_err(|_| key::no_text())
    }

    /// The first and the last row number, of all or of those within bounds.
    pub(super) fn rowids(
        &self,
        layout: &Layout,
        within: Option<(i64, i64)>,
    ) -> Result<Option<(i64, i64)>, SqliteError> {
        let Key::Rowid(name) = layout.key else { return Ok(None) };
        let (low, high) = within.unwrap_or((i64::MIN, i64::MAX));
        let table = quoted(&layout.name);
        let end = |order: &str| -> Result<Option<i64>, SqliteError> {
            let sql = format!(
                "SELECT t.{name} FROM main.{table} AS t WHERE t.{name} BETWEEN ?1 AND ?2
                 ORDER BY t.{name} {order} LIMIT 1"
            );
            let read = || {
                let mut statement = self.connection.prepare_cached(&sql)?;
                let mut found = statement.query([low, high])?;
                found.next()?.map(|row| row.get(0)).transpose()
            };
            self.watch.allow(0);
            read().map_err(|error| self.error(error))
        };
        Ok(end("ASC")?.zip(end("DESC")?))
    }
}

/// A table of a damaged file whose pages point at one another.
pub fn too_many(layout: &Layout) -> SqliteError {
    SqliteError::Damaged(format!("`{}` has more rows than the file has room for", layout.name))
}

/// A column as it is asked for. A value that is too long comes as its beginning and a little more; or, where that
/// can be read by itself, as a sign of it that is longer still, and longest for text.
fn expression(layout: &Layout, index: usize, value_max: usize) -> String {
    let column = column(&layout.shape.columns[index].name);
    if matches!(layout.key, Key::Rowid(_)) && layout.shape.primary_key == [index as u32] {
        return column;
    }
    let (length, cut) = (format!("octet_length({column})"), value_max + 1);
    let sign = match has_sign(layout, index) {
        true => {
            let loaded_max = length_max(layout);
            format!("WHEN {length} > {loaded_max} THEN zeroblob({cut} + 1 + (typeof({column}) = 'text')) ")
        }
        false => String::new(),
    };
    format!("CASE {sign}WHEN {length} > {value_max} THEN substr({column}, 1, {cut}) ELSE {column} END")
}

/// Bytes of one value that the library loads or computes.
fn length_max(layout: &Layout) -> i32 {
    match layout.key {
        _ if layout.is_view() || layout.generated.contains(&true) => COMPUTED_LENGTH_MAX,
        Key::Rowid(_) => LENGTH_MAX,
        Key::Columns | Key::None => WHOLE_LENGTH_MAX,
    }
}

/// Whether the beginning of a column's value can be read by itself.
fn has_sign(layout: &Layout, index: usize) -> bool {
    matches!(layout.key, Key::Rowid(_)) && !layout.generated[index]
}

impl Cells<'_> {
    /// Adds the row to a batch; all of it, also when part of it cannot be read.
    pub fn push(&self, batch: &mut RowBatch) -> Result<(), SqliteError> {
        let (mut outcome, mut alone) = (Ok(()), 0);
        for (index, values) in batch.columns.iter_mut().enumerate() {
            match self.row.get_ref(index).unwrap_or(ValueRef::Null) {
                ValueRef::Null => values.push_null(),
                // Writing to memory cannot fail.
                ValueRef::Integer(number) => values.push_with(|out| {
                    let _ = write!(out, "{number}");
                }),
                ValueRef::Real(number) => values.push_with(|out| write_real(out, number)),
                ValueRef::Text(bytes) | ValueRef::Blob(bytes) if bytes.len() <= self.value_max => {
                    values.push(bytes);
                }
                ValueRef::Blob(sign) if sign.len() > self.value_max + 1 => {
                    alone += 1;
                    let is_text = sign.len() > self.value_max + 2;
                    let beginning = if alone > READ_ALONE_MAX {
                        Err(SqliteError::TooLong("a row has too many values that are too long"))
                    } else {
                        self.beginning(index, is_text)
                    };
                    values.push_cut(beginning.as_deref().unwrap_or_default());
                    outcome = outcome.and(beginning.map(drop));
                }
                ValueRef::Text(bytes) | ValueRef::Blob(bytes) => values.push_cut(&bytes[..self.value_max]),
            }
        }
        outcome
    }

    /// The beginning of a value of which there is only a sign.
    fn beginning(&self, index: usize, is_text: bool) -> Result<Vec<u8>, SqliteError> {
        let Value::Integer(rowid) = self.key()?.swap_remove(0) else { return Err(key::no_text()) };
        let (connection, name) = (&self.database.connection, &self.layout.shape.columns[index].name);
        let blob = connection.blob_open(MAIN_DB, self.layout.name.as_str(), name.as_str(), rowid, true);
        let blob = blob.map_err(|error| self.database.error(error))?;
        let mut beginning = Vec::with_capacity(self.value_max);
        blob.take(self.value_max as u64).read_to_end(&mut beginning)?;
        if is_text { self.database.decoded(beginning) } else { Ok(beginning) }
    }

    /// The values of the key's columns.
    pub(super) fn key(&self) -> Result<Vec<Value>, SqliteError> {
        let value = |&index: &u32| {
            let value = self.row.get_ref(index as usize).map_err(|error| self.database.error(error))?;
            let is_long = matches!(value, ValueRef::Text(bytes) | ValueRef::Blob(bytes) if bytes.len() > self.value_max);
            if is_long {
                return Err(SqliteError::TooLong("the key of a row is too long"));
            }
            Value::try_from(value).map_err(|_| key::no_text())
        };
        self.layout.shape.primary_key.iter().map(value).collect()
    }
}

impl Database {
    /// Text as the file stores it, in UTF-8.
    fn decoded(&self, stored: Vec<u8>) -> Result<Vec<u8>, SqliteError> {
        let encoding: String = self
            .connection
            .query_row("PRAGMA main.encoding", [], |row| row.get(0))
            .map_err(|error| self.error(error))?;
        let unit = match encoding.as_str() {
            "UTF-16le" => u16::from_le_bytes,
            "UTF-16be" => u16::from_be_bytes,
            _ => return Ok(stored),
        };
        let units = stored.chunks_exact(2).map(|pair| unit([pair[0], pair[1]]));
        let text: String =
            char::decode_utf16(units).map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER)).collect();
        Ok(text.into_bytes())
    }
}

/// A number as people write it: without a fraction where it has none.
fn write_real(out: &mut Vec<u8>, number: f64) {
    let is_plain = number == 0.0 || (PLAIN_MAX.recip()..PLAIN_MAX).contains(&number.abs());
    // Writing to memory cannot fail.
    let _ = if is_plain { write!(out, "{number}") } else { write!(out, "{number:e}") };
}
