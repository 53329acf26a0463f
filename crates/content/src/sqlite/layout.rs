//! What is in a file: its tables and views, their columns, and how a row of each is found again.
//!
//! Virtual tables are named and left out, because opening one runs the module that makes it; what they are made of
//! lies in ordinary tables beside them. A view is read when its rows come one by one. One that has to sort, group
//! or repeat would first be computed whole, in memory that the file decides on: it is named, and its tables are
//! read anyway.

use domesday_model::{ColumnShape, Reason, TableKind, TableShape};
use rusqlite::OptionalExtension;

use super::database::{Database, VIEW_LOOKS_MAX};
use super::error::SqliteError;

/// The names by which a table's row number goes, unless columns are called so.
const ROWID_NAMES: [&str; 3] = ["rowid", "_rowid_", "oid"];
/// How the library's own tables are called.
const SYSTEM_PREFIX: &str = "sqlite_";
/// What a plan may be made of that gives its rows one by one.
const STREAMING_STEPS: &[&str] = &[
    "SCAN ",
    "SEARCH ",
    "COMPOUND QUERY",
    "LEFT-MOST SUBQUERY",
    "UNION ALL",
    "SCALAR SUBQUERY",
    "CORRELATED SCALAR SUBQUERY",
    "MULTI-INDEX OR",
    "INDEX ",
];
/// What none of them may say.
const HOLDING_STEPS: &[&str] = &["TEMP B-TREE", "VIRTUAL TABLE", "AUTOMATIC"];
/// Bytes that a value is taken to have, for the size of a table.
const VALUE_LEN_TYPICAL: u64 = 16;

/// An entry of the schema that has rows.
pub struct Entry {
    pub name: String,
    pub is_view: bool,
    pub is_virtual: bool,
}

impl Entry {
    pub fn is_system(&self) -> bool {
        self.name.starts_with(SYSTEM_PREFIX)
    }
}

/// A table or view, as it is read.
pub struct Layout {
    pub name: String,
    pub shape: TableShape,
    pub(super) key: Key,
    /// Columns whose values are computed when they are read.
    pub(super) generated: Vec<bool>,
}

/// What the rows of a table are ordered and found by.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Key {
    /// The row number, by this name.
    Rowid(&'static str),
    /// The columns of the shape's primary key.
    Columns,
    /// Nothing: they come as they come.
    None,
}

impl Layout {
    /// Written as SQL, in the order of the key.
    pub(super) fn key_expressions(&self) -> Vec<String> {
        match &self.key {
            Key::Rowid(name) => vec![format!("t.{name}")],
            Key::Columns => {
                let column = |&index: &u32| column(&self.shape.columns[index as usize].name);
                self.shape.primary_key.iter().map(column).collect()
            }
            Key::None => Vec::new(),
        }
    }

    pub fn is_view(&self) -> bool {
        self.shape.kind == TableKind::View
    }

    /// Its size, of which only the rows are known.
    pub fn bytes(&self, database: &Database) -> u64 {
        let row = VALUE_LEN_TYPICAL * self.shape.columns.len() as u64;
        self.shape.row_estimate.unwrap_or(0).saturating_mul(row).min(database.bytes)
    }
}

/// A name in SQL, whatever it is.
pub(super) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A column of the table that is read, never taken for a text.
pub(super) fn column(name: &str) -> String {
    format!("t.{}", quoted(name))
}

impl Database {
    /// Tables and views in the order of their names after `after`, at most `max`.
    pub fn entries(&self, after: Option<&str>, max: usize) -> Result<Vec<Entry>, SqliteError> {
        self.schema("name > ?1", after.unwrap_or(""), max)
    }

    /// The table or view of this name.
    pub fn entry(&self, name: &str) -> Result<Option<Entry>, SqliteError> {
        Ok(self.schema("name = ?1", name, 1)?.pop())
    }

