//! What can go wrong with an SQLite file. A file may be damaged, or made to do damage: nothing it holds ends
//! more than the reading of itself.

use domesday_model::Reason;
use rusqlite::ErrorCode;

use crate::error::ObjectError;

#[derive(Debug, thiserror::Error)]
pub enum SqliteError {
    #[error("not an SQLite database, or an encrypted one")]
    NotADatabase,
    /// SQLite's own words, which name tables and columns, and no values.
    #[error("damaged database: {0}")]
    Damaged(String),
    #[error("{0}")]
    Io(#[from] std::io::Error),
    #[error("{0}")]
    TooLong(&'static str),
    #[error("reading stopped: {0}")]
    Stopped(&'static str),
    #[error("`{0}` is no longer the table that was listed")]
    Changed(String),
    #[error("{0}")]
    Refused(String),
}

impl SqliteError {
    pub fn reason(&self) -> Reason {
        match self {
            SqliteError::Io(error) => ObjectError::from(std::io::Error::from(error.kind())).reason,
            SqliteError::Changed(_) => Reason::Changed,
            SqliteError::TooLong(_) => Reason::ByteLimit,
            SqliteError::Stopped(_) => Reason::TimedOut,
            SqliteError::NotADatabase | SqliteError::Damaged(_) => Reason::DamagedArchive,
            SqliteError::Refused(_) => Reason::ReadError,
        }
    }
}

impl From<rusqlite::Error> for SqliteError {
    fn from(error: rusqlite::Error) -> SqliteError {
        let text = error.to_string();
        match error.sqlite_error_code() {
            Some(ErrorCode::NotADatabase) => SqliteError::NotADatabase,
            Some(ErrorCode::DatabaseCorrupt) => SqliteError::Damaged(text),
            Some(ErrorCode::TooBig) => {
                SqliteError::TooLong("a value, or the text of the schema, is too long")
            }
            _ => SqliteError::Refused(text),
        }
    }
}

impl From<SqliteError> for ObjectError {
    fn from(error: SqliteError) -> ObjectError {
        ObjectError::new(error.reason(), error.to_string())
    }
}
