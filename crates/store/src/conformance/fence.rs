//! The fence: whoever lost a claim writes nothing, however late it wakes up.
//!
//! One case a verb, each through every way a claim is lost. A backend's tests run these cases with the
//! fence taken out, too, and every one must turn red.

use std::pin::Pin;
use std::sync::Arc;

use domesday_model::{Command, Takes, TaskType, UnitId};

use super::book::*;
use super::cases;
use super::tables::observed;
use crate::error::StoreError;
use crate::roles::Store;
use crate::types::*;

cases![
    commit_units_is_fenced,
    stage_unit_is_fenced,
    clear_unit_is_fenced,
    commit_staged_is_fenced,
    complete_enumeration_is_fenced,
    stage_results_is_fenced,
    save_object_checkpoint_is_fenced,
    complete_classifications_is_fenced,
    returning_is_fenced,
    retrying_is_fenced,
    failing_is_fenced,
    untraced_is_fenced,
    save_origins_is_fenced,
    complete_task_is_fenced,
];

/// How a claim is lost.
#[derive(Clone, Copy, Debug)]
enum Loss {
    /// The task was reaped, and another worker has it.
    Reclaimed,
    /// The worker gave it back, and claimed it again.
    Returned,
    /// Its job was cancelled.
    Cancelled,
    /// The task is done, under this very claim.
    Completed,
}

const LOSSES: [Loss; 4] = [Loss::Reclaimed, Loss::Returned, Loss::Cancelled, Loss::Completed];

type Write =
    fn(Arc<dyn Store>, Claim, UnitId) -> Pin<Box<dyn Future<Output = Result<(), StoreError>> + Send>>;

/// A task with something staged, and the claim on it.
struct Held {
    running: Running,
    claim: Claim,
    /// The staging unit of an enumeration task; of another, a unit of no importance.
    unit: UnitId,
    task_type: TaskType,
}

impl Held {
    async fn task(book: &Book, task_type: TaskType, group: &str) -> Held {
        let held = match task_type.facts().takes {
            Takes::Containers => Held::enumeration(book, group).await,
            Takes::Objects => Held::classification(book, group).await,
            Takes::Nothing => Held::tracing(book, group).await,
        };
        assert_eq!(held.task_type, task_type);
        held
    }

    async fn enumeration(book: &Book, group: &str) -> Held {
        let running = book.running(job(group).group(group)).await;
        let claim = running.enumeration().await.claim;
        let unit = book.store().stage_unit(&claim, batch("", 0, files("f", 2))).await.unwrap();
        Held { running, claim, unit, task_type: TaskType::DiscoveryEnumerate }
    }

    async fn classification(book: &Book, group: &str) -> Held {
        let running = book.running(job(group).group(group)).await;
        let claim = running.classify(&["f"]).await.claim;
        book.store().stage_results(&claim, 0, findings(vec![finding("f", "r")])).await.unwrap();
        Held { running, claim, unit: UnitId(1), task_type: TaskType::Classification }
    }

    async fn tracing(book: &Book, group: &str) -> Held {
        let running = book.running(job(group).group(group)).await;
        let claim = running.trace(&["f"]).await.claim;
        Held { running, claim, unit: UnitId(1), task_type: TaskType::Tracing }
    }

    /// Completes the task under `claim`, which has it.
    async fn complete(&self, claim: &Claim) {
        let store = self.running.store();
        match self.task_type.facts().takes {
            Takes::Containers => {
                store.commit_staged(claim, self.unit).await.unwrap();
                store.complete_enumeration(claim, Vec::new()).await.unwrap();
            }
            Takes::Objects => {
                let results = findings(vec![finding("f", "r")]);
                store.stage_results(claim, 0, results).await.unwrap();
                self.running.book.complete(claim, 1, ResultBatch::default()).await.unwrap();
            }
            Takes::Nothing => store.complete_task(claim).await.unwrap(),
        }
    }

    async fn claim_again(&self) -> Claim {
        let again = self.running.claim_by(self.running.worker, self.task_type).await.expect("it is pending");
        assert_eq!(again.claim.task, self.claim.task);
        again.claim
    }

    /// Loses the claim; the one that has the task now, if there is one.
    async fn lose(&mut self, loss: Loss) -> Option<Claim> {
        match loss {
            Loss::Reclaimed => {
                assert_eq!(self.running.abandon().await.returned, 1);
                Some(self.claim_again().await)
            }
            Loss::Returned => {
                self.running.store().give_back(&self.claim, GiveBack::Returned).await.unwrap();
                Some(self.claim_again().await)
            }
            Loss::Cancelled => {
                self.running.execute(Command::Cancel).await;
                None
            }
            Loss::Completed => {
                self.complete(&self.claim).await;
                None
            }
        }
    }
}

