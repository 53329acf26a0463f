//! The connector against the scripted server: what it finds and reads, and what it makes of refusals and broken
//! connections.

mod discovery;
mod failures;
mod reading;
mod transport;

use std::collections::{BTreeMap, VecDeque};
use std::io::Write;
use std::sync::Arc;

use domesday_connector::{Connector, ConnectorFactory, Surroundings};
use domesday_content::ObjectError;
use domesday_model::{ListedObject, ObjectKey, Reason, RecordKind, RowBatch, TableShape, UnitRecord};
use domesday_scheduler::Opened;
use domesday_testkit::tds::model::{Database, Schema, Table};
use domesday_testkit::tds::{PASSWORD, TdsServer, Type, USER, Value};
use serde_json::json;
use tempfile::NamedTempFile;

use super::FACTORY;

/// A server, and connectors for it.
struct Site {
    server: TdsServer,
    secret: NamedTempFile,
    /// What connectors are told of encryption, unless they are told something else.
    tls: serde_json::Value,
}

impl Site {
    fn new(databases: Vec<Database>) -> Site {
        Site { tls: json!("disable"), ..Site::of(TdsServer::plain(databases)) }
    }

    fn of(server: TdsServer) -> Site {
        Site { server, secret: secret(PASSWORD), tls: serde_json::Value::Null }
    }

    fn connector(&self, fields: serde_json::Value) -> Arc<dyn Connector> {
        self.connector_with(fields, &self.secret)
    }

    fn connector_with(&self, fields: serde_json::Value, secret: &NamedTempFile) -> Arc<dyn Connector> {
        let mut configuration =
            json!({ "host": "localhost", "port": self.server.port(), "user": USER, "tls": self.tls });
        for (name, value) in fields.as_object().unwrap() {
            configuration[name] = value.clone();
        }
        let reference = format!("file:{}", secret.path().display());
        let surroundings = Surroundings::default().with_typed(reference.parse().unwrap());
        FACTORY.create(&configuration, &surroundings).unwrap()
    }

    /// Statements that read tables.
    fn selects(&self) -> Vec<String> {
        let statements = self.server.requests().into_iter().map(|request| request.sql);
        statements.filter(|sql| sql.starts_with("SELECT ")).collect()
    }
}

fn secret(password: &str) -> NamedTempFile {
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(password.as_bytes()).unwrap();
    file
}

/// One database, one schema.
fn shop(tables: Vec<Table>) -> Vec<Database> {
    vec![Database::new("shop", vec![Schema::new("dbo", tables)])]
}

/// A table with numbered rows.
fn numbered(name: &str, rows: i64) -> Table {
    let columns = [("id", Type::Int), ("mail", Type::NVarChar(Some(100)))];
    let row = |id| vec![Value::Int(id), Value::Text(format!("user{id}@example.org"))];
    Table::new(name, &columns, &[0], (1..=rows).map(row).collect())
}

/// A key as it is, without what is done to show it.
fn text_of(key: &ObjectKey) -> String {
    String::from_utf8(key.0.clone()).unwrap()
}

/// Everything that is listed, level by level. A container that fails is there with its reason.
async fn walk(connector: &dyn Connector) -> BTreeMap<String, Result<UnitRecord, Reason>> {
    let mut found = BTreeMap::new();
    let mut containers = VecDeque::from([ObjectKey::default()]);
    while let Some(container) = containers.pop_front() {
        let listed = async {
            let mut listing = connector.list(&container, None).await?;
            let mut records = Vec::new();
            loop {
                match listing.next_batch(3).await? {
                    batch if batch.is_empty() => return Ok(records),
                    batch => records.extend(batch),
                }
            }
        };
        match listed.await {
            Ok(records) => {
                for record in records {
                    let key = container.join(&record.name);
                    if record.kind.is_container() {
                        containers.push_back(key.clone());
                    }
                    assert!(found.insert(text_of(&key), Ok(record)).is_none(), "{key} twice");
                }
            }
            Err(error) => {
                let error: domesday_connector::ConnectorError = error;
                found.insert(text_of(&container), Err(error.reason()));
            }
        }
    }
    found
}

fn kinds(found: &BTreeMap<String, Result<UnitRecord, Reason>>) -> Vec<(&str, RecordKind, Option<Reason>)> {
    let one = |(key, record): (&'_ String, &Result<UnitRecord, Reason>)| match record {
        Ok(record) => (record.kind, record.reason, key.clone()),
        Err(reason) => (RecordKind::Skipped, Some(*reason), key.clone()),
    };
    let all: Vec<_> = found.iter().map(one).collect();
    found.keys().zip(all).map(|(key, (kind, reason, _))| (key.as_str(), kind, reason)).collect()
}

fn shape(record: &UnitRecord) -> TableShape {
    serde_json::from_str(record.metadata.as_deref().unwrap()).unwrap()
}

/// A table's rows by column: text, or null.
type Rows = Vec<Vec<Option<Vec<u8>>>>;

/// The object with this key, as it was listed.
fn object(key: &str, record: &UnitRecord) -> ListedObject {
    ListedObject { key: ObjectKey::new(key), ..ListedObject::in_container(&ObjectKey::default(), record) }
}

/// Reads an object as it was listed.
fn read(connector: &dyn Connector, key: &str, record: &UnitRecord) -> Result<Rows, ObjectError> {
    read_cells(connector, key, record, |batch, column, row| {
        batch.columns[column].get(row).map(<[u8]>::to_vec)
    })
}

fn read_cells<T>(
    connector: &dyn Connector,
    key: &str,
    record: &UnitRecord,
    cell: impl Fn(&RowBatch, usize, usize) -> T,
) -> Result<Vec<Vec<T>>, ObjectError> {
    let mut open = connector.open(&object(key, record))?.into_rows()?;
    let mut rows = Vec::new();
    let mut batch = RowBatch::new(open.shape.columns.len());
    loop {
        batch.clear();
        open.rows.fill(&mut batch)?;
        if batch.rows() == 0 {
            return Ok(rows);
        }
        for row in 0..batch.rows() {
            rows.push((0..batch.columns.len()).map(|column| cell(&batch, column, row)).collect());
        }
    }
}

/// A table's record, found on the way to it.
async fn table(connector: &dyn Connector, key: &str) -> UnitRecord {
    let found = walk(connector).await;
    found[key].clone().unwrap()
}
