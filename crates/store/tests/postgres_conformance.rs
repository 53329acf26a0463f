//! The conformance suite on PostgreSQL, and the proof that it would notice a missing fence.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use domesday_store::Store;
use domesday_store::clock::{Clock, ManualClock};
use domesday_store::conformance::{Harness, LoseOne, Loss};
use domesday_store::postgres::{Options, PostgresStore};
use domesday_testkit::postgres::Server;

/// Some moment; no case depends on which.
const START_MS: i64 = 1_700_000_000_000;

struct Postgres {
    url: String,
    clock: Arc<ManualClock>,
    loss: Loss,
    fence: bool,
    store: Mutex<Option<Arc<dyn Store>>>,
}

impl Postgres {
    async fn open(&self) {
        let options = Options {
            clock: Some(Arc::clone(&self.clock) as Arc<dyn Clock>),
            hook: Some(Box::new(LoseOne(self.loss.clone()))),
            fence: self.fence,
            ..Options::default()
        };
        let store = PostgresStore::connect(&self.url, options).await.unwrap();
        *self.store.lock().unwrap() = Some(Arc::new(store));
    }
}

#[async_trait]
impl Harness for Postgres {
    fn store(&self) -> Arc<dyn Store> {
        self.store.lock().unwrap().clone().expect("a store is open")
    }

    async fn reopen(&self) {
        let old = self.store.lock().unwrap().take().expect("a store is open");
        assert_eq!(Arc::strong_count(&old), 1, "a case that reopens the book holds no store");
        drop(old);
        self.open().await;
    }

    fn advance(&self, by: Duration) {
        self.clock.advance(by);
    }

    fn lose_answer(&self, verb: &'static str, committed: bool) {
        self.loss.of(verb, committed);
    }
}

async fn new(fence: bool) -> Arc<dyn Harness> {
    let harness = Postgres {
        url: Server::shared().create_database(),
        clock: Arc::new(ManualClock::new(START_MS)),
        loss: Loss::default(),
        fence,
        store: Mutex::new(None),
    };
    harness.open().await;
    Arc::new(harness)
}

domesday_store::conformance_tests!(new);
