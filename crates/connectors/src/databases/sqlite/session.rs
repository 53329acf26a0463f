//! An SQLite file as a dialect: one without levels above its tables, and without a server.
//!
//! The library blocks. Sessions are asked on the runtime of remote reads, whose other work goes on elsewhere
//! meanwhile.

use std::path::PathBuf;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use async_trait::async_trait;
use domesday_connector::ConnectorError;
use domesday_content::sqlite::{Cells, Database, Entry, Layout, Span, SqliteError, too_many, unread_log};
use domesday_model::{Reason, TableShape};
use tokio::runtime::Handle;
use tokio::task::block_in_place;

use super::super::dialect::{Dialect, Found, FoundTable, Levels, RowKey, Session, TableName, Which};
use super::super::rows::RowSink;

/// Rows of a view that are read when everything is: its tables are read whole anyway.
const VIEW_ROWS_MAX: u64 = 1_000_000;

pub(super) struct SqliteDialect {
    pub path: PathBuf,
    /// How long one row may take.
    pub patience: Duration,
    /// Also the library's own tables.
    pub system: bool,
}

struct SqliteSession {
    database: Database,
    path: PathBuf,
    system: bool,
    /// Rows between all the boundaries that were asked for.
    parted: u64,
}

#[async_trait]
impl Dialect for SqliteDialect {
    fn levels(&self) -> Levels {
        Levels::None
    }

    async fn connect(&self, _: Option<&str>) -> Result<Box<dyn Session>, ConnectorError> {
        let open = || {
            // The library follows no links: a file may be one, the one it leads to may not.
            let path = self.path.canonicalize().map_err(SqliteError::from)?;
            let database = Database::open(&path, self.patience)?;
            Ok::<_, SqliteError>(SqliteSession { database, path, system: self.system, parted: 0 })
        };
        let told = |error: SqliteError| ConnectorError::Container {
            reason: error.reason(),
            detail: format!("{}: {error}", self.path.display()),
        };
        Ok(Box::new(block_in_place(open).map_err(told)?))
    }
}

impl SqliteSession {
    fn found(&self, entry: Entry) -> FoundTable {
        if entry.is_virtual {
            return refused(entry.name, Reason::VirtualTable);
        }
        if entry.is_system() && !self.system {
            return refused(entry.name, Reason::ServersOwn);
        }
        match self.database.layout(&entry) {
            Ok(layout) => FoundTable {
                bytes: layout.bytes(&self.database),
                refusal: self.database.refusal(&layout),
                name: entry.name,
                shape: layout.shape,
                unread_columns: Vec::new(),
            },
            Err(error) => {
                tracing::warn!(table = entry.name, %error, "table cannot be read");
                refused(entry.name, error.reason())
            }
        }
    }

    fn layout(&self, table: &TableName, shape: &TableShape) -> Result<Layout, SqliteError> {
        let changed = || SqliteError::Changed(table.table.clone());
        let layout = self.database.layout(&self.database.entry(&table.table)?.ok_or_else(changed)?)?;
        let is_same = layout.shape.columns == shape.columns && layout.shape.primary_key == shape.primary_key;
        if is_same { Ok(layout) } else { Err(changed()) }
    }

    fn read(&self, layout: &Layout, which: &Which, sink: &mut RowSink) -> Result<(), SqliteError> {
        let runtime = Handle::current();
        let mut each = |cells: &Cells<'_>| {
            cells.push(sink.batch())?;
            let mut ended = pin!(sink.end_row());
            // Almost every row is added to the batch and that is all.
            Ok(match ended.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(is_wanted) => is_wanted,
                Poll::Pending => runtime.block_on(ended),
            })
        };
        let span = match which {
            Which::Sample { rows, seed } => return self.database.sample(layout, *rows, *seed, &mut each),
            Which::All if layout.is_view() => Span::first(VIEW_ROWS_MAX),
            Which::All => Span::default(),
            Which::Range { after, to } => Span::between(after.as_deref(), to.as_deref())?,
        };
        self.database.select(layout, &span, &mut each)
    }
}

fn unreadable(error: SqliteError) -> ConnectorError {
    ConnectorError::Container { reason: error.reason(), detail: error.to_string() }
}

fn refused(name: String, reason: Reason) -> FoundTable {
    let shape = TableShape::default();
    FoundTable { name, shape, bytes: 0, unread_columns: Vec::new(), refusal: Some(reason) }
}

#[async_trait]
impl Session for SqliteSession {
    async fn databases(&mut self) -> Result<Vec<Found>, ConnectorError> {
        Ok(Vec::new())
    }

    async fn schemas(&mut self) -> Result<Vec<Found>, ConnectorError> {
        Ok(Vec::new())
    }

    async fn tables(
        &mut self,
        _: &str,
        after: Option<&str>,
        max: usize,
    ) -> Result<Vec<FoundTable>, ConnectorError> {
        block_in_place(|| {
            let entries = self.database.entries(after, max).map_err(unreadable)?;
            let is_last = entries.len() < max;
            let mut found: Vec<FoundTable> = entries.into_iter().map(|entry| self.found(entry)).collect();
            // What is not read of the file is named among its tables, where its name would be.
            let is_here = |log: &str| {
                after.is_none_or(|after| log > after)
                    && (is_last || found.last().is_some_and(|last| log < last.name.as_str()))
            };
            if let Some(log) = unread_log(&self.path).filter(|log| is_here(log)) {
                let place = found.partition_point(|table| table.name < log);
                found.insert(place, refused(log, Reason::UnreadLog));
            }
            Ok(found)
        })
    }

    async fn table(&mut self, table: &TableName) -> Result<Option<FoundTable>, ConnectorError> {
        block_in_place(|| {
            let entry = self.database.entry(&table.table).map_err(unreadable)?;
            Ok(entry.map(|entry| self.found(entry)))
        })
    }

    async fn boundary(
        &mut self,
        table: &TableName,
        shape: &TableShape,
        after: Option<&RowKey>,
        rows: u64,
    ) -> Result<Option<RowKey>, ConnectorError> {
        block_in_place(|| {
            let layout = self.layout(table, shape)?;
            // In a damaged file a search may end anywhere, and ranges would go round for ever.
            self.parted += rows;
            if self.parted > self.database.rows_max() + rows {
                return Err(too_many(&layout));
            }
            self.database.boundary(&layout, after.map(Vec::as_slice), rows)
        })
        .map_err(unreadable)
    }

    async fn read(
        &mut self,
        table: &TableName,
        shape: &TableShape,
        which: &Which,
        sink: &mut RowSink,
    ) -> Result<(), ConnectorError> {
        block_in_place(|| SqliteSession::read(self, &self.layout(table, shape)?, which, sink))
            .map_err(unreadable)
    }
}
