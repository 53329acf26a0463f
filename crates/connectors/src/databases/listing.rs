//! The levels above rows: databases and schemas, which are few and come at once, and tables, which come in pages.

use std::collections::VecDeque;
use std::sync::Arc;

use async_trait::async_trait;
use domesday_connector::{ConnectorError, Listing};
use domesday_model::{Reason, RecordKind, UnitRecord, VersionMarks};

use super::config::Mode;
use super::connector::Source;
use super::dialect::{Found, FoundTable, Levels, Session};
use super::name::encode;

/// Tables asked for at once: their columns may be many.
const TABLES_PER_PAGE: usize = 200;

fn record(kind: RecordKind, name: Vec<u8>) -> UnitRecord {
    UnitRecord { kind, name, size: 0, marks: VersionMarks::default(), reason: None, metadata: None }
}

fn skipped(name: Vec<u8>, reason: Reason) -> UnitRecord {
    UnitRecord { reason: Some(reason), ..record(RecordKind::Skipped, name) }
}

/// Runs what a session is asked on the runtime of remote reads, and gives the session back. One that was given up
/// on, or gave an error, is gone.
macro_rules! ask {
    ($session:expr, $name:ident => $answer:expr) => {{
        let mut $name = $session;
        let (session, answer) = domesday_connector::remote::run(async move {
            let answer = $answer;
            ($name, answer)
        })
        .await
        .map_err($crate::databases::connector::from_object)?;
        (session, answer?)
    }};
}
pub(super) use ask;

/// Databases or schemas.
pub(super) struct NamedListing {
    records: VecDeque<UnitRecord>,
}

impl NamedListing {
    /// The databases of a targeted scan as they are configured: one that is not there, or refuses, is that
    /// database's own failure. Else those that the server says it has.
    pub async fn databases(source: &Arc<Source>) -> Result<NamedListing, ConnectorError> {
        let config = &source.config;
        let targeted = |name: &String| Found { name: name.clone(), is_system: false, refusal: None };
        let mut found: Vec<Found> = config.databases.iter().map(targeted).collect();
        if found.is_empty() {
            let session = source.connect(config.database.as_deref()).await?;
            (_, found) = ask!(session, session => session.databases().await);
        }
        Ok(NamedListing::new(source, &[], RecordKind::Database, found))
    }

    pub async fn schemas(source: &Arc<Source>, database: String) -> Result<NamedListing, ConnectorError> {
        let session = source.connect(Some(&database)).await?;
        let (_, found) = ask!(session, session => session.schemas().await);
        Ok(NamedListing::new(source, &[&database], RecordKind::Schema, found))
    }

    fn new(source: &Source, above: &[&str], kind: RecordKind, mut found: Vec<Found>) -> NamedListing {
        found.sort_by(|a, b| a.name.cmp(&b.name));
        found.dedup_by(|a, b| a.name == b.name);
        let one = |found: Found| {
            let is_excluded = source.patterns.leave_out(&[above, &[found.name.as_str()]].concat());
            let is_servers_own = found.is_system && !source.config.system;
            let left_out = is_excluded.then_some(Reason::Excluded);
            let name = encode(&found.name);
            match left_out.or(is_servers_own.then_some(Reason::ServersOwn)).or(found.refusal) {
                Some(reason) => skipped(name, reason),
                None => record(kind, name),
            }
        };
        NamedListing { records: found.into_iter().map(one).collect() }
    }
}

#[async_trait]
impl Listing for NamedListing {
    async fn next_batch(&mut self, max: usize) -> Result<Vec<UnitRecord>, ConnectorError> {
        let max = max.max(1).min(self.records.len());
        Ok(self.records.drain(..max).collect())
    }
}

/// Tables of a schema, or of a database that has none.
pub(super) struct TableListing {
    source: Arc<Source>,
    levels: Vec<String>,
    /// `None` when there is nothing more to ask for.
    session: Option<Box<dyn Session>>,
    after: Option<String>,
    /// Come, and not given yet.
    records: VecDeque<UnitRecord>,
}

impl TableListing {
    pub async fn begin(source: &Arc<Source>, levels: Vec<String>) -> Result<TableListing, ConnectorError> {
        let session = source.connect(levels.first().map(String::as_str)).await?;
        Ok(TableListing {
            source: Arc::clone(source),
            levels,
            session: Some(session),
            after: None,
            records: VecDeque::new(),
        })
    }

    async fn ask(&mut self, max: usize) -> Result<(), ConnectorError> {
        let Some(session) = self.session.take() else { return Ok(()) };
        let has_schemas = self.source.dialect.levels() == Levels::DatabasesAndSchemas;
        let schema = if has_schemas { self.levels[1].clone() } else { String::new() };
        let after = self.after.clone();
        let max = max.clamp(1, TABLES_PER_PAGE);
        let (session, found) = ask!(session, session => session.tables(&schema, after.as_deref(), max).await);
        if let Some(last) = found.last() {
            self.after = Some(last.name.clone());
            self.session = Some(session);
        }
        for table in found {
            self.push(table);
        }
        Ok(())
    }

    fn push(&mut self, found: FoundTable) {
        let source = &self.source;
        let mut name: Vec<&str> = self.levels.iter().map(String::as_str).collect();
        name.push(&found.name);
        let key = encode(&found.name);
        let is_out = source.patterns.leave_out(&name);
        if let Some(reason) = is_out.then_some(Reason::Excluded).or(found.refusal) {
            self.records.push_back(UnitRecord { size: found.bytes, ..skipped(key, reason) });
            return;
        }
        for (column, reason) in &found.unread_columns {
            let name = [key.as_slice(), b"/", &encode(column)].concat();
            self.records.push_back(skipped(name, *reason));
        }
        let is_parted = source.is_parted(&found.shape);
        let rows = if source.config.mode == Mode::Sample { source.config.sample_rows } else { u64::MAX };
        let shape = serde_json::to_string(&found.shape).expect("a table's shape can be written as JSON");
        self.records.push_back(UnitRecord {
            size: source.bytes_of(&found, rows),
            metadata: Some(shape.into()),
            ..record(if is_parted { RecordKind::PartedTable } else { RecordKind::Table }, key)
        });
    }
}

#[async_trait]
impl Listing for TableListing {
    async fn next_batch(&mut self, max: usize) -> Result<Vec<UnitRecord>, ConnectorError> {
        if self.records.is_empty() {
            self.ask(max).await?;
        }
        let max = max.max(1).min(self.records.len());
        Ok(self.records.drain(..max).collect())
    }
}
