//! The connectors against stores that speak their protocols: what they list and read, whatever keys are called and
//! however answers break.

mod conformance;
mod dialects;
mod listing;
mod reading;
mod replay;

use std::collections::{BTreeMap, VecDeque};
use std::io::Read;
use std::sync::Arc;

use domesday_connector::conformance::open;
use domesday_connector::{Connector, ConnectorFactory, Surroundings};
use domesday_content::ObjectError;
use domesday_model::{ObjectKey, Reason, RecordKind, UnitRecord};
use domesday_testkit::s3::{ACCESS_KEY_ID, BUCKET, Keys, Memory, SECRET_ACCESS_KEY, Server};
use serde_json::{Value, json};
use tempfile::NamedTempFile;

use super::*;

/// Entries asked for at once, as the worker does.
const BATCH: usize = 1_000;

/// Keys that are hard to list, to sign, to write in XML or to tell apart.
const ODD_KEYS: &[&str] = &[
    "a//b",
    "/a",
    "//",
    "/",
    "a",
    "a/",
    "a/b/",
    "a//",
    "///x",
    "with space",
    " ",
    "plus+plus",
    "50%25",
    "100%",
    "%2F",
    "#hash",
    "q?a=b&c",
    "semi;colon",
    "umläut/é",
    "e\u{301}",
    "日本/語",
    "😀/🎉",
    "tab\there",
    "line\nbreak",
    "cr\r",
    "bell\u{7}",
    "\u{1}",
    "nul\u{0}nul",
    "del\u{7f}",
    "<xml>&amp;\"'",
    "]]>",
    "back\\slash",
    "*?[x]",
    "...",
    "..a/b.",
    "\u{fffd}",
    "\u{10ffff}",
    "a\u{10ffff}/x",
    "a/b",
    "a.b",
    "a0",
    "~tilde",
    "dir.with.dots/f",
];
/// Keys that no address can name.
const UNADDRESSABLE: &[&str] = &["x/../y", "./x", "..", "x/."];

/// A server with a bucket in memory, and connectors for it.
struct Shop {
    server: Server,
    memory: Arc<Memory>,
    secret: NamedTempFile,
}

impl Shop {
    fn new() -> Shop {
        let memory = Arc::new(Memory::default());
        Shop { server: Server::start(Arc::clone(&memory) as _), memory, secret: secret(SECRET_ACCESS_KEY) }
    }

    fn with_keys(keys: impl IntoIterator<Item = impl Into<String>>) -> Shop {
        let shop = Shop::new();
        for key in keys {
            let key = key.into();
            let text = format!("text of {key}");
            shop.memory.put(key, text);
        }
        shop
    }

    fn connector(&self) -> Arc<dyn Connector> {
        self.connector_with(json!({}))
    }

    fn connector_with(&self, fields: Value) -> Arc<dyn Connector> {
        s3_connector(&self.server, &self.secret, fields)
    }
}

fn secret(secret_access_key: &str) -> NamedTempFile {
    use std::io::Write;
    let mut file = NamedTempFile::new().unwrap();
    let secret = json!({ "access_key_id": ACCESS_KEY_ID, "secret_access_key": secret_access_key });
    file.write_all(secret.to_string().as_bytes()).unwrap();
    file
}

fn s3_connector(server: &Server, secret: &NamedTempFile, fields: Value) -> Arc<dyn Connector> {
    let mut configuration = json!({ "bucket": BUCKET, "endpoint": server.endpoint(), "allow_http": true });
    for (name, value) in fields.as_object().unwrap() {
        configuration[name] = value.clone();
    }
    let reference = format!("file:{}", secret.path().display());
    let surroundings = Surroundings::default().with_typed(reference.parse().unwrap());
    ObjectsFactory(Kind::S3).create(&configuration, &surroundings).unwrap()
}

/// What a listing found: objects by key, and how it was had.
#[derive(Default)]
struct Walk {
    records: BTreeMap<ObjectKey, UnitRecord>,
    containers: usize,
    pages: usize,
}

impl Walk {
    fn keys(&self) -> Vec<String> {
        self.records.keys().map(|key| String::from_utf8(key.0.clone()).unwrap()).collect()
    }

    fn skipped(&self, key: &str) -> Option<Reason> {
        self.records[&ObjectKey::new(key)].reason
    }
}

/// Lists everything, with a connector made anew for each page, from where the one before stopped.
async fn walk(connect: impl Fn() -> Arc<dyn Connector>, batch: usize) -> Walk {
    let mut walk = Walk::default();
    let mut containers = VecDeque::from([ObjectKey::default()]);
    while let Some(container) = containers.pop_front() {
        walk.containers += 1;
        let mut resume_point: Option<String> = None;
        loop {
            let mut listing = connect().list(&container, resume_point.as_deref()).await.unwrap();
            let records = listing.next_batch(batch).await.unwrap();
            assert!(records.len() <= batch);
            walk.pages += 1;
            for record in records {
                let key = container.join(&record.name);
                match record.kind {
                    RecordKind::Directory => containers.push_back(key),
                    _ => assert!(walk.records.insert(key.clone(), record).is_none(), "{key} twice"),
                }
            }
            resume_point = listing.resume_point();
            if resume_point.is_none() {
                assert_eq!(listing.next_batch(batch).await.unwrap(), []);
                break;
            }
        }
    }
    walk
}

