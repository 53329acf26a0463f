//! A table that is read whole, parted into ranges of its primary key.
//!
//! Each page of ranges is committed before the next is asked for, with the last key as the place to go on from.
//! A range begins after the key that the one before it ends with, so that the ranges of one listing have every
//! row once, whatever is written to the table meanwhile.

use std::sync::Arc;

use async_trait::async_trait;
use domesday_connector::{ConnectorError, Listing};
use domesday_model::{Reason, RecordKind, UnitRecord, VersionMarks};
use serde::{Deserialize, Serialize};

use super::connector::{Source, no_such};
use super::dialect::{FoundTable, RowKey, Session, TableName};
use super::listing::ask;

/// Ranges of one page.
const PARTS_PER_PAGE: usize = 16;

/// The rows of a range: those after one key, up to and with another. It is a record's metadata.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Bounds {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<RowKey>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<RowKey>,
}

/// Where a listing goes on.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Position {
    /// How many ranges there are already.
    parts: u64,
    /// The last key of the last one.
    after: Option<RowKey>,
}

pub(super) struct PartListing {
    source: Arc<Source>,
    table: TableName,
    found: FoundTable,
    /// `None` when all ranges were given.
    session: Option<Box<dyn Session>>,
    position: Position,
}

impl PartListing {
    pub async fn begin(
        source: &Arc<Source>,
        table: TableName,
        resume_point: Option<&str>,
    ) -> Result<PartListing, ConnectorError> {
        let position = match resume_point.map(serde_json::from_str) {
            None => Position::default(),
            Some(Ok(position)) => position,
            Some(Err(_)) => {
                let detail = format!("{}: this is no place where a listing goes on", source.key(&table));
                return Err(ConnectorError::Container { reason: Reason::ReadError, detail });
            }
        };
        let database = (!table.database.is_empty()).then_some(table.database.as_str());
        let session = source.connect(database).await?;
        let name = table.clone();
        let (session, found) = ask!(session, session => session.table(&name).await);
        let Some(found) = found else { return Err(no_such(&source.key(&table))) };
        if let Some(reason) = found.refusal {
            let detail = format!("{}: {}", source.key(&table), reason.describe());
            return Err(ConnectorError::Container { reason, detail });
        }
        source.keep_shape(&table, &Arc::new(found.shape.clone()));
        Ok(PartListing { source: Arc::clone(source), table, found, session: Some(session), position })
    }

    fn part(&mut self, to: Option<RowKey>) -> UnitRecord {
        let bounds = Bounds { after: self.position.after.take(), to: to.clone() };
        let metadata = serde_json::to_string(&bounds).expect("keys can be written as JSON");
        let name = format!("{:016x}", self.position.parts).into_bytes();
        self.position = Position { parts: self.position.parts + 1, after: to };
        UnitRecord {
            kind: RecordKind::Rows,
            name,
            size: self.source.bytes_of(&self.found, self.source.config.part_rows),
            marks: VersionMarks::default(),
            reason: None,
            metadata: Some(metadata.into()),
        }
    }
}

#[async_trait]
impl Listing for PartListing {
    async fn next_batch(&mut self, max: usize) -> Result<Vec<UnitRecord>, ConnectorError> {
        let mut records = Vec::new();
        while records.len() < max.clamp(1, PARTS_PER_PAGE) {
            let Some(session) = self.session.take() else { break };
            let (table, shape) = (self.table.clone(), self.found.shape.clone());
            let (after, rows) = (self.position.after.clone(), self.source.config.part_rows);
            // Without a key, which it may have lost, there is one range of all.
            let boundary = if shape.primary_key.is_empty() {
                None
            } else {
                let (session, boundary) =
                    ask!(session, session => session.boundary(&table, &shape, after.as_ref(), rows).await);
                self.session = boundary.is_some().then_some(session);
                boundary
            };
            records.push(self.part(boundary));
        }
        Ok(records)
    }

    fn resume_point(&self) -> Option<String> {
        self.session.as_ref()?;
        Some(serde_json::to_string(&self.position).expect("keys can be written as JSON"))
    }
}
