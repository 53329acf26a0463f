//! Trying a data source out, as a worker would read it: its credential, whether it is reached, what it lists,
//! and the beginning of one object. The first thing that is wrong ends it.

use std::fmt;
use std::io::Read;
use std::sync::Arc;

use domesday_content::ObjectError;
use domesday_model::{ListedObject, ObjectKey, RecordKind, RowBatch, UnitRecord};
use domesday_scheduler::Opened;

use crate::credentials::Method;
use crate::{Connector, ConnectorError, Surroundings};

/// Entries that are listed of a container, at most.
const ENTRIES_MAX: usize = 1_000;
/// Containers that are looked into for an object to read, at most.
const CONTAINERS_MAX: usize = 16;
/// Bytes of the object that are read, at most.
const BYTES_MAX: u64 = 4 << 10;

/// What is tried, in this order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// The secret is there, and has what the method needs.
    Credential,
    /// The source answers, and lets us in.
    Reach,
    /// Its root can be listed.
    List,
    /// An object can be opened and read.
    Read,
}

impl Step {
    pub const ALL: [Step; 4] = [Step::Credential, Step::Reach, Step::List, Step::Read];

    pub fn as_str(self) -> &'static str {
        match self {
            Step::Credential => "credential",
            Step::Reach => "reach",
            Step::List => "list",
            Step::Read => "read",
        }
    }
}

/// How far a trial came.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Trial {
    /// What each step that went well came upon, in the order of [`Step::ALL`].
    pub passed: Vec<String>,
    /// What is wrong with the step after those.
    pub problem: Option<String>,
    /// The kinds of entries of the root's beginning.
    pub objects: usize,
    pub containers: usize,
    pub skipped: usize,
    /// Whether the root has more than was listed.
    pub has_more: bool,
}

impl Trial {
    /// Tries a data source that authenticates with this method, or with its kind's own.
    pub async fn of(
        connector: Arc<dyn Connector>,
        surroundings: &Surroundings,
        method: Option<Method>,
    ) -> Trial {
        let mut trial = Trial::default();
        trial.problem = trial.run(connector, surroundings, method).await.err();
        trial
    }

    async fn run(
        &mut self,
        connector: Arc<dyn Connector>,
        surroundings: &Surroundings,
        method: Option<Method>,
    ) -> Result<(), String> {
        self.passed.push(credential(surroundings, method).await.map_err(told)?);
        connector.test().await.map_err(told)?;
        self.passed.push("it answers".to_owned());
        let entries = beginning(&*connector, &ObjectKey::default()).await.map_err(told)?;
        let counted = self.count(&entries);
        self.passed.push(counted);
        self.passed.push(match first_object(&*connector, entries).await.map_err(told)? {
            None => "there is no object to read".to_owned(),
            Some(object) => read(connector, object).await?,
        });
        Ok(())
    }

    fn count(&mut self, entries: &[UnitRecord]) -> String {
        let of = |is: fn(RecordKind) -> bool| entries.iter().filter(|record| is(record.kind)).count();
        self.objects = of(RecordKind::is_object);
        self.containers = of(RecordKind::is_container);
        self.skipped = of(|kind| kind == RecordKind::Skipped);
        self.has_more = entries.len() >= ENTRIES_MAX;
        let more = if self.has_more { "at least " } else { "" };
        format!(
            "the first level has {more}{} objects, {} containers and {} entries left out",
            self.objects, self.containers, self.skipped
        )
    }
}

fn told(error: impl fmt::Display) -> String {
    error.to_string()
}

async fn credential(surroundings: &Surroundings, method: Option<Method>) -> Result<String, ConnectorError> {
    let reference = surroundings.credential.as_ref();
    match (method, reference) {
        (None | Some(Method::Unauthenticated), None) => Ok("none is asked for".to_owned()),
        (None, Some(reference)) => {
            surroundings.credentials.look_at(reference).await?;
            Ok(format!("{reference} is there"))
        }
        (Some(method), _) => {
            surroundings.look_at_credential(method).await?;
            let from = reference.map(|reference| format!(", from {reference}")).unwrap_or_default();
            Ok(format!("authentication is {}{from}", method.as_str()))
        }
    }
}

/// The first entries of a container.
async fn beginning(
    connector: &dyn Connector,
    container: &ObjectKey,
) -> Result<Vec<UnitRecord>, ConnectorError> {
    let mut listing = connector.list(container, None).await?;
    let mut entries = Vec::new();
    while entries.len() < ENTRIES_MAX {
        let batch = listing.next_batch(ENTRIES_MAX - entries.len()).await?;
        if batch.is_empty() {
            break;
        }
        entries.extend(batch);
    }
    Ok(entries)
}

/// An object of the root, or else of one of the first containers.
async fn first_object(
    connector: &dyn Connector,
    root: Vec<UnitRecord>,
) -> Result<Option<ListedObject>, ConnectorError> {
    let (mut at, mut entries) = (ObjectKey::default(), root);
    let mut containers = Vec::new();
    for _ in 0..CONTAINERS_MAX {
        if let Some(object) = entries.iter().find(|record| record.kind.is_object()) {
            return Ok(Some(ListedObject::in_container(&at, object)));
        }
        let inside = entries.iter().filter(|record| record.kind.is_container());
        containers.extend(inside.take(CONTAINERS_MAX).map(|record| at.join(&record.name)));
        let Some(next) = containers.pop() else { break };
        entries = beginning(connector, &next).await?;
        at = next;
    }
    Ok(None)
}

/// Reads the beginning of an object, off the runtime's threads: opening may block.
async fn read(connector: Arc<dyn Connector>, object: ListedObject) -> Result<String, String> {
    let shown = object.key.to_string();
    match tokio::task::spawn_blocking(move || read_beginning(&*connector, &object)).await {
        Ok(Ok((read, unit))) => Ok(format!("{read} {unit} of {shown}")),
        Ok(Err(error)) => Err(format!("{shown}: {error}")),
        Err(_) => Err(format!("{shown}: reading it panicked")),
    }
}

/// How much was read, and of what.
fn read_beginning(
    connector: &dyn Connector,
    object: &ListedObject,
) -> Result<(u64, &'static str), ObjectError> {
    match connector.open(object)? {
        Opened::Bytes(bytes) => {
            let mut reader = bytes.reader.take(BYTES_MAX);
            Ok((std::io::copy(&mut reader, &mut std::io::sink())?, "bytes"))
        }
        Opened::Rows { rows: mut table, .. } => {
            let mut batch = RowBatch::new(table.shape.columns.len());
            table.rows.fill(&mut batch)?;
            Ok((batch.rows() as u64, "rows"))
        }
        Opened::Tables(tables) => Ok((tables.count() as u64, "tables")),
    }
}
