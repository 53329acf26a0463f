//! Tables in memory, and databases of them.

use std::sync::Arc;

use domesday_content::{NestedTable, ObjectError, OpenTable, RowReader, Tables};
use domesday_model::{ColumnShape, NestedStep, ObjectKey, Reason, RowBatch, TableShape};
use rusqlite::{Connection, MAIN_DB, params_from_iter};

use crate::*;

pub(super) type Cell = Option<Vec<u8>>;

/// How a table behaves.
#[derive(Clone)]
pub(super) struct Table {
    pub(super) columns: Vec<&'static str>,
    pub(super) key: Vec<u32>,
    pub(super) rows: Vec<Vec<Cell>>,
    /// Rows that a batch is filled with.
    pub(super) batch: usize,
    /// The table that this is a range of.
    pub(super) range_of: Option<&'static str>,
    /// Bytes that are kept of a value.
    pub(super) value_max: usize,
    pub(super) end: TableEnd,
}

/// What comes after the rows.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum TableEnd {
    Reached,
    Fails,
    Panics,
    /// A row that lacks values.
    Ragged,
    /// The same rows again.
    Never,
}

impl Table {
    pub(super) fn new(columns: &[&'static str], rows: Vec<Vec<Cell>>) -> Table {
        Table {
            columns: columns.to_vec(),
            key: Vec::new(),
            rows,
            batch: RowBatch::ROWS_MAX,
            range_of: None,
            value_max: RowBatch::VALUE_MAX,
            end: TableEnd::Reached,
        }
    }

    pub(super) fn shape(&self) -> TableShape {
        let column = |name: &&str| ColumnShape { name: (*name).to_owned(), ..ColumnShape::default() };
        TableShape {
            columns: self.columns.iter().map(column).collect(),
            primary_key: self.key.clone(),
            ..TableShape::default()
        }
    }

    /// The table at this path, or a range of another one.
    pub(super) fn open_root(table: &Arc<Table>, path: &ObjectKey) -> Opened {
        let key = table.range_of.map_or(path.clone(), ObjectKey::new);
        Opened::Rows { table: key, rows: Table::open(table) }
    }

    pub(super) fn open(table: &Arc<Table>) -> OpenTable {
        OpenTable {
            shape: Arc::new(table.shape()),
            is_sample: false,
            rows: Box::new(Rows { table: Arc::clone(table), next: 0 }),
        }
    }
}

pub(super) fn text(value: impl AsRef<[u8]>) -> Cell {
    Some(value.as_ref().to_vec())
}

struct Rows {
    table: Arc<Table>,
    next: usize,
}

impl RowReader for Rows {
    fn fill(&mut self, batch: &mut RowBatch) -> Result<(), ObjectError> {
        let Table { rows, end, value_max, .. } = &*self.table;
        while batch.rows() < self.table.batch && !batch.is_full() {
            let Some(row) = rows.get(self.next) else {
                match end {
                    TableEnd::Reached => return Ok(()),
                    TableEnd::Fails => return Err(ObjectError::new(Reason::ReadError, "the server is gone")),
                    TableEnd::Panics => panic!("the rows are bad"),
                    TableEnd::Ragged => batch.columns[0].push(b"lonely"),
                    TableEnd::Never => self.next = 0,
                }
                return Ok(());
            };
            self.next += 1;
            for (column, cell) in batch.columns.iter_mut().zip(row) {
                match cell {
                    None => column.push_null(),
                    Some(value) if value.len() > *value_max => column.push_cut(&value[..*value_max]),
                    Some(value) => column.push(value),
                }
            }
        }
        Ok(())
    }
}

/// Opens these tables; one without rows is not allowed.
pub(super) fn open_all(tables: Vec<(&'static str, Option<Table>)>) -> Tables {
    let nested = |(ordinal, (name, table)): (usize, (&str, Option<Table>))| NestedTable {
        step: NestedStep { name: name.into(), ordinal: ordinal as u32 },
        table: table
            .map(|table| Table::open(&Arc::new(table)))
            .ok_or_else(|| ObjectError::new(Reason::PermissionDenied, "not allowed")),
    };
    Box::new(tables.into_iter().enumerate().map(nested))
}

/// A file that is a database of these tables.
pub(super) fn database_file(tables: &[(&str, &Table)]) -> Vec<u8> {
    let mut database = Connection::open_in_memory().unwrap();
    for (name, table) in tables {
        let is_key = |column: usize| table.key == [column as u32];
        let column =
            |(at, name)| format!("{name} {}", if is_key(at) { "INTEGER PRIMARY KEY" } else { "TEXT" });
        let columns = table.columns.iter().enumerate().map(column).collect::<Vec<_>>().join(", ");
        database.execute(&format!("CREATE TABLE {name} ({columns})"), []).unwrap();
        let places = vec!["?"; table.columns.len()].join(", ");
        for row in &table.rows {
            let text = |cell: &Cell| cell.as_ref().map(|cell| String::from_utf8(cell.clone()).unwrap());
            let values = params_from_iter(row.iter().map(text));
            database.execute(&format!("INSERT INTO {name} VALUES ({places})"), values).unwrap();
        }
    }
    database.serialize(MAIN_DB).unwrap().to_vec()
}

/// A file that begins as a database does and is none, with `text` at its end.
pub(super) fn damaged_database(text: &str) -> Vec<u8> {
    [&b"SQLite format 3\0\x10\0\x01\x01\0\x40\x20\x20"[..], &[0; 80], text.as_bytes()].concat()
}