fn read(connector: &dyn Connector, key: &str) -> Result<Vec<u8>, Reason> {
    let mut opened = open(connector, &ObjectKey::new(key)).map_err(|error| error.reason)?;
    let mut bytes = Vec::new();
    let read = opened.reader.read_to_end(&mut bytes);
    read.map_err(|error| ObjectError::from(error).reason)?;
    Ok(bytes)
}

fn refused(kind: Kind, configuration: &Value) -> String {
    let made = ObjectsFactory(kind).create(configuration, &Surroundings::default());
    made.err().map(|error| error.to_string()).unwrap_or_default()
}

#[test]
fn configurations_are_checked() {
    for (kind, configuration, problem) in [
        (Kind::S3, json!({}), "missing field `bucket`"),
        (Kind::S3, json!({ "bucket": "a/b" }), "field `bucket`"),
        (Kind::S3, json!({ "bucket": "b", "bucke": 1 }), "unknown field `bucke`"),
        (Kind::S3, json!({ "bucket": "b", "account": "a" }), "field `account`"),
        (Kind::S3, json!({ "bucket": "b", "endpoint": "http://x" }), "allow_http"),
        (Kind::S3, json!({ "bucket": "b", "endpoint": "ftp://x" }), "field `endpoint`"),
        (Kind::S3, json!({ "bucket": "b", "endpoint": "https://user@x" }), "field `endpoint`"),
        (Kind::S3, json!({ "bucket": "b", "authentication": "gcs" }), "field `authentication`"),
        (Kind::S3, json!({ "bucket": "b", "exclude": ["{a"] }), "field `exclude`"),
        (Kind::Gcs, json!({ "bucket": "b", "region": "r" }), "field `region`"),
        (Kind::Azure, json!({ "bucket": "b" }), "field `account`"),
        (Kind::Azure, json!({ "container": "b", "account": "a b" }), "field `account`"),
    ] {
        let error = refused(kind, &configuration);
        assert!(error.contains(problem), "{configuration}: {error}");
        assert!(error.contains(kind.as_str()), "{error}");
    }
    for (kind, configuration) in [
        (
            Kind::S3,
            json!({ "bucket": "b", "region": "eu-west-1", "path_style": true, "authentication": "s3" }),
        ),
        (Kind::Gcs, json!({ "bucket": "b", "prefix": "x/", "authentication": "unauthenticated" })),
        (Kind::Azure, json!({ "container": "b", "account": "a", "include": ["*.txt"] })),
    ] {
        assert_eq!(refused(kind, &configuration), "");
    }
}

#[tokio::test]
async fn who_is_not_let_in_is_told_so() {
    let shop = Shop::with_keys(["a"]);
    let wrong = s3_connector(&shop.server, &secret("wrong"), json!({}));
    let error = wrong.test().await.unwrap_err();
    assert_eq!(error.reason(), Reason::PermissionDenied, "{error}");
    assert!(!error.is_retryable() && !error.to_string().contains("wrong"), "{error}");
    assert_eq!(read(wrong.as_ref(), "a"), Err(Reason::PermissionDenied));
    let nobody = shop.connector_with(json!({ "authentication": "unauthenticated" }));
    assert_eq!(nobody.test().await.unwrap_err().reason(), Reason::PermissionDenied);
    let elsewhere = shop.connector_with(json!({ "bucket": "other" }));
    assert_eq!(elsewhere.test().await.unwrap_err().reason(), Reason::Vanished);
    assert_eq!(shop.connector().test().await.unwrap(), 1);
}

#[tokio::test]
async fn a_rotated_secret_is_picked_up() {
    let shop = Shop::with_keys(["a"]);
    let connector = shop.connector();
    assert_eq!(connector.test().await.unwrap(), 1);
    for secret_access_key in ["second", "third"] {
        shop.server.set_secret(secret_access_key);
        std::fs::copy(secret(secret_access_key).path(), shop.secret.path()).unwrap();
        assert_eq!(connector.test().await.unwrap(), 1);
        assert_eq!(read(connector.as_ref(), "a").unwrap(), b"text of a");
    }
    shop.server.set_secret("fourth");
    assert_eq!(connector.test().await.unwrap_err().reason(), Reason::PermissionDenied);
}

#[tokio::test]
async fn a_public_bucket_is_read_by_anybody() {
    let memory = Arc::new(Memory::default());
    memory.put("a/b", "text");
    let server = Server::start_public(Arc::clone(&memory) as Arc<dyn Keys>);
    let connector = s3_connector(&server, &secret("unused"), json!({ "authentication": "unauthenticated" }));
    assert_eq!(connector.test().await.unwrap(), 1);
    assert_eq!(read(connector.as_ref(), "a/b").unwrap(), b"text");
}
