//! The connector of every kind of database: which container is which level, and what is asked of the dialect.

use std::collections::VecDeque;
use std::sync::Arc;

use async_trait::async_trait;
use domesday_connector::{Connector, ConnectorError, Listing, ReadAhead, remote};
use domesday_content::ObjectError;
use domesday_model::{ListedObject, ObjectKey, Reason, ResumePolicy, TableKind, TableShape};
use domesday_scheduler::Opened;
use parking_lot::Mutex;

use super::config::{DatabaseConfig, Mode};
use super::dialect::{Dialect, FoundTable, Session, TableName, Which};
use super::limits::Limits;
use super::listing::{NamedListing, TableListing};
use super::name;
use super::packet::PacketTables;
use super::parts::PartListing;
use super::patterns::Patterns;

/// Shapes of tables that are read in parts, kept between parts.
const SHAPES_MAX: usize = 64;
/// How often a server without room is asked within about a second.
const SOON_ATTEMPTS_MAX: u32 = 5;

/// A data source of some kind of database.
pub(super) struct DatabaseConnector(Arc<Source>);

/// What listings and readers of one data source share.
pub(super) struct Source {
    pub dialect: Arc<dyn Dialect>,
    pub config: DatabaseConfig,
    pub patterns: Patterns,
    pub limits: Arc<Limits>,
    /// The last ones used, the youngest at the back.
    shapes: Mutex<VecDeque<(TableName, Arc<TableShape>)>>,
}

/// What a key is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Place {
    /// The databases of a server.
    Server,
    /// The schemas of a database.
    Database(String),
    /// The tables of these levels.
    Tables(Vec<String>),
    /// A table, or what it is read in.
    Table(TableName),
    /// A range of a table's rows.
    Rows(TableName),
}

impl DatabaseConnector {
    /// A connector for a configuration that was checked.
    pub fn new(dialect: Arc<dyn Dialect>, config: DatabaseConfig) -> DatabaseConnector {
        let patterns =
            Patterns::new(&config).expect("patterns were parsed when the configuration was checked");
        let limits = Arc::new(Limits::new(&config));
        DatabaseConnector(Arc::new(Source { dialect, config, patterns, limits, shapes: Mutex::default() }))
    }
}

#[async_trait]
impl Connector for DatabaseConnector {
    fn resume_policy(&self, container: &ObjectKey) -> ResumePolicy {
        match self.0.place(container) {
            Some(Place::Table(_) | Place::Rows(_)) => ResumePolicy::FromResumePoint,
            _ => ResumePolicy::ClearAndRelist,
        }
    }

    async fn list(
        &self,
        container: &ObjectKey,
        resume_point: Option<&str>,
    ) -> Result<Box<dyn Listing>, ConnectorError> {
        let source = &self.0;
        let Some(place) = source.place(container) else { return Err(no_such(container)) };
        Ok(match place {
            Place::Server => Box::new(NamedListing::databases(source).await?),
            Place::Database(database) => Box::new(NamedListing::schemas(source, database).await?),
            Place::Tables(levels) => Box::new(TableListing::begin(source, levels).await?),
            Place::Table(table) => Box::new(PartListing::begin(source, table, resume_point).await?),
            Place::Rows(_) => return Err(no_such(container)),
        })
    }

    fn open(&self, object: &ListedObject) -> Result<Opened, ObjectError> {
        PacketTables::new(&self.0, Arc::new([object.clone()])).open(0)
    }

    fn read_ahead(&self, objects: &Arc<[ListedObject]>) -> Option<Box<dyn ReadAhead>> {
        Some(Box::new(PacketTables::new(&self.0, Arc::clone(objects))))
    }

    async fn test(&self) -> Result<usize, ConnectorError> {
        let source = &self.0;
        if source.config.databases.is_empty() {
            let mut listing = self.list(&ObjectKey::default(), None).await?;
            return Ok(listing.next_batch(TEST_ENTRIES_MAX).await?.len());
        }
        for database in &source.config.databases {
            source.connect(Some(database)).await?;
        }
        Ok(source.config.databases.len())
    }
}

/// Entries that a test of a data source lists, at most.
const TEST_ENTRIES_MAX: usize = 100;

