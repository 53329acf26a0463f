//! The writer: verbs that share a COMMIT, and what one that fails means for its neighbours.

use std::sync::mpsc;

use tokio::sync::Notify;

use super::*;

/// Holds the writer at the verb `gate` until it is opened, so that what comes meanwhile is one group; loses
/// the answer of the verb it is told to.
struct Gate {
    held: Arc<Notify>,
    opened: mpsc::Receiver<()>,
    lose: Option<&'static str>,
}

impl WriteHook for Gate {
    fn at(&mut self, verb: &'static str, stage: Stage) -> Fault {
        if verb == "gate" && stage == Stage::Begin {
            self.held.notify_one();
            self.opened.recv().unwrap();
        }
        if self.lose == Some(verb) && stage == Stage::BeforeCommit { Fault::LoseAnswer } else { Fault::None }
    }
}

struct Gated {
    store: SqliteStore,
    held: Arc<Notify>,
    open: mpsc::Sender<()>,
}

impl Gated {
    fn new(folder: &Path, lose: Option<&'static str>) -> Gated {
        let (held, (open, opened)) = (Arc::new(Notify::new()), mpsc::channel());
        let hook: Box<dyn WriteHook> = Box::new(Gate { held: Arc::clone(&held), opened, lose });
        let store = SqliteStore::open(folder, Options { hook: Some(hook), ..options() }).unwrap();
        Gated { store, held, open }
    }

    /// Two jobs submitted around a write of `verb` that does `middle`, all in one group; the outcomes.
    async fn group(&self, verb: &'static str, middle: fn(&Connection) -> Result<()>) -> [Result<()>; 3] {
        let waiting = async {
            self.held.notified().await;
            tokio::join!(
                self.store.submit(request(MasterJobId([1; 16]))),
                self.store.write(verb, middle),
                self.store.submit(request(MasterJobId([2; 16]))),
                async { self.open.send(()).unwrap() },
            )
        };
        let before = *self.store.changes().borrow();
        let (gate, (first, between, last, ())) = tokio::join!(self.store.write("gate", |_| Ok(())), waiting);
        gate.unwrap();
        assert!(*self.store.changes().borrow() - before <= 1, "one group");
        [first, between, last]
    }
}

/// Writes, and fails then.
fn half(c: &Connection) -> Result<()> {
    c.execute("INSERT INTO event_consumers VALUES ('half', 1)", [])?;
    Err(StoreError::LostClaim(domesday_model::TaskId(7)))
}

async fn halves(store: &SqliteStore) -> i64 {
    let count = "SELECT count(*) FROM event_consumers";
    store.read(|c| Ok(c.query_row(count, [], |row| row.get(0))?)).await.unwrap()
}

#[tokio::test]
async fn a_verb_that_fails_does_not_disturb_its_neighbours() {
    let folder = tempfile::tempdir().unwrap();
    let gated = Gated::new(folder.path(), None);
    let [first, between, last] = gated.group("failing", half).await;
    assert!(first.is_ok() && last.is_ok());
    assert!(matches!(between, Err(StoreError::LostClaim(domesday_model::TaskId(7)))));
    assert_eq!(gated.store.master_jobs(10).await.unwrap().len(), 2);
    assert_eq!(halves(&gated.store).await, 0);
}

#[tokio::test]
async fn verbs_that_fail_before_others_of_their_group_fail_alone() {
    let folder = tempfile::tempdir().unwrap();
    let gated = Gated::new(folder.path(), None);
    let waiting = async {
        gated.held.notified().await;
        tokio::join!(
            gated.store.write("failing", half),
            gated.store.write("failing", half),
            gated.store.submit(request(MASTER)),
            gated.store.write("failing", half),
            async { gated.open.send(()).unwrap() },
        )
    };
    let (gate, (first, second, written, last, ())) =
        tokio::join!(gated.store.write("gate", |_| Ok(())), waiting);
    gate.unwrap();
    written.unwrap();
    for failed in [first, second, last] {
        assert!(matches!(failed, Err(StoreError::LostClaim(domesday_model::TaskId(7)))));
    }
    assert_eq!(gated.store.master_jobs(10).await.unwrap().len(), 1);
    assert_eq!(halves(&gated.store).await, 0);
}

#[tokio::test]
async fn a_verb_that_ends_the_transaction_takes_the_group_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let gated = Gated::new(folder.path(), None);
    // SQLite itself does this at some errors of the disk.
    let [first, between, last] = gated
        .group("failing", |c| {
            c.execute_batch("ROLLBACK")?;
            Err(StoreError::DiskFull)
        })
        .await;
    assert!(matches!(between, Err(StoreError::DiskFull)));
    for neighbour in [first, last] {
        assert!(neighbour.is_err_and(|error| error.is_retryable()), "nobody hears of success");
    }
    assert_eq!(gated.store.master_jobs(10).await.unwrap(), []);
    gated.store.submit(request(MASTER)).await.expect("the writer goes on");
}

#[tokio::test]
async fn a_lost_connection_is_lost_for_the_whole_group() {
    let folder = tempfile::tempdir().unwrap();
    let gated = Gated::new(folder.path(), Some("lost"));
    for outcome in gated.group("lost", |_| Ok(())).await {
        assert!(matches!(outcome, Err(StoreError::CommitUnknown(_))));
    }
    assert_eq!(gated.store.master_jobs(10).await.unwrap(), []);
}

/// A caller that goes away does not undo its write, and neither does the end of the store.
#[tokio::test]
async fn writes_that_were_asked_for_are_finished_when_the_store_goes() {
    let folder = tempfile::tempdir().unwrap();
    let Gated { store, held, open } = Gated::new(folder.path(), None);
    tokio::select! {
        biased;
        _ = store.write("gate", |_| Ok(())) => panic!("the gate is closed"),
        () = held.notified() => {}
    }
    tokio::select! {
        biased;
        _ = store.submit(request(MASTER)) => panic!("the writer is held"),
        () = std::future::ready(()) => {}
    }
    open.send(()).unwrap();
    drop(store);
    assert_eq!(super::open(folder.path()).master_jobs(10).await.unwrap().len(), 1);
}
