//! The writer: verbs that share a COMMIT, and what one that fails means for its neighbours.

use std::sync::mpsc;

use super::*;

/// Holds the writer at the verb `gate` until it is opened, so that what comes meanwhile is one group;
/// loses the answer of the verb it is told to.
struct Gate {
    opened: mpsc::Receiver<()>,
    lose: Option<&'static str>,
}

impl WriteHook for Gate {
    fn at(&mut self, verb: &'static str, stage: Stage) -> Fault {
        if verb == "gate" && stage == Stage::Begin {
            self.opened.recv().unwrap();
        }
        if self.lose == Some(verb) && stage == Stage::BeforeCommit { Fault::LoseAnswer } else { Fault::None }
    }
}

/// Two jobs submitted around a write of `verb` that does `middle`, all in one group; the three outcomes.
async fn group(
    store: &SqliteStore,
    open: &mpsc::Sender<()>,
    verb: &'static str,
    middle: fn(&Connection) -> Result<()>,
) -> [Result<()>; 3] {
    let mut changes = store.changes();
    let before = *changes.borrow_and_update();
    let (gate, first, between, last, ()) = tokio::join!(
        store.write("gate", |_| Ok(())),
        store.submit(request(MasterJobId([1; 16]))),
        store.write(verb, middle),
        store.submit(request(MasterJobId([2; 16]))),
        async { open.send(()).unwrap() },
    );
    gate.unwrap();
    assert!(*changes.borrow() - before <= 1, "one group");
    [first, between, last]
}

fn gated(folder: &Path, lose: Option<&'static str>) -> (SqliteStore, mpsc::Sender<()>) {
    let (open, opened) = mpsc::channel();
    let hook: Box<dyn WriteHook> = Box::new(Gate { opened, lose });
    (SqliteStore::open(folder, Options { hook: Some(hook), ..options() }).unwrap(), open)
}

#[tokio::test]
async fn a_verb_that_fails_does_not_disturb_its_neighbours() {
    let folder = tempfile::tempdir().unwrap();
    let (store, open) = gated(folder.path(), None);
    let [first, between, last] = group(&store, &open, "failing", |c| {
        c.execute("INSERT INTO event_consumers VALUES ('half', 1)", [])?;
        Err(StoreError::LostClaim(domesday_model::TaskId(7)))
    })
    .await;
    assert!(first.is_ok() && last.is_ok());
    assert!(matches!(between, Err(StoreError::LostClaim(domesday_model::TaskId(7)))));
    assert_eq!(store.master_jobs(10).await.unwrap().len(), 2);
    let half = "SELECT count(*) FROM event_consumers";
    assert_eq!(store.read(|c| Ok(c.query_row(half, [], |row| row.get::<_, i64>(0))?)).await.unwrap(), 0);
}

#[tokio::test]
async fn a_verb_that_ends_the_transaction_takes_the_group_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let (store, open) = gated(folder.path(), None);
    // What SQLite itself does at some errors of the disk.
    let [first, between, last] = group(&store, &open, "failing", |c| {
        c.execute_batch("ROLLBACK")?;
        Err(StoreError::DiskFull)
    })
    .await;
    assert!(matches!(between, Err(StoreError::DiskFull)));
    for neighbour in [first, last] {
        assert!(neighbour.is_err_and(|error| error.is_retryable()), "nobody hears of success");
    }
    assert_eq!(store.master_jobs(10).await.unwrap(), []);
    store.submit(request(MASTER)).await.expect("the writer goes on");
}

#[tokio::test]
async fn a_lost_connection_is_lost_for_the_whole_group() {
    let folder = tempfile::tempdir().unwrap();
    let (store, open) = gated(folder.path(), Some("lost"));
    for outcome in group(&store, &open, "lost", |_| Ok(())).await {
        assert!(matches!(outcome, Err(StoreError::CommitUnknown(_))));
    }
    assert_eq!(store.master_jobs(10).await.unwrap(), []);
}

#[tokio::test]
async fn writes_that_were_asked_for_are_finished_when_the_store_goes() {
    let folder = tempfile::tempdir().unwrap();
    let (store, open) = gated(folder.path(), None);
    let store = Arc::new(store);
    let gate = tokio::spawn({
        let store = Arc::clone(&store);
        async move { store.write("gate", |_| Ok(())).await }
    });
    let submitted = tokio::spawn({
        let store = Arc::clone(&store);
        async move { store.submit(request(MASTER)).await }
    });
    tokio::task::yield_now().await;
    open.send(()).unwrap();
    gate.await.unwrap().unwrap();
    submitted.await.unwrap().unwrap();
    drop(store);
    assert_eq!(super::open(folder.path()).master_jobs(10).await.unwrap().len(), 1);
}
