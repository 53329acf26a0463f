//! The conformance suite on the embedded store, and the proof that it would notice a missing fence.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use domesday_store::Store;
use domesday_store::clock::{Clock, ManualClock};
use domesday_store::conformance::{Book, Case, Harness, THEMES, fence};
use domesday_store::sqlite::{Fault, Options, SqliteStore, Stage, WriteHook};

/// Some moment; no case depends on which.
const START_MS: i64 = 1_700_000_000_000;

/// The verb whose next answer is lost, and whether before or after the commit.
type Loss = Arc<Mutex<Option<(&'static str, Stage)>>>;

struct LoseOne(Loss);

impl WriteHook for LoseOne {
    fn at(&mut self, verb: &'static str, stage: Stage) -> Fault {
        let mut loss = self.0.lock().unwrap();
        if *loss == Some((verb, stage)) {
            *loss = None;
            return Fault::LoseAnswer;
        }
        Fault::None
    }
}

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
            hook: Some(Box::new(LoseOne(Arc::clone(&self.loss)))),
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
        let stage = if committed { Stage::AfterCommit } else { Stage::BeforeCommit };
        *self.loss.lock().unwrap() = Some((verb, stage));
    }
}

/// Runs a case on a book of its own; whether it held.
fn holds((_, case): &Case, fence: bool) -> bool {
    let run = || {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        runtime.block_on(case(Book::new(Arc::new(Sqlite::new(fence)))));
    };
    std::panic::catch_unwind(AssertUnwindSafe(run)).is_ok()
}

fn broken(cases: &[Case], fence: bool) -> Vec<&'static str> {
    cases.iter().filter(|case| !holds(case, fence)).map(|(name, _)| *name).collect()
}

/// One test a theme; all of its cases run, and those that fail are named.
macro_rules! themes {
    ($($theme:ident),* $(,)?) => {
        $(
            #[test]
            fn $theme() {
                let (_, cases) = THEMES.iter().find(|(theme, _)| *theme == stringify!($theme)).unwrap();
                assert_eq!(broken(cases, true), Vec::<&str>::new());
            }
        )*

        #[test]
        fn every_theme_is_run() {
            assert_eq!(THEMES.iter().map(|(theme, _)| *theme).collect::<Vec<_>>(), [$(stringify!($theme)),*]);
        }
    };
}

themes![jobs, commands, tasks, units, fan_out, reaper, results, sessions, events, fence, lost_answers];

#[test]
fn the_suite_turns_red_without_the_fence() {
    let names: Vec<_> = fence::CASES.iter().map(|(name, _)| *name).collect();
    assert_eq!(broken(fence::CASES, false), names);
}
