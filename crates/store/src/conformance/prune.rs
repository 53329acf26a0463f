//! Removing what is old, in steps.

use std::time::Duration;

use domesday_model::{Command, JobStatus, MasterJobId, Retries, TaskType};

use super::book::*;
use super::cases;
use super::tables::observed;
use crate::types::*;

cases![
    old_jobs_go_and_findings_stay,
    the_latest_complete_job_of_a_source_stays,
    open_and_young_jobs_stay,
    steps_are_bounded_and_a_job_is_seen_whole_or_not_at_all,
    an_interrupted_prune_goes_on,
    old_processes_and_events_go,
    a_retried_job_is_not_pruned,
];

const DAY: Duration = Duration::from_secs(86_400);

/// A completed job that found one thing in `source`.
async fn survey(book: &Book, source: &str) -> MasterJobId {
    let running = book.running(job(source)).await;
    let packet = running.classify(&["f", "g"]).await;
    let results = ResultBatch { tables: vec![observed("g", "g")], ..findings(vec![finding("f", "r")]) };
    book.complete(&packet.claim, 0, results).await.unwrap();
    assert_eq!(running.complete_job().await, Some(JobStatus::Completed));
    running.master
}

async fn prune_all(book: &Book, older_than: Duration, max: u32) -> PruneReport {
    let mut total = PruneReport::default();
    for _ in 0..1_000 {
        let step = book.store().prune(older_than, max).await.unwrap();
        assert!(step.rows <= u64::from(max), "{step:?}");
        total = PruneReport { jobs: total.jobs + step.jobs, rows: total.rows + step.rows, done: step.done };
        if step.done {
            return total;
        }
    }
    panic!("it never ends");
}

async fn masters(book: &Book) -> Vec<MasterJobId> {
    book.store().master_jobs(100).await.unwrap().into_iter().map(|job| job.id).collect()
}

/// Nothing of the job can be seen by its id.
async fn unseen(book: &Book, master: MasterJobId) {
    let store = book.store();
    assert_eq!(store.master_job(master).await.unwrap(), None);
    assert_eq!(store.summary(master).await.unwrap(), JobSummary::default());
    assert_eq!(book.occurrences(master, OccurrenceFilter::default()).await, []);
    assert_eq!(store.problems(master, 10).await.unwrap(), []);
    assert_eq!(book.tables(master).await, []);
    assert_eq!(store.datasources(master).await.unwrap(), []);
    assert_eq!(store.child_jobs(master).await.unwrap(), []);
    let filter = TaskFilter { master: Some(master), ..TaskFilter::default() };
    assert_eq!(store.tasks(filter, 10).await.unwrap(), []);
    assert!(!masters(book).await.contains(&master));
}

async fn old_jobs_go_and_findings_stay(book: Book) {
    let first = survey(&book, "a").await;
    book.advance(DAY);
    let second = survey(&book, "a").await;
    let before = book.occurrences(second, OccurrenceFilter::default()).await;
    let [gone] = &book.store().catalog_sources(Some(first)).await.unwrap()[..] else { panic!("one source") };
    book.advance(DAY);
    let report = prune_all(&book, DAY * 3 / 2, 1_000).await;
    assert_eq!(report.jobs, 1);
    unseen(&book, first).await;
    let left = book.store().table_observations(gone, None, 10).await.unwrap();
    assert_eq!(left, TablePage::default(), "whoever still knows the job");
    assert_eq!(book.tables(second).await, [observed("g", "g")]);
    assert_eq!(masters(&book).await, [second]);
    assert_eq!(book.occurrences(second, OccurrenceFilter::default()).await, before);
    assert_eq!(book.store().tasks(TaskFilter::default(), 10).await.unwrap().len(), 2);
    assert_eq!(prune_all(&book, DAY * 3 / 2, 1_000).await.rows, 0, "nothing is left to do");
}

async fn the_latest_complete_job_of_a_source_stays(book: Book) {
    let first = survey(&book, "a").await;
    let other = survey(&book, "b").await;
    // Later ones that did not come to an end are no base.
    let mut cancelled = book.running(job("a")).await;
    cancelled.execute(Command::Cancel).await;
    book.store().settle_job(&cancelled.lease).await.unwrap();
    book.advance(DAY);
    assert_eq!(prune_all(&book, DAY / 2, 1_000).await.jobs, 1);
    assert_eq!(masters(&book).await.len(), 2);
    let second = survey(&book, "a").await;
    book.advance(DAY);
    assert_eq!(prune_all(&book, DAY / 2, 1_000).await.jobs, 1);
    unseen(&book, first).await;
    assert_eq!(masters(&book).await, [second, other]);
}

