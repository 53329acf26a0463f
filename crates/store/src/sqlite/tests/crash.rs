//! A process that is killed at any point of any write leaves all of it or nothing.
//!
//! A scenario of every kind of write runs once undisturbed, and the state of the book is noted after each
//! COMMIT. Then a child runs it and aborts itself at one stage of one write, for every write and stage,
//! and the book must be in the state before that write, or after it.

use std::sync::Mutex;

use domesday_model::{JobStatus, ObjectStatus, Reason, Retries};

use super::super::book::{self, Access};
use super::*;

const STAGES: [Stage; 3] = [Stage::Begin, Stage::BeforeCommit, Stage::AfterCommit];
/// Tells a child at which write and stage to end: `write:stage`.
const CRASH_AT: &str = "STORE_TEST_CRASH_AT";

/// Everything in the book but random ids: rows per table, and the columns that tell the state.
fn state(folder: &Path) -> Vec<String> {
    const COLUMNS: [&str; 6] = [
        "SELECT status || version || coalesce(finished_at, '') || master_pending_commands FROM jobs ORDER BY id",
        "SELECT type || status || (claim_id IS NULL) || payload || objects FROM tasks ORDER BY id",
        "SELECT key || status || records || objects || fanned_out FROM task_units ORDER BY id",
        "SELECT status FROM enumeration_sessions ORDER BY id",
        "SELECT body FROM staged_results ORDER BY task_id, sequence",
        "SELECT kind || payload FROM events ORDER BY id",
    ];
    let connection = book::connect(&folder.join(BOOK_FILE), &options().clock, Access::Read).unwrap();
    let rows = |sql: &str| -> Vec<String> {
        let mut statement = connection.prepare(sql).unwrap();
        let rows = statement.query_map([], |row| row.get(0)).unwrap();
        rows.map(|row| row.unwrap()).collect()
    };
    let mut state = Vec::new();
    for table in rows("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name") {
        state.extend(rows(&format!("SELECT '{table} ' || count(*) FROM {table}")));
    }
    state.extend(COLUMNS.iter().flat_map(|sql| rows(sql)));
    state
}

/// Every kind of write that work is made of, one after the other.
async fn scenario(store: &SqliteStore) {
    let (lease, worker, root) = root(store).await;
    store.commit_units(&root, vec![listed("u", files("f", 3)), listed("v", vec![])]).await.unwrap();
    let batch = |first_sequence, records| StageBatch {
        key: ObjectKey::new(*b"w"),
        first_sequence,
        records,
        targets: Vec::new(),
    };
    let unit = store.stage_unit(&root, batch(0, files("g", 2))).await.unwrap();
    store.clear_unit(&root, unit).await.unwrap();
    store.stage_unit(&root, batch(0, files("h", 2))).await.unwrap();
    store.commit_staged(&root, unit).await.unwrap();
    store.complete_enumeration(&root, Vec::new()).await.unwrap();
    store.fan_out(&lease, FanOutPolicy { ready_low: 1 }).await.unwrap();
    let first = claim(store, worker, TaskType::Classification).await;
    store.stage_results(&first, 0, results("u/f0", ObjectStatus::Partial, Reason::Changed)).await.unwrap();
    store.give_back(&first, GiveBack::Returned).await.unwrap();
    let second = claim(store, worker, TaskType::Classification).await;
    store.stage_results(&second, 0, results("u/f0", ObjectStatus::Partial, Reason::Changed)).await.unwrap();
    let last = Completion {
        first_sequence: 3,
        batch: results("u/f0", ObjectStatus::Partial, Reason::Changed),
        ..completion(second)
    };
    assert!(matches!(store.complete_classifications(vec![last]).await.unwrap()[..], [Ok(())]));
    store.acknowledge("relay", 2).await.unwrap();
    assert_eq!(store.complete_job(&lease, Retries::NONE).await.unwrap(), Some(JobStatus::PartiallyCompleted));
}

/// Notes the state of the book after each COMMIT.
struct Note {
    folder: std::path::PathBuf,
    states: Arc<Mutex<Vec<Vec<String>>>>,
}

impl WriteHook for Note {
    fn at(&mut self, _: &'static str, stage: Stage) -> Fault {
        if stage == Stage::AfterCommit {
            self.states.lock().unwrap().push(state(&self.folder));
        }
        Fault::None
    }
}

/// Ends the process at one stage of one write.
struct Crash {
    write: usize,
    stage: Stage,
    begun: usize,
}

impl WriteHook for Crash {
    fn at(&mut self, _: &'static str, stage: Stage) -> Fault {
        self.begun += usize::from(stage == Stage::Begin);
        if (self.begun, stage) == (self.write, self.stage) {
            std::process::abort();
        }
        Fault::None
    }
}

#[tokio::test]
async fn a_killed_process_leaves_all_of_a_write_or_nothing() {
    let reference = tempfile::tempdir().unwrap();
    drop(open(reference.path()));
    let states = Arc::new(Mutex::new(vec![state(reference.path())]));
    let note = Note { folder: reference.path().to_owned(), states: Arc::clone(&states) };
    scenario(
        &SqliteStore::open(reference.path(), Options { hook: Some(Box::new(note)), ..options() }).unwrap(),
    )
    .await;
    let states = states.lock().unwrap().clone();
    assert!(states.len() > 20, "every write was noted");
    let program = std::env::current_exe().unwrap();
    for write in 1..states.len() {
        for (index, stage) in STAGES.into_iter().enumerate() {
            let folder = tempfile::tempdir().unwrap();
            let mut child = child(&program, "sqlite::tests::crash::run_until_killed", folder.path());
            let status = child.env(CRASH_AT, format!("{write}:{index}")).status().unwrap();
            assert!(!status.success(), "write {write} was to be cut short at {stage:?}");
            let expected = if stage == Stage::AfterCommit { write } else { write - 1 };
            assert_eq!(state(folder.path()), states[expected], "write {write}, {stage:?}");
            drop(open(folder.path()));
        }
    }
}

#[tokio::test]
#[ignore = "a child of the test above"]
async fn run_until_killed() {
    let at = std::env::var(CRASH_AT).expect("the parent says when");
    let (write, stage) = at.split_once(':').unwrap();
    let crash =
        Crash { write: write.parse().unwrap(), stage: STAGES[stage.parse::<usize>().unwrap()], begun: 0 };
    let store =
        SqliteStore::open(&childs_folder(), Options { hook: Some(Box::new(crash)), ..options() }).unwrap();
    scenario(&store).await;
    panic!("the process was to end before the scenario does");
}