    fn schema(&self, which: &str, name: &str, max: usize) -> Result<Vec<Entry>, SqliteError> {
        let sql = format!(
            "SELECT name, type = 'view', coalesce(rootpage, 0) = 0 FROM main.sqlite_schema
             WHERE type IN ('table', 'view') AND {which} ORDER BY name LIMIT ?2"
        );
        let read = || {
            let mut statement = self.connection.prepare_cached(&sql)?;
            let entry = |row: &rusqlite::Row<'_>| {
                // One that is no text cannot be asked for: there is nothing by the other name that it gets.
                let name = String::from_utf8_lossy(row.get_ref(0)?.as_bytes()?).into_owned();
                let is_view = row.get(1)?;
                Ok(Entry { name, is_view, is_virtual: !is_view && row.get(2)? })
            };
            statement.query_map((name, max as i64), entry)?.collect::<rusqlite::Result<Vec<Entry>>>()
        };
        self.watch.allow(0);
        read().map_err(|error| self.error(error))
    }

    /// How an entry is read, or why it is not.
    pub fn layout(&self, entry: &Entry) -> Result<Layout, SqliteError> {
        self.watch.allow(VIEW_LOOKS_MAX);
        let mut layout = self.columns(entry).map_err(|error| self.error(error))?;
        if layout.shape.columns.is_empty() {
            return Err(SqliteError::Refused(format!("`{}` has no columns that can be read", entry.name)));
        }
        if !entry.is_view {
            self.find_key(&mut layout).map_err(|error| self.error(error))?;
            layout.shape.row_estimate = self.estimate(&layout);
        }
        Ok(layout)
    }

    /// Why an entry is left out, though it could be asked for.
    pub fn refusal(&self, layout: &Layout) -> Option<Reason> {
        let is_streaming = || self.is_streaming(&format!("SELECT * FROM main.{}", quoted(&layout.name)));
        (layout.is_view() && !is_streaming()).then_some(Reason::ComputedView)
    }

    /// The columns of a table or view, and of a table those of its declared key.
    fn columns(&self, entry: &Entry) -> rusqlite::Result<Layout> {
        let sql = "SELECT name, type, pk, hidden FROM pragma_table_xinfo(?1, 'main') ORDER BY cid";
        let mut statement = self.connection.prepare_cached(sql)?;
        let mut rows = statement.query([&entry.name])?;
        let kind = if entry.is_view { TableKind::View } else { TableKind::Table };
        let mut shape = TableShape { kind, ..TableShape::default() };
        let (mut generated, mut declared) = (Vec::new(), Vec::new());
        while let Some(row) = rows.next()? {
            let text = |index: usize| -> rusqlite::Result<String> {
                let value = row.get_ref(index)?;
                Ok(value.as_bytes_or_null()?.map(String::from_utf8_lossy).unwrap_or_default().into_owned())
            };
            let (place, hidden): (u32, u32) = (row.get(2)?, row.get(3)?);
            if place > 0 {
                declared.push((place, shape.columns.len() as u32));
            }
            generated.push(hidden > 1);
            let type_name = text(1)?;
            let type_name =
                type_name.strip_suffix("GENERATED ALWAYS").unwrap_or(&type_name).trim().to_owned();
            shape.columns.push(ColumnShape { name: text(0)?, type_name, comment: None });
        }
        declared.sort_unstable();
        shape.primary_key = declared.into_iter().map(|(_, index)| index).collect();
        Ok(Layout { name: entry.name.clone(), shape, key: Key::None, generated })
    }

    /// Finds out by what the rows are ordered. A row number that is no column becomes one: it is what a row of such
    /// a table is found again by.
    fn find_key(&self, layout: &mut Layout) -> rusqlite::Result<()> {
        let columns = &mut layout.shape.columns;
        let is_free = |name: &&str| !columns.iter().any(|column| column.name.eq_ignore_ascii_case(name));
        let table = quoted(&layout.name);
        let exists =
            |name: &str| self.connection.prepare(&format!("SELECT t.{name} FROM main.{table} AS t")).is_ok();
        match ROWID_NAMES.into_iter().find(is_free) {
            Some(name) if exists(name) => {
                layout.key = Key::Rowid(name);
                let sql = "SELECT 1 FROM pragma_index_list(?1) WHERE origin = 'pk'";
                let has_index = self.connection.prepare_cached(sql)?.exists([&layout.name])?;
                // One that is the row number needs no index.
                if layout.shape.primary_key.len() != 1 || has_index {
                    layout.shape.primary_key = vec![columns.len() as u32];
                    layout.generated.push(false);
                    columns.push(ColumnShape {
                        name: name.to_owned(),
                        type_name: "INTEGER".to_owned(),
                        comment: None,
                    });
                }
            }
            _ => {
                layout.key = Key::Columns;
                let order = layout.key_expressions().join(", ");
                let sql = format!("SELECT 1 FROM main.{table} AS t ORDER BY {order}");
                if layout.shape.primary_key.is_empty() || !self.is_streaming(&sql) {
                    layout.key = Key::None;
                    layout.shape.primary_key.clear();
                }
            }
        }
        Ok(())
    }

    /// How many rows there may be: as the file's own statistics have it, or by the first and last row number.
    fn estimate(&self, layout: &Layout) -> Option<u64> {
        let known = || -> rusqlite::Result<Option<String>> {
            let sql = "SELECT stat FROM main.sqlite_stat1 WHERE tbl = ?1 ORDER BY idx LIMIT 1";
            self.connection.prepare(sql)?.query_row([&layout.name], |row| row.get(0)).optional()
        };
        let first = |text: String| text.split(' ').next()?.parse::<u64>().ok();
        let counted = known().ok().flatten().and_then(first);
        let spanned = || {
            let Key::Rowid(_) = layout.key else { return None };
            let (first, last) = self.rowids(layout, None).ok()??;
            Some(last.abs_diff(first).saturating_add(1))
        };
        counted.or_else(spanned).map(|rows| rows.min(self.rows_max()))
    }

    /// Whether a statement gives its rows one by one.
    fn is_streaming(&self, sql: &str) -> bool {
        let plan = || -> rusqlite::Result<Vec<String>> {
            let mut statement = self.connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}"))?;
            statement.query_map([], |row| row.get(3))?.collect()
        };
        let is_streaming = |step: &String| {
            STREAMING_STEPS.iter().any(|known| step.starts_with(known))
                && !HOLDING_STEPS.iter().any(|held| step.contains(held))
        };
        self.watch.allow(VIEW_LOOKS_MAX);
        plan().is_ok_and(|plan| plan.iter().all(is_streaming))
    }
}
