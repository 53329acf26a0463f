//! What one kind of database server has to say: how its levels are listed, and how rows are read from it.
//!
//! A dialect knows the server's protocol, its catalogue and its types. What levels mean to a scan, which of them
//! are left out, how fast and how much is read, is decided once for all of them, next door.

use async_trait::async_trait;
use domesday_connector::ConnectorError;
use domesday_model::{Reason, TableShape};

use super::rows::RowSink;

/// One kind of server.
#[async_trait]
pub(crate) trait Dialect: Send + Sync + 'static {
    /// Which levels there are above tables.
    fn levels(&self) -> Levels;

    /// Connects to a database, or to the one where the server lets everybody in. The session is read-only, has
    /// the source's time limits, and says who it is.
    async fn connect(&self, database: Option<&str>) -> Result<Box<dyn Session>, ConnectorError>;
}

/// The levels above tables.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Levels {
    /// Databases, schemas, tables.
    DatabasesAndSchemas,
    /// Databases, tables: the two words mean the same.
    Databases,
    /// Only tables: a file.
    None,
}

impl Levels {
    /// How many there are.
    pub fn count(self) -> usize {
        match self {
            Levels::DatabasesAndSchemas => 2,
            Levels::Databases => 1,
            Levels::None => 0,
        }
    }
}

/// A connection, for one reader at a time. One that has given an error is not used again. It may be dropped at
/// any time, also while it waits: the server is not to go on for nobody.
#[async_trait]
pub(crate) trait Session: Send {
    /// All databases of the server, those without permission with their reason.
    async fn databases(&mut self) -> Result<Vec<Found>, ConnectorError>;

    /// All schemas of the connected database.
    async fn schemas(&mut self) -> Result<Vec<Found>, ConnectorError>;

    /// Tables, views and materialised views of a schema, in the order of their names after `after`, at most `max`.
    /// `schema` is empty where the kind of server has none.
    async fn tables(
        &mut self,
        schema: &str,
        after: Option<&str>,
        max: usize,
    ) -> Result<Vec<FoundTable>, ConnectorError>;

    /// One table, as [`Session::tables`] has it; `None` when it is gone.
    async fn table(&mut self, table: &TableName) -> Result<Option<FoundTable>, ConnectorError>;

    /// The key of the row that is `rows` rows after `after` in the order of the primary key; `None` when there
    /// are not so many.
    async fn boundary(
        &mut self,
        table: &TableName,
        shape: &TableShape,
        after: Option<&RowKey>,
        rows: u64,
    ) -> Result<Option<RowKey>, ConnectorError>;

    /// Reads rows into the sink: a value for each column of the shape, in its order, those longer than
    /// [`RowBatch::VALUE_MAX`](domesday_model::RowBatch::VALUE_MAX) cut by the server. Ends early, without an
    /// error, when the sink wants no more. What is missing of the rows is named to the sink; a column that cannot be
    /// read has no values.
    async fn read(
        &mut self,
        table: &TableName,
        shape: &TableShape,
        which: &Which,
        sink: &mut RowSink,
    ) -> Result<(), ConnectorError>;
}

/// A database or schema.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Found {
    pub name: String,
    /// The server's own, left out unless asked for.
    pub is_system: bool,
    /// Why it cannot be read, when that is known already.
    pub refusal: Option<Reason>,
}

/// A table or view.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct FoundTable {
    pub name: String,
    pub shape: TableShape,
    /// Its size, by the server's own count.
    pub bytes: u64,
    /// Columns that cannot be read, each with the reason. They are not in the shape.
    pub unread_columns: Vec<(String, Reason)>,
    /// Why it cannot be read, when that is known already.
    pub refusal: Option<Reason>,
}

/// Where a table is; `schema` is empty where the kind of server has none, and `database` for a file.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct TableName {
    pub database: String,
    pub schema: String,
    pub table: String,
}

impl TableName {
    /// From the names of its levels and its own.
    pub fn new(levels: Levels, names: &[String]) -> TableName {
        let name = |at: usize| names.get(at).cloned().unwrap_or_default();
        match levels {
            Levels::DatabasesAndSchemas => TableName { database: name(0), schema: name(1), table: name(2) },
            Levels::Databases => TableName { database: name(0), schema: String::new(), table: name(1) },
            Levels::None => TableName { table: name(0), ..TableName::default() },
        }
    }
}

/// The primary key of a row: the text of each of its columns, as the server writes and reads it.
pub(crate) type RowKey = Vec<String>;

/// Which rows of a table to read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Which {
    /// About so many, spread over the table, the same ones for the same seed while the table stays as it is.
    Sample { rows: u64, seed: u64 },
    /// All of them, in whatever order.
    All,
    /// Those after one key up to and with another, in the order of the primary key.
    Range { after: Option<RowKey>, to: Option<RowKey> },
}
