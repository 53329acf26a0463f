//! Rows read into records, the same for both backends. A statement of either has its columns in the order in which the
//! code here reads them.

mod configuring;
mod jobs;
mod results;
mod sessions;
mod summary;
mod tasks;

pub(crate) use jobs::child_job_state;
pub(crate) use sessions::{ended_session, session, session_metrics};
pub(crate) use tasks::{base, version_marks};

use domesday_model::ObjectKey;

use crate::error::StoreError;
use crate::values::damaged;

type Result<T> = std::result::Result<T, StoreError>;

/// What either backend can read out of a column.
pub(crate) trait Value: rusqlite::types::FromSql + for<'a> tokio_postgres::types::FromSql<'a> {}

impl<T: rusqlite::types::FromSql + for<'a> tokio_postgres::types::FromSql<'a>> Value for T {}

/// A row of either backend.
pub(crate) trait Columns {
    fn value<T: Value>(&self, column: usize) -> Result<T>;

    /// A whole number, however wide its column is.
    fn number(&self, column: usize) -> Result<i64>;

    /// A number that is never negative, kept with the same bits.
    fn unsigned(&self, column: usize) -> Result<u64> {
        self.number(column).map(i64::cast_unsigned)
    }

    /// A small number that is never negative.
    fn small<T: TryFrom<i64>>(&self, column: usize) -> Result<T> {
        T::try_from(self.number(column)?).map_err(|_| damaged("number"))
    }

    /// An id or a hash.
    fn wide(&self, column: usize) -> Result<[u8; 16]> {
        self.optional_wide(column)?.ok_or_else(|| damaged("id"))
    }

    /// An id or a hash, where there is one.
    fn optional_wide(&self, column: usize) -> Result<Option<[u8; 16]>> {
        let bytes: Option<Vec<u8>> = self.value(column)?;
        bytes.map(|bytes| bytes.try_into().map_err(|_| damaged("id"))).transpose()
    }

    /// A text that stands for something.
    fn parsed<T>(&self, column: usize, parse: impl FnOnce(&str) -> Result<T>) -> Result<T> {
        parse(&self.value::<String>(column)?)
    }
}

/// What a whole row is read into.
pub(crate) trait FromRow: Sized {
    fn from_row(row: &impl Columns) -> Result<Self>;
}

/// Rows of one column.
macro_rules! one_column {
    ($($value:ty),*) => {
        $(impl FromRow for $value {
            fn from_row(row: &impl Columns) -> Result<$value> {
                row.value(0)
            }
        })*
    };
}

one_column!(bool, i64, String, Vec<u8>, Option<i64>);

impl FromRow for [u8; 16] {
    fn from_row(row: &impl Columns) -> Result<[u8; 16]> {
        row.wide(0)
    }
}

impl FromRow for ObjectKey {
    fn from_row(row: &impl Columns) -> Result<ObjectKey> {
        row.value(0).map(ObjectKey)
    }
}

impl<A: Value, B: Value> FromRow for (A, B) {
    fn from_row(row: &impl Columns) -> Result<(A, B)> {
        Ok((row.value(0)?, row.value(1)?))
    }
}

impl<A: Value, B: Value, C: Value> FromRow for (A, B, C) {
    fn from_row(row: &impl Columns) -> Result<(A, B, C)> {
        Ok((row.value(0)?, row.value(1)?, row.value(2)?))
    }
}
