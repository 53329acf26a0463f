//! Databases that a scan of files, archives or buckets meets: the tables in them, one after another and whole.
//!
//! Where the file lies on this machine it is read there; anything else is read into memory first. Views are left
//! out, because what is in them is in the tables, and would be found twice.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use domesday_content::{Input, ReadAt};
use domesday_model::{Location, NestedStep, ObjectKey, Reason};
use domesday_scheduler::{DatabaseTables, NestedTable, ObjectError, OpenTable, RowBatch, RowReader};
use rusqlite::types::Value;

use super::database::Database;
use super::error::SqliteError;
use super::layout::{Entry, Key, Layout};
use super::read::{Span, too_many};

/// Bytes of a database that is read into memory.
const MEMORY_MAX: u64 = 64 << 20;
/// How long one row may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// Tables whose names are asked for at once.
const ENTRIES_AT_ONCE: usize = 1_000;

/// The tables of a database file: the one at `path`, if there is one here that is just these bytes, or else the
/// bytes.
pub(crate) fn open_tables(
    path: Option<&Path>,
    bytes: &Arc<dyn ReadAt>,
) -> Result<DatabaseTables, ObjectError> {
    // What cannot be opened where it lies, because its path is too long or somebody moved it, is still its bytes.
    let local = path.and_then(|path| Database::open(path, PATIENCE).ok());
    let database = match local {
        Some(database) => database,
        None => in_memory(bytes)?,
    };
    Ok(Box::new(Tables {
        entries: database.entries(None, ENTRIES_AT_ONCE)?.into_iter(),
        database: Arc::new(Mutex::new(database)),
        last: None,
        ordinal: 0,
    }))
}

fn in_memory(bytes: &Arc<dyn ReadAt>) -> Result<Database, ObjectError> {
    let size = bytes.size()?;
    if size > MEMORY_MAX {
        let detail =
            format!("a database of {size} bytes that is not a file here; at most {MEMORY_MAX} are read");
        return Err(ObjectError::new(Reason::ByteLimit, detail));
    }
    Ok(Database::read(Input::Seekable(Arc::clone(bytes)).into_read(), size, PATIENCE)?)
}

struct Tables {
    database: Arc<Mutex<Database>>,
    entries: std::vec::IntoIter<Entry>,
    /// The last name that was asked for.
    last: Option<String>,
    ordinal: u32,
}

impl Iterator for Tables {
    type Item = NestedTable;

    fn next(&mut self) -> Option<NestedTable> {
        loop {
            let entry = match self.entries.next() {
                Some(entry) => entry,
                None => {
                    self.entries = self.more().ok()?.into_iter();
                    self.entries.next()?
                }
            };
            self.last = Some(entry.name.clone());
            if entry.is_view || entry.is_virtual || entry.is_system() {
                continue;
            }
            let step = NestedStep { name: entry.name.clone().into_bytes(), ordinal: self.ordinal };
            self.ordinal += 1;
            return Some(NestedTable { step, table: self.open(&entry).map_err(ObjectError::from) });
        }
    }
}

impl Tables {
    fn more(&self) -> Result<Vec<Entry>, SqliteError> {
        let Some(last) = &self.last else { return Ok(Vec::new()) };
        let database = self.database.lock().unwrap_or_else(PoisonError::into_inner);
        database.entries(Some(last), ENTRIES_AT_ONCE)
    }

    fn open(&self, entry: &Entry) -> Result<OpenTable, SqliteError> {
        let layout = self.database.lock().unwrap_or_else(PoisonError::into_inner).layout(entry)?;
        Ok(OpenTable {
            // Where the database is, the scan core knows.
            table: Arc::new(Location { key: ObjectKey::default(), nested: Vec::new() }),
            shape: Arc::new(layout.shape.clone()),
            is_sample: false,
            rows: Box::new(TableRows {
                database: Arc::clone(&self.database),
                layout,
                next: Span::default(),
                read: 0,
                ended: None,
            }),
        })
    }
}

/// The rows of one table, a batch for each question.
struct TableRows {
    database: Arc<Mutex<Database>>,
    layout: Layout,
    /// Where the next batch begins.
    next: Span,
    read: u64,
    /// How it ended, if it has.
    ended: Option<Result<(), SqliteError>>,
}

impl RowReader for TableRows {
    fn fill(&mut self, batch: &mut RowBatch) -> Result<(), ObjectError> {
        if self.ended.is_none() {
            self.ended = self.go_on(batch);
        }
        // Rows that came before what went wrong are rows.
        match &self.ended {
            Some(Err(error)) if batch.rows() == 0 => Err(ObjectError::new(error.reason(), error.to_string())),
            _ => Ok(()),
        }
    }
}

impl TableRows {
    /// Reads a batch, and says how the table ended if it did.
    fn go_on(&mut self, batch: &mut RowBatch) -> Option<Result<(), SqliteError>> {
        let database = self.database.lock().unwrap_or_else(PoisonError::into_inner);
        let mut last: Option<Vec<Value>> = None;
        let has_key = self.layout.key != Key::None;
        let outcome = database.select(&self.layout, &self.next, &mut |cells| {
            cells.push(batch)?;
            if !batch.is_full() {
                return Ok(true);
            }
            if has_key {
                last = Some(cells.key()?);
            }
            Ok(false)
        });
        self.read += batch.rows() as u64;
        if outcome.is_err() || !batch.is_full() {
            return Some(outcome);
        }
        if self.read > database.rows_max() {
            return Some(Err(too_many(&self.layout)));
        }
        match last {
            Some(key) => self.next.after = Some(key),
            None => self.next.offset = self.read,
        }
        None
    }
}
