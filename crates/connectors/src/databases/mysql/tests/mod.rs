//! A real MariaDB, started by the tests.

mod catalogue;
mod connecting;
mod ranges;
mod sampling;
mod trouble;
mod types;

use std::sync::Arc;

use domesday_connector::credentials::{CredentialManager, RunSecrets, Secret};
use domesday_connector::{Connector, ConnectorError, ConnectorFactory, Surroundings};
use domesday_content::{ObjectError, OpenTable};
use domesday_model::{ListedObject, Reason, RecordKind, RowBatch, TableShape, UnitRecord};
use domesday_scheduler::Opened;
use domesday_testkit::mariadb::{Server, USER};
use serde_json::{Value, json};

use super::FACTORY;
use crate::databases::name;

/// Rows as they were read: texts, or nothing.
type Rows = Vec<Vec<Option<String>>>;

/// A connector to this server with these fields of its configuration; `user` and `password` as given, or all
/// rights.
fn connector(server: &Server, fields: Value) -> Arc<dyn Connector> {
    connector_at(server.port(), fields)
}

fn connector_at(port: u16, fields: Value) -> Arc<dyn Connector> {
    let mut configuration = json!({ "host": "127.0.0.1", "port": port, "user": USER });
    let mut surroundings = Surroundings::default();
    for (field, value) in fields.as_object().unwrap().clone() {
        if field == "password" {
            let mut secrets = RunSecrets::default();
            let secret = Secret::new(value.as_str().unwrap().as_bytes().to_vec());
            surroundings.credential = Some(secrets.hold("test", secret));
            surroundings.credentials = Arc::new(CredentialManager::default().with(secrets));
        } else {
            configuration[field] = value;
        }
    }
    FACTORY.create(&configuration, &surroundings).unwrap()
}

fn wait<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

/// All entries of a container.
fn list(connector: &dyn Connector, names: &[&str]) -> Result<Vec<UnitRecord>, ConnectorError> {
    wait(async {
        let mut listing = connector.list(&name::key(names), None).await?;
        let mut records = Vec::new();
        loop {
            let batch = listing.next_batch(1_000).await?;
            if batch.is_empty() {
                return Ok(records);
            }
            records.extend(batch);
        }
    })
}

fn names(records: &[UnitRecord]) -> Vec<(RecordKind, String, Option<Reason>)> {
    let text = |record: &UnitRecord| String::from_utf8(record.name.clone()).unwrap();
    records.iter().map(|record| (record.kind, text(record), record.reason)).collect()
}

fn shape(record: &UnitRecord) -> TableShape {
    serde_json::from_str(record.metadata.as_deref().unwrap()).unwrap()
}

/// The entry of a table, as it was listed.
fn listed(connector: &dyn Connector, database: &str, table: &str) -> UnitRecord {
    let records = list(connector, &[database]).unwrap();
    records.into_iter().find(|record| record.name == name::encode(table)).expect("the table is listed")
}

fn open(
    connector: &dyn Connector,
    container: &[&str],
    record: &UnitRecord,
) -> Result<OpenTable, ObjectError> {
    let object = ListedObject::in_container(&name::key(container), record);
    connector.open(&object).and_then(Opened::into_rows)
}

/// What is read of an entry.
fn read(connector: &dyn Connector, container: &[&str], record: &UnitRecord) -> Result<Rows, ObjectError> {
    let mut rows = Rows::new();
    read_each(connector, container, record, |batch| {
        for row in 0..batch.rows() {
            let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
            rows.push(batch.columns.iter().map(|column| column.get(row).map(text)).collect());
        }
    })?;
    Ok(rows)
}

fn read_each(
    connector: &dyn Connector,
    container: &[&str],
    record: &UnitRecord,
    mut each: impl FnMut(&RowBatch),
) -> Result<(), ObjectError> {
    let mut open = open(connector, container, record)?;
    let mut batch = RowBatch::new(open.shape.columns.len());
    loop {
        batch.clear();
        open.rows.fill(&mut batch)?;
        if batch.rows() == 0 {
            return Ok(());
        }
        each(&batch);
    }
}

/// The rows of a table that is read whole, and in how many parts.
fn read_parts(connector: &dyn Connector, database: &str, table: &str) -> (Rows, usize) {
    let parts = list(connector, &[database, table]).unwrap();
    let rows = parts.iter().map(|part| read(connector, &[database, table], part).unwrap());
    (rows.flatten().collect(), parts.len())
}

/// A row of texts that are all there.
fn row(texts: &[&str]) -> Vec<Option<String>> {
    texts.iter().map(|text| Some((*text).to_owned())).collect()
}
