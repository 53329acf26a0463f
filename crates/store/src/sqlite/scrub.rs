//! Taking out of a book what must not be in it any more: what a migration asks this program to do, and what is left of
//! the old pages afterwards.

use domesday_model::{Location, ObjectKey, redact};
use rusqlite::Connection;
use rusqlite::functions::FunctionFlags;
use rusqlite::types::{Value, ValueRef};

use super::Result;

/// What migrations call: `redact` gives a text or a name with its secret parts replaced, and `redact_nested` the same of
/// the way into an object, whose names stand behind their lengths.
pub(super) fn add_functions(connection: &Connection) -> Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC;
    connection
        .create_scalar_function("redact", 1, flags, |context| Ok(changed(context.get_raw(0), redacted)))?;
    connection.create_scalar_function("redact_nested", 1, flags, |context| {
        Ok(changed(context.get_raw(0), redacted_nested))
    })?;
    Ok(())
}

fn changed(value: ValueRef<'_>, change: impl Fn(&[u8]) -> Vec<u8>) -> Option<Value> {
    match value {
        // Parts end and begin beside ASCII: what was UTF-8 stays so.
        ValueRef::Text(text) => Some(Value::Text(String::from_utf8_lossy(&change(text)).into_owned())),
        ValueRef::Blob(blob) => Some(Value::Blob(change(blob))),
        ValueRef::Null | ValueRef::Integer(_) | ValueRef::Real(_) => None,
    }
}

fn redacted(bytes: &[u8]) -> Vec<u8> {
    redact::replaced(bytes, &redact::secret_parts(bytes), |_| redact::REDACTED.into())
}

fn redacted_nested(bytes: &[u8]) -> Vec<u8> {
    let Some(mut nested) = Location::parse_nested(bytes) else { return bytes.to_vec() };
    nested.iter_mut().for_each(|step| step.name = redacted(&step.name));
    Location { key: ObjectKey::default(), nested }.nested_bytes()
}

/// Clears what a migration took out from the pages that became free, and from the log. That it is to be done is in the book:
/// a process that dies before leaves it to the next one.
pub(super) fn finish(connection: &Connection) -> Result<()> {
    const PENDING: &str = "SELECT EXISTS (SELECT 1 FROM book_settings WHERE name = 'scrub')";
    if !connection.query_row(PENDING, [], |row| row.get(0))? {
        return Ok(());
    }
    connection.execute_batch("VACUUM")?;
    let is_busy: bool = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
    // While somebody reads what was there before, it stays: the next who opens the book tries again.
    if !is_busy {
        connection.execute("DELETE FROM book_settings WHERE name = 'scrub'", [])?;
    }
    Ok(())
}