pub(super) fn no_such(container: &ObjectKey) -> ConnectorError {
    let detail = format!("{container}: there is no such database, schema or table");
    ConnectorError::Container { reason: Reason::Vanished, detail }
}

impl Source {
    pub fn place(&self, key: &ObjectKey) -> Option<Place> {
        let levels = self.dialect.levels();
        let mut names = name::split(key)?;
        let above = levels.count();
        Some(match (names.len(), above) {
            (0, 1..) => Place::Server,
            (1, 2) => Place::Database(names.remove(0)),
            (depth, above) if depth == above => Place::Tables(names),
            (depth, above) if depth == above + 1 => Place::Table(TableName::new(levels, &names)),
            (depth, above) if depth == above + 2 => Place::Rows(TableName::new(levels, &names)),
            _ => return None,
        })
    }

    /// The key that findings of a table have.
    pub fn key(&self, table: &TableName) -> ObjectKey {
        let names = [table.database.as_str(), &table.schema, &table.table];
        match self.dialect.levels().count() {
            2 => name::key(&names),
            1 => name::key(&[names[0], names[2]]),
            _ => name::key(&names[2..]),
        }
    }

    /// A session on the runtime of remote reads.
    pub async fn connect(&self, database: Option<&str>) -> Result<Box<dyn Session>, ConnectorError> {
        let (dialect, database) = (Arc::clone(&self.dialect), database.map(str::to_owned));
        remote::run(async move { dial(&*dialect, database.as_deref()).await }).await.map_err(from_object)?
    }

    /// What is read of a table that is one object.
    pub fn which(&self, shape: &TableShape) -> Which {
        let (config, estimate) = (&self.config, shape.row_estimate);
        match config.mode {
            Mode::Full => Which::All,
            Mode::Sample if estimate.is_some_and(|rows| rows <= config.sample_rows) => Which::All,
            Mode::Sample => Which::Sample { rows: config.sample_rows, seed: config.seed },
        }
    }

    /// Whether a table is read in parts: it has a key to part it by, and more rows than a part.
    pub fn is_parted(&self, shape: &TableShape) -> bool {
        self.config.mode == Mode::Full
            && shape.kind == TableKind::Table
            && !shape.primary_key.is_empty()
            && shape.row_estimate.is_none_or(|rows| rows > self.config.part_rows)
    }

    /// Bytes that are likely read of so many rows of a table.
    pub fn bytes_of(&self, found: &FoundTable, rows: u64) -> u64 {
        match found.shape.row_estimate {
            Some(estimate) if estimate > rows => {
                let share = u128::from(found.bytes) * u128::from(rows) / u128::from(estimate);
                u64::try_from(share).unwrap_or(found.bytes)
            }
            _ => found.bytes,
        }
    }

    /// The shape of a table that was seen lately.
    pub fn known_shape(&self, table: &TableName) -> Option<Arc<TableShape>> {
        let shapes = self.shapes.lock();
        shapes.iter().find(|(name, _)| name == table).map(|(_, shape)| Arc::clone(shape))
    }

    pub fn keep_shape(&self, table: &TableName, shape: &Arc<TableShape>) {
        let mut shapes = self.shapes.lock();
        shapes.retain(|(name, _)| name != table);
        if shapes.len() == SHAPES_MAX {
            shapes.pop_front();
        }
        shapes.push_back((table.clone(), Arc::clone(shape)));
    }
}

/// Connects. A server without room may only be seeing off the connection that was there before: it is asked again a few
/// times soon.
pub(super) async fn dial(
    dialect: &dyn Dialect,
    database: Option<&str>,
) -> Result<Box<dyn Session>, ConnectorError> {
    let mut failed = 0;
    loop {
        match dialect.connect(database).await {
            Err(ConnectorError::Wait { .. }) if failed + 1 < SOON_ATTEMPTS_MAX => {
                failed += 1;
                tokio::time::sleep(remote::pause(failed, None)).await;
            }
            connected => return connected,
        }
    }
}

/// What went wrong with the runtime, as a listing has it.
pub(super) fn from_object(error: ObjectError) -> ConnectorError {
    ConnectorError::Container { reason: error.reason, detail: error.detail }
}