/// After every kind of loss `write` is refused, changes nothing, and disturbs no new holder.
async fn refused(book: &Book, task_type: TaskType, write: Write) {
    for loss in LOSSES {
        let group = format!("{loss:?}");
        let mut held = Held::task(book, task_type, &group).await;
        let holder = held.lose(loss).await;
        let master = held.running.master;
        let before = book.view(master, &held.claim).await;
        let events = book.store().events("test", u32::MAX).await.unwrap();
        let result = write(book.store(), held.claim, held.unit).await;
        assert!(
            matches!(result, Err(StoreError::LostClaim(task)) if task == held.claim.task),
            "{loss:?}: expected to be refused, got {result:?}"
        );
        assert_eq!(book.view(master, &held.claim).await, before, "{loss:?}");
        assert_eq!(book.store().events("test", u32::MAX).await.unwrap(), events, "{loss:?}");
        if let Some(holder) = holder {
            held.complete(&holder).await;
            assert!(book.is_done(&holder).await);
            assert!(!book.is_done(&held.claim).await);
        }
    }
    accepted_while_pausing(book, task_type, write).await;
}

/// A pausing job lets its tasks come to their end.
async fn accepted_while_pausing(book: &Book, task_type: TaskType, write: Write) {
    let mut held = Held::task(book, task_type, "pausing").await;
    held.running.execute(Command::Pause).await;
    write(book.store(), held.claim, held.unit).await.expect("a pausing job accepts");
}

async fn commit_units_is_fenced(book: Book) {
    refused(&book, TaskType::DiscoveryEnumerate, |store, claim, _| {
        Box::pin(async move { store.commit_units(&claim, vec![listed("late", files("late", 3))]).await })
    })
    .await;
}

async fn stage_unit_is_fenced(book: Book) {
    refused(&book, TaskType::DiscoveryEnumerate, |store, claim, _| {
        Box::pin(async move { store.stage_unit(&claim, batch("", 2, files("late", 3))).await.map(|_| ()) })
    })
    .await;
}

async fn clear_unit_is_fenced(book: Book) {
    refused(&book, TaskType::DiscoveryEnumerate, |store, claim, unit| {
        Box::pin(async move { store.clear_unit(&claim, unit).await })
    })
    .await;
}

async fn commit_staged_is_fenced(book: Book) {
    refused(&book, TaskType::DiscoveryEnumerate, |store, claim, unit| {
        Box::pin(async move { store.commit_staged(&claim, unit).await })
    })
    .await;
}

async fn complete_enumeration_is_fenced(book: Book) {
    refused(&book, TaskType::DiscoveryEnumerate, |store, claim, _| {
        Box::pin(async move { store.complete_enumeration(&claim, vec![listed("", files("late", 3))]).await })
    })
    .await;
}

fn late_results() -> ResultBatch {
    ResultBatch { tables: vec![observed("f", "f")], ..findings(vec![finding("f", "late")]) }
}

async fn stage_results_is_fenced(book: Book) {
    refused(&book, TaskType::Classification, |store, claim, _| {
        Box::pin(async move { store.stage_results(&claim, 1, late_results()).await })
    })
    .await;
}

async fn save_object_checkpoint_is_fenced(book: Book) {
    refused(&book, TaskType::Classification, |store, claim, _| {
        Box::pin(async move { store.save_object_checkpoint(&claim, &key("f"), checkpoint(0)).await })
    })
    .await;
}

async fn complete_classifications_is_fenced(book: Book) {
    refused(&book, TaskType::Classification, |store, claim, _| {
        Box::pin(async move {
            let late = completion(&claim, 1, late_results());
            let answers = store.complete_classifications(vec![late]).await?;
            answers.into_iter().collect()
        })
    })
    .await;
}

async fn returning_is_fenced(book: Book) {
    refused(&book, TaskType::DiscoveryEnumerate, |store, claim, _| {
        Box::pin(async move { store.give_back(&claim, GiveBack::Returned).await })
    })
    .await;
}

async fn retrying_is_fenced(book: Book) {
    refused(&book, TaskType::Classification, |store, claim, _| {
        Box::pin(async move {
            let retry = GiveBack::Retry { error: "too late".to_owned(), after: LEASE };
            store.give_back(&claim, retry).await
        })
    })
    .await;
}

async fn failing_is_fenced(book: Book) {
    refused(&book, TaskType::Classification, |store, claim, _| {
        Box::pin(
            async move { store.give_back(&claim, GiveBack::Failed { error: "too late".to_owned() }).await },
        )
    })
    .await;
}

async fn untraced_is_fenced(book: Book) {
    refused(&book, TaskType::Tracing, |store, claim, _| {
        Box::pin(async move { store.untraced(&claim, 1).await.map(|_| ()) })
    })
    .await;
}

async fn save_origins_is_fenced(book: Book) {
    refused(&book, TaskType::Tracing, |store, claim, _| {
        Box::pin(async move { store.save_origins(&claim, vec![(key("f"), Some(origin("late")))]).await })
    })
    .await;
}

async fn complete_task_is_fenced(book: Book) {
    refused(&book, TaskType::Tracing, |store, claim, _| {
        Box::pin(async move { store.complete_task(&claim).await })
    })
    .await;
}
