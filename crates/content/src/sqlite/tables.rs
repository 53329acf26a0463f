//! The tables of a database that lies in an object, one after another and whole.
//!
//! Where the file lies on this machine it is read there; anything else is read into memory first. Views are left
//! out, because what is in them is in the tables, and would be found twice.

use std::sync::Arc;
use std::time::Duration;

use domesday_model::{NestedStep, Reason, RowBatch};
use parking_lot::Mutex;
use rusqlite::types::Value;

use super::database::Database;
use super::error::SqliteError;
use super::layout::{Entry, Key, Layout};
use super::read::{Span, too_many};
use crate::error::ObjectError;
use crate::input::{Input, ReadAt};
use crate::table::{NestedTable, OpenTable, RowReader, Tables};

/// Bytes of a database that is read into memory.
const MEMORY_MAX: u64 = 64 << 20;
/// How long one row may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// Tables whose names are asked for at once.
const ENTRIES_AT_ONCE: usize = 1_000;

/// The tables of a database: of the file where it lies, if the bytes are those of a file of this machine, else of the
/// bytes.
pub fn open_tables(bytes: &Arc<dyn ReadAt>) -> Result<Tables, ObjectError> {
    // What cannot be opened where it lies, because its path is too long or somebody moved it, is still its bytes.
    let local = bytes.local_path().and_then(|path| Database::open(&path, PATIENCE).ok());
    let database = match local {
        Some(database) => database,
        None => in_memory(bytes)?,
    };
    Ok(Box::new(Walk {
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

struct Walk {
    database: Arc<Mutex<Database>>,
    entries: std::vec::IntoIter<Entry>,
    /// The last name that was asked for.
    last: Option<String>,
    ordinal: u32,
}

impl Iterator for Walk {
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

impl Walk {
    fn more(&self) -> Result<Vec<Entry>, SqliteError> {
        let Some(last) = &self.last else { return Ok(Vec::new()) };
        let database = self.database.lock();
        database.entries(Some(last), ENTRIES_AT_ONCE)
    }

    fn open(&self, entry: &Entry) -> Result<OpenTable, SqliteError> {
        let layout = self.database.lock().layout(entry)?;
        Ok(OpenTable {
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
        let database = self.database.lock();
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
