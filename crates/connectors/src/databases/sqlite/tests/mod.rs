//! Files made with SQLite itself, and read as data sources.

mod hostile;
mod listing;
mod reading;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use domesday_connector::{Connector, ConnectorError, ConnectorFactory, Surroundings};
use domesday_content::{ObjectError, OpenTable};
use domesday_model::{ListedObject, ObjectKey, RecordKind, RowBatch, TableShape, UnitRecord};
use domesday_scheduler::Opened;
use rusqlite::Connection;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use super::{SqliteConfig, SqliteFactory};

/// A file in a folder of its own.
pub(super) struct File {
    pub folder: TempDir,
    pub path: PathBuf,
}

impl File {
    /// Made by this SQL.
    pub fn new(sql: &str) -> File {
        File::with(|connection| connection.execute_batch(sql).unwrap())
    }

    pub fn with(fill: impl FnOnce(&mut Connection)) -> File {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("app 100%?#.db");
        fill(&mut Connection::open(&path).unwrap());
        File { folder, path }
    }

    pub fn source(&self) -> Source {
        self.source_with(json!({}))
    }

    /// With these fields beside the path.
    pub fn source_with(&self, fields: Value) -> Source {
        let mut configuration = fields;
        configuration["path"] = json!(self.path);
        let surroundings = Surroundings::default();
        Source(SqliteFactory.create(&configuration, &surroundings).unwrap())
    }

    /// What is in the folder beside the file.
    pub fn beside(&self) -> Vec<String> {
        let names = std::fs::read_dir(self.folder.path()).unwrap();
        let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| Path::new(name) != self.path.file_name().unwrap()).collect()
    }
}

pub(super) struct Source(Arc<dyn Connector>);

/// A column's values, row by row; `None` is null.
pub(super) type Rows = Vec<Vec<Option<Vec<u8>>>>;

impl Source {
    pub fn list(&self, container: &str) -> Result<Vec<UnitRecord>, ConnectorError> {
        Runtime::new().unwrap().block_on(async {
            let mut listing = self.0.list(&ObjectKey::new(container), None).await?;
            let mut records = Vec::new();
            loop {
                let batch = listing.next_batch(3).await?;
                if batch.is_empty() {
                    return Ok(records);
                }
                records.extend(batch);
            }
        })
    }

    /// The records of the tables by name.
    pub fn tables(&self) -> BTreeMap<String, UnitRecord> {
        let records = self.list("").unwrap();
        records.into_iter().map(|record| (String::from_utf8(record.name.clone()).unwrap(), record)).collect()
    }

    pub fn shape(&self, table: &str) -> TableShape {
        serde_json::from_str(self.tables()[table].metadata.as_deref().unwrap()).unwrap()
    }

    pub fn open(&self, container: &str, record: &UnitRecord) -> Result<OpenTable, ObjectError> {
        let object = ListedObject::in_container(&ObjectKey::new(container), record);
        self.0.open(&object).and_then(Opened::into_rows)
    }

    /// All that is read of a table, its parts in their order.
    pub fn rows(&self, table: &str) -> Result<Rows, ObjectError> {
        let record = &self.tables()[table];
        if record.kind != RecordKind::PartedTable {
            return read(&mut self.open("", record)?);
        }
        let mut rows = Vec::new();
        for part in self.list(table).unwrap() {
            rows.extend(read(&mut self.open(table, &part)?)?);
        }
        Ok(rows)
    }
}

pub(super) fn read(table: &mut OpenTable) -> Result<Rows, ObjectError> {
    let mut rows = Vec::new();
    loop {
        let mut batch = RowBatch::new(table.shape.columns.len());
        table.rows.fill(&mut batch)?;
        if batch.rows() == 0 {
            return Ok(rows);
        }
        for row in 0..batch.rows() {
            rows.push(batch.columns.iter().map(|column| column.get(row).map(<[u8]>::to_vec)).collect());
        }
    }
}

/// The text of one column.
pub(super) fn texts(rows: &Rows, column: usize) -> Vec<String> {
    let text = |row: &Vec<Option<Vec<u8>>>| match &row[column] {
        Some(value) => String::from_utf8_lossy(value).into_owned(),
        None => "(null)".to_owned(),
    };
    rows.iter().map(text).collect()
}
