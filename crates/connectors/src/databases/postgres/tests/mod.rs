//! The connector against a real server.

mod conformance;
mod encoding;
mod failing;
mod listing;
mod partial;
mod pooled;
mod reading;
mod sampling;

use std::collections::BTreeMap;
use std::sync::Arc;

use domesday_connector::{Connector, ConnectorFactory, Surroundings};
use domesday_content::ObjectError;
use domesday_model::{ListedObject, ObjectKey, RecordKind, RowBatch, TableShape, UnitRecord};
use domesday_scheduler::Opened;
use domesday_testkit::postgres::Server;
use serde_json::{Value, json};

use super::FACTORY;
use crate::databases::name;

/// A database of a server, and how it is scanned.
struct Fixture {
    server: &'static Server,
    database: String,
}

/// A value as it was read.
type Cell = Option<String>;

impl Fixture {
    /// A new database of the shared server, filled by this SQL.
    fn new(sql: &str) -> Fixture {
        let server = Server::shared();
        let url = server.create_database();
        let database = url.rsplit('/').next().unwrap().split('?').next().unwrap().to_owned();
        let fixture = Fixture { server, database };
        fixture.sql(sql);
        fixture
    }

    fn sql(&self, sql: &str) -> String {
        self.server.psql(&self.database, sql)
    }

    /// A connector that scans this database, with these fields set otherwise.
    fn connector(&self, fields: Value) -> Arc<dyn Connector> {
        let mut configuration = json!({ "databases": [self.database] });
        merge(&mut configuration, fields);
        connector(self.server, configuration)
    }

    fn key(&self, names: &[&str]) -> ObjectKey {
        name::key(&[&[self.database.as_str()], names].concat())
    }

    /// A table's record.
    async fn record(&self, connector: &Arc<dyn Connector>, schema: &str, table: &str) -> UnitRecord {
        let records = list(connector, &self.key(&[schema])).await;
        let named = records.into_iter().find(|record| record.name == name::encode(table));
        named.unwrap_or_else(|| panic!("{table} is not listed"))
    }

    /// The rows of a table, and how they end.
    async fn read_to_its_end(
        &self,
        connector: &Arc<dyn Connector>,
        schema: &str,
        table: &str,
    ) -> (Vec<Vec<Cell>>, Result<(), ObjectError>) {
        let record = self.record(connector, schema, table).await;
        let key = self.key(&[schema, table]);
        let (rows, _, ended) = read_to_its_end(connector, object(key, &record)).await.unwrap();
        (rows, ended)
    }

    /// A new role that may log in, named after the database.
    fn role(&self, options: &str) -> String {
        let role = format!("role_{}", self.database);
        self.sql(&format!("CREATE ROLE {role} LOGIN {options}"));
        role
    }

    /// The rows of a table, and whether they are a sample.
    async fn read(
        &self,
        connector: &Arc<dyn Connector>,
        schema: &str,
        table: &str,
    ) -> Result<(Vec<Vec<Cell>>, bool), ObjectError> {
        let record = self.record(connector, schema, table).await;
        read(connector, object(self.key(&[schema, table]), &record)).await
    }
}

fn merge(configuration: &mut Value, fields: Value) {
    for (name, value) in fields.as_object().unwrap() {
        configuration[name] = value.clone();
    }
}

fn connector(server: &Server, fields: Value) -> Arc<dyn Connector> {
    let mut configuration =
        json!({ "host": "localhost", "port": server.port(), "user": "postgres", "tls": "disable" });
    merge(&mut configuration, fields);
    FACTORY.create(&configuration, &Surroundings::default()).unwrap()
}

/// The object with this key, as it was listed.
fn object(key: ObjectKey, record: &UnitRecord) -> ListedObject {
    ListedObject { key, ..ListedObject::in_container(&ObjectKey::default(), record) }
}

async fn list(connector: &Arc<dyn Connector>, container: &ObjectKey) -> Vec<UnitRecord> {
    let mut listing = connector.list(container, None).await.unwrap();
    let mut records = Vec::new();
    loop {
        match listing.next_batch(1_000).await.unwrap() {
            batch if batch.is_empty() => return records,
            batch => records.extend(batch),
        }
    }
}

/// Everything below the root, by key.
async fn walk(connector: &Arc<dyn Connector>) -> BTreeMap<String, UnitRecord> {
    let (mut found, mut containers) = (BTreeMap::new(), vec![ObjectKey::default()]);
    while let Some(container) = containers.pop() {
        for record in list(connector, &container).await {
            let key = container.join(&record.name);
            if record.kind.is_container() {
                containers.push(key.clone());
            }
            assert_eq!(record.reason.is_some(), record.kind == RecordKind::Skipped);
            assert!(found.insert(key.to_string(), record).is_none(), "{key} is listed twice");
        }
    }
    found
}

fn shape(record: &UnitRecord) -> TableShape {
    serde_json::from_str(record.metadata.as_deref().unwrap()).unwrap()
}

/// Reads as the scan core does: on a thread that is no runtime's.
async fn read(
    connector: &Arc<dyn Connector>,
    object: ListedObject,
) -> Result<(Vec<Vec<Cell>>, bool), ObjectError> {
    let (rows, is_sample, ended) = read_to_its_end(connector, object).await?;
    ended.map(|()| (rows, is_sample))
}

/// What is read up to the end or an error, whether it is a sample, and how it ended.
async fn read_to_its_end(
    connector: &Arc<dyn Connector>,
    object: ListedObject,
) -> Result<(Vec<Vec<Cell>>, bool, Result<(), ObjectError>), ObjectError> {
    let connector = Arc::clone(connector);
    tokio::task::spawn_blocking(move || {
        let mut open = connector.open(&object)?.into_rows()?;
        let mut rows = Vec::new();
        let mut batch = RowBatch::new(open.shape.columns.len());
        loop {
            batch.clear();
            let filled = open.rows.fill(&mut batch);
            if filled.is_err() || batch.rows() == 0 {
                return Ok((rows, open.is_sample, filled));
            }
            rows.extend((0..batch.rows()).map(|row| cells(&batch, row)));
        }
    })
    .await
    .unwrap()
}

fn cells(batch: &RowBatch, row: usize) -> Vec<Cell> {
    let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
    batch.columns.iter().map(|column| column.get(row).map(text)).collect()
}
