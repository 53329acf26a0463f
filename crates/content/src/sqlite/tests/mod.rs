//! Files made with SQLite itself, as a scan meets them.

mod hostile;
mod tables;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use domesday_model::RowBatch;
use rusqlite::Connection;
use tempfile::TempDir;

use super::open_tables;
use crate::{ObjectError, OpenTable, ReadAt};

/// A file in a folder of its own.
struct File {
    folder: TempDir,
    path: PathBuf,
}

impl File {
    /// Made by this SQL.
    fn new(sql: &str) -> File {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("app 100%?#.db");
        Connection::open(&path).unwrap().execute_batch(sql).unwrap();
        File { folder, path }
    }

    /// What is in the folder beside the file.
    fn beside(&self) -> Vec<String> {
        let names = std::fs::read_dir(self.folder.path()).unwrap();
        let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| Path::new(name) != self.path.file_name().unwrap()).collect()
    }
}

/// A column's values, row by row; `None` is null.
type Rows = Vec<Vec<Option<Vec<u8>>>>;

fn read(table: &mut OpenTable) -> Result<Rows, ObjectError> {
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
fn texts(rows: &Rows, column: usize) -> Vec<String> {
    rows.iter()
        .map(|row| String::from_utf8_lossy(row[column].as_deref().unwrap_or_default()).into_owned())
        .collect()
}
