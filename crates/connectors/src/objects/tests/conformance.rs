//! The connectors' suite on a bucket.

use std::sync::Mutex;

use async_trait::async_trait;
use domesday_connector::conformance::{Fixture, Refused};
use domesday_testkit::s3::{Faults, Generated};

use super::*;

struct Objects {
    shop: Shop,
    objects: Mutex<BTreeMap<ObjectKey, Vec<u8>>>,
    /// Servers of connectors that were given out.
    others: Mutex<Vec<Server>>,
    /// Their secrets, which are read when they are first used.
    secrets: Mutex<Vec<NamedTempFile>>,
}

impl Objects {
    fn put(&self, key: &str, content: &[u8]) -> ObjectKey {
        self.shop.memory.put(key, content);
        let key = ObjectKey::new(key);
        self.objects.lock().unwrap().insert(key.clone(), content.to_vec());
        key
    }

    fn connector_to(&self, server: Server) -> Arc<dyn Connector> {
        let connector = s3_connector(&server, &self.shop.secret, json!({}));
        self.others.lock().unwrap().push(server);
        connector
    }
}

#[async_trait]
impl Fixture for Objects {
    async fn connector(&self) -> Arc<dyn Connector> {
        self.shop.connector()
    }

    fn objects(&self) -> BTreeMap<ObjectKey, Vec<u8>> {
        self.objects.lock().unwrap().clone()
    }

    async fn change(&self) -> Option<ObjectKey> {
        Some(self.put("folder/a", b"something else"))
    }

    async fn remove(&self) -> Option<ObjectKey> {
        let key = ObjectKey::new("folder/b");
        self.shop.memory.remove("folder/b");
        self.objects.lock().unwrap().remove(&key);
        Some(key)
    }

    async fn add(&self) -> Option<ObjectKey> {
        Some(self.put("new/one", b"new"))
    }

    async fn with_bad_credential(&self) -> Option<Refused> {
        let wrong = "hunter2hunter2";
        let file = secret(wrong);
        let connector = s3_connector(&self.shop.server, &file, json!({}));
        self.secrets.lock().unwrap().push(file);
        Some(Refused { connector, secret: wrong.into() })
    }

    async fn with_flaky_reads(&self) -> Option<Arc<dyn Connector>> {
        let server = Server::start(Arc::clone(&self.shop.memory) as _);
        server.set_faults(Faults::some(7));
        Some(self.connector_to(server))
    }

    async fn large(&self, objects: u64) -> Option<(Arc<dyn Connector>, u64)> {
        let server = Server::start(Arc::new(Generated { count: objects, key: |n| format!("large/{n:09}") }));
        Some((self.connector_to(server), objects))
    }

    /// A prefix that no key has is an empty one.
    fn missing_container(&self) -> Option<ObjectKey> {
        None
    }
}

async fn new() -> Arc<dyn Fixture> {
    let objects = Objects {
        shop: Shop::new(),
        objects: Mutex::default(),
        others: Mutex::default(),
        secrets: Mutex::default(),
    };
    for (key, content) in [
        ("a", &b"first"[..]),
        ("empty", b""),
        ("folder/a", b"second"),
        ("folder/b", b"third"),
        ("folder//c", b"fourth"),
        ("/slash", b"fifth"),
        ("folder/large", &vec![b'x'; 300_000]),
        ("odd \u{1}\n+%2F name/", b"sixth"),
    ] {
        objects.put(key, content);
    }
    Arc::new(objects)
}

domesday_connector::conformance_tests!(new);
