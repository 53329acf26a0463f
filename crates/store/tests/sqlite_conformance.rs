//! The conformance suite on the embedded store, and the proof that it would notice a missing fence.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use domesday_store::Store;
use domesday_store::clock::{Clock, ManualClock};
use domesday_store::conformance::{Harness, LoseOne, Loss};
use domesday_store::sqlite::{Options, SqliteStore};

/// Some moment; no case depends on which.
const START_MS: i64 = 1_700_000_000_000;

struct Sqlite {
    folder: tempfile::TempDir,
    clock: Arc<ManualClock>,
    loss: Loss,
    fence: bool,
    store: Mutex<Option<Arc<dyn Store>>>,
}

impl Sqlite {
    fn new(fence: bool) -> Sqlite {
        let harness = Sqlite {
            folder: tempfile::tempdir().unwrap(),
            clock: Arc::new(ManualClock::new(START_MS)),
            loss: Loss::default(),
            fence,
            store: Mutex::new(None),
        };
        *harness.store.lock().unwrap() = Some(harness.open(harness.folder.path()));
        harness
    }

    fn open(&self, folder: &Path) -> Arc<dyn Store> {
        let options = Options {
            clock: Arc::clone(&self.clock) as Arc<dyn Clock>,
            hook: Some(Box::new(LoseOne(self.loss.clone()))),
            fence: self.fence,
        };
        Arc::new(SqliteStore::open(folder, options).unwrap())
    }
}

#[async_trait]
impl Harness for Sqlite {
    fn store(&self) -> Arc<dyn Store> {
        self.store.lock().unwrap().clone().expect("a store is open")
    }

    async fn reopen(&self) {
        let mut store = self.store.lock().unwrap();
        let old = store.take().expect("a store is open");
        assert_eq!(Arc::strong_count(&old), 1, "a case that reopens the book holds no store");
        drop(old);
        *store = Some(self.open(self.folder.path()));
    }

    fn advance(&self, by: Duration) {
        self.clock.advance(by);
    }

    fn lose_answer(&self, verb: &'static str, committed: bool) {
        self.loss.of(verb, committed);
    }
}

async fn new(fence: bool) -> Arc<dyn Harness> {
    Arc::new(Sqlite::new(fence))
}

domesday_store::conformance_tests!(new);