async fn open_and_young_jobs_stay(book: Book) {
    for _ in 0..2 {
        survey(&book, "a").await;
    }
    let open = book.running(job("b")).await;
    assert_eq!(prune_all(&book, DAY, 1_000).await.jobs, 0, "young");
    book.advance(DAY * 2);
    // One that began long ago, and ended just now.
    let worker = book.worker().await;
    let orchestrator = book.orchestrator().await;
    let owned = book.claim_job(orchestrator).await.unwrap();
    assert_eq!(owned.lease.job, open.lease.job);
    assert_eq!(prune_all(&book, DAY, 1_000).await.jobs, 1);
    assert_eq!(masters(&book).await.len(), 2);
    let root = book.claim(worker, TaskType::DiscoveryEnumerate).await.unwrap();
    book.store().complete_enumeration(&root.claim, vec![listed("", vec![])]).await.unwrap();
    assert_eq!(
        book.store().complete_job(&owned.lease, Retries::NONE).await.unwrap(),
        Some(JobStatus::Completed)
    );
    survey(&book, "b").await;
    assert_eq!(prune_all(&book, DAY, 1_000).await.jobs, 0);
}

async fn steps_are_bounded_and_a_job_is_seen_whole_or_not_at_all(book: Book) {
    let running = book.running(job("a")).await;
    running.list((0..5).map(|i| listed(&format!("u{i}"), files("f", 10))).collect()).await;
    running.fan_out().await;
    let packet = running.classification().await;
    running.complete(&packet).await;
    assert_eq!(running.complete_job().await, Some(JobStatus::Completed));
    let first = running.master;
    let second = survey(&book, "a").await;
    book.advance(DAY);
    let mut rows = 0;
    loop {
        let step = book.store().prune(DAY / 2, 7).await.unwrap();
        assert!(step.rows <= 7, "{step:?}");
        rows += step.rows;
        unseen(&book, first).await;
        assert_eq!(masters(&book).await, [second]);
        if step.done {
            break;
        }
    }
    assert!(rows > 55, "its records and units, and the rest");
}

async fn an_interrupted_prune_goes_on(book: Book) {
    let first = survey(&book, "a").await;
    let second = survey(&book, "a").await;
    book.advance(DAY);
    for committed in [true, false, true] {
        book.lose_answer("prune", committed);
        assert!(book.store().prune(DAY / 2, 2).await.unwrap_err().is_retryable());
        if committed {
            unseen(&book, first).await;
        }
    }
    book.reopen().await;
    assert_eq!(prune_all(&book, DAY / 2, 2).await.jobs, 1);
    assert_eq!(masters(&book).await, [second]);
}

async fn old_processes_and_events_go(book: Book) {
    let running = book.running(job("a")).await;
    let idle = book.worker().await;
    running.enumeration().await;
    book.store().events("relay", 100).await.unwrap();
    book.advance(DAY);
    let live = book.worker().await;
    prune_all(&book, DAY / 2, 3).await;
    assert_eq!(book.store().events("another", 100).await.unwrap(), [], "whoever has not had them");
    let renewed = |id| {
        let store = book.store();
        async move { store.renew(Role::Worker, id, LEASE, Load::default()).await.unwrap() }
    };
    assert!(renewed(live).await && !renewed(idle).await);
    // The one with a task that runs is still known, until the reaper was there.
    assert_eq!(book.store().reap_tasks(GROUP, DEADLINE).await.unwrap().returned, 1);
    let owner = book.orchestrator().await;
    assert_eq!(book.claim_job(owner).await.unwrap().lease.job, running.lease.job);
}

async fn a_retried_job_is_not_pruned(book: Book) {
    let running = book.running(job("a")).await;
    let root = running.enumeration().await;
    let error = "gone".to_owned();
    book.store().give_back(&root.claim, GiveBack::Failed { error }).await.unwrap();
    assert_eq!(running.complete_job().await, Some(JobStatus::Failed));
    book.advance(DAY);
    book.store().retry(Retry::AllOf(running.master), RetryScope::Passing).await.unwrap();
    assert_eq!(prune_all(&book, DAY / 2, 100).await.jobs, 0);
    assert_eq!(book.status(running.master).await, JobStatus::Queued);
}
