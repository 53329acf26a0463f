//! The one place that turns PostgreSQL's errors into the book's.

use std::error::Error as _;

use tokio_postgres::Error;
use tokio_postgres::error::SqlState;

use crate::error::StoreError;

/// Classes of SQLSTATE that say the statement or the login is wrong, so that trying again cannot help: data
/// exception, integrity constraint, authorization, no such database or schema, syntax or privilege.
const FINAL_CLASSES: [&str; 6] = ["22", "23", "28", "3D", "3F", "42"];

/// What an error says, without the values that the server's details may carry.
fn text(error: &Error) -> String {
    match error.as_db_error() {
        Some(db) => format!("{} ({})", db.message(), db.code().code()),
        None => {
            let source = error.source().map(|source| format!(": {source}")).unwrap_or_default();
            format!("{error}{source}")
        }
    }
}

pub(super) fn store_error(error: &Error) -> StoreError {
    let class = error.code().map(|code| &code.code()[..2]);
    if class.is_some_and(|class| FINAL_CLASSES.contains(&class)) {
        return StoreError::Refused(text(error));
    }
    StoreError::Backend(text(error))
}

/// The transaction was rolled back to let another one pass: the same again may well succeed.
pub(super) fn gave_way(error: &Error) -> bool {
    error.code().is_some_and(|code| {
        [SqlState::T_R_SERIALIZATION_FAILURE, SqlState::T_R_DEADLOCK_DETECTED].contains(code)
    })
}

/// The connection is of no use any more, whatever became of what was sent over it.
pub(super) fn is_lost(error: &Error) -> bool {
    match error.as_db_error() {
        // The server is going down, or ended this session.
        Some(db) => {
            let ended = *db.code() == SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT;
            ended || db.code().code().starts_with("08") || db.code().code().starts_with("57P")
        }
        None => error.is_closed() || error.source().is_some_and(|source| source.is::<std::io::Error>()),
    }
}

/// Whether the server may have done what it was asked to, and only its answer is missing.
pub(super) fn tells_nothing(error: &Error) -> bool {
    error.as_db_error().is_none() || is_lost(error)
}
