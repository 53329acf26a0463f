//! The connector against servers on loopback that answer well and badly.

mod conformance;
mod listing;
mod private;
mod reading;

use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use domesday_connector::conformance::open;
use domesday_connector::{Connector, ConnectorError, Surroundings};
use domesday_content::ObjectError;
use domesday_model::{ObjectKey, Reason, RecordKind, UnitRecord};
use domesday_testkit::http::{Response, Server};
use serde_json::{Value, json};

use super::*;

fn source(configuration: &Value, surroundings: &Surroundings) -> Source {
    let mut source = UrlFactory::source(configuration, surroundings).unwrap();
    let fetcher = Arc::into_inner(source.fetcher).unwrap();
    source.fetcher = Arc::new(fetcher.hasty());
    source
}

/// A connector that may read from this machine.
fn connector(configuration: Value) -> Arc<dyn Connector> {
    connector_in(configuration, &Surroundings::default())
}

fn connector_in(mut configuration: Value, surroundings: &Surroundings) -> Arc<dyn Connector> {
    configuration["allow_private"] = json!(true);
    Arc::new(Addresses(Arc::new(source(&configuration, surroundings))))
}

/// With a secret in a file.
fn with_secret(folder: &Path, secret: &str) -> Surroundings {
    let path = folder.join("secret");
    fs::write(&path, secret).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    Surroundings::default().with_typed(format!("file:{}", path.display()).parse().unwrap())
}

async fn list(connector: &dyn Connector) -> Result<Vec<UnitRecord>, ConnectorError> {
    let mut listing = connector.list(&ObjectKey::default(), None).await?;
    let mut records = Vec::new();
    loop {
        let batch = listing.next_batch(7).await?;
        if batch.is_empty() {
            return Ok(records);
        }
        let targets = listing.take_targets().len();
        let addresses = batch.iter().filter(|record| {
            record.kind == RecordKind::File
                && address::of_key(&ObjectKey::new(record.name.as_slice())).is_some()
        });
        assert_eq!(targets, addresses.count(), "a target for each address");
        records.extend(batch);
    }
}

/// Paths on the server of what is listed, with a `-` before those left out.
async fn paths(server: &Server, configuration: Value) -> Vec<String> {
    let records = list(connector(configuration).as_ref()).await.unwrap();
    let shown = |record: &UnitRecord| {
        let name = String::from_utf8(record.name.clone()).unwrap().replace(&server.url(""), "");
        if record.kind == RecordKind::Skipped { format!("-{name}") } else { name }
    };
    records.iter().map(shown).collect()
}

/// What is read, and how it ends.
async fn read(connector: &Arc<dyn Connector>, key: &str) -> (Vec<u8>, Result<(), ObjectError>) {
    let (connector, key) = (Arc::clone(connector), ObjectKey::new(key));
    let reads = move || {
        let mut opened = match open(&*connector, &key) {
            Ok(opened) => opened,
            Err(error) => return (Vec::new(), Err(error)),
        };
        let mut bytes = Vec::new();
        let ended = opened.reader.read_to_end(&mut bytes);
        (bytes, ended.map(drop).map_err(ObjectError::from))
    };
    tokio::task::spawn_blocking(reads).await.unwrap()
}

async fn read_error(connector: &Arc<dyn Connector>, key: &str) -> ObjectError {
    read(connector, key).await.1.unwrap_err()
}
