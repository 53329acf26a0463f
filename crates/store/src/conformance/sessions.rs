//! Enumeration sessions, and how jobs end.

use std::time::Duration;

use domesday_model::{JobStatus, ObjectStatus, Reason, Retries};

use super::book::*;
use super::cases;
use crate::types::*;

cases![
    sessions_start_once,
    a_job_ends_when_nothing_is_left,
    a_job_does_not_end_before_it_began,
    a_job_with_failures_is_partially_completed,
    a_job_that_could_not_be_enumerated_failed,
    a_master_job_ends_with_its_last_child,
    sessions_end_as_their_enumeration_did,
    a_silent_session_is_stalled_and_recovers,
    a_new_owner_resumes_stalled_sessions,
    a_session_that_only_classifies_is_not_stalled,
];

async fn sessions_start_once(book: Book) {
    let running = book.running(job("a").source("b")).await;
    assert_eq!(book.store().start_sessions(&running.lease).await.unwrap(), 0);
    let names = [running.enumeration().await.datasource.name, running.enumeration().await.datasource.name];
    assert_eq!(names, ["a", "b"]);
    assert_eq!(running.claim_by(running.worker, domesday_model::TaskType::DiscoveryEnumerate).await, None);
}

async fn a_job_ends_when_nothing_is_left(book: Book) {
    let running = book.running(job("a")).await;
    assert_eq!(running.complete_job().await, None, "a task is pending");
    let root = running.enumeration().await;
    assert_eq!(running.complete_job().await, None, "a task is running");
    book.store().stage_unit(&root.claim, batch("", 0, vec![file("f")])).await.unwrap();
    let unit = book.store().task_units(&root.claim).await.unwrap()[0].unit;
    book.store().commit_staged(&root.claim, unit).await.unwrap();
    book.store().complete_enumeration(&root.claim, Vec::new()).await.unwrap();
    assert_eq!(running.complete_job().await, None, "a unit is to be fanned out");
    running.fan_out().await;
    assert_eq!(running.complete_job().await, None);
    let packet = running.classification().await;
    assert_eq!(running.complete_job().await, None);
    running.complete(&packet).await;
    assert_eq!(running.complete_job().await, Some(JobStatus::Completed));
    let job = book.store().master_job(running.master).await.unwrap().unwrap();
    assert_eq!((job.status, job.failure_reason), (JobStatus::Completed, None));
    assert!(job.finished_at_ms.is_some());
    assert!(book.store().complete_job(&running.lease, Retries::NONE).await.unwrap_err().is_lost());
}

/// An owner that could not start the sessions yet must not find the job done.
async fn a_job_does_not_end_before_it_began(book: Book) {
    book.submit(job("a")).await;
    let orchestrator = book.orchestrator().await;
    let owned = book.claim_job(orchestrator).await.unwrap();
    assert_eq!(book.store().complete_job(&owned.lease, Retries::NONE).await.unwrap(), None);
    assert_eq!(book.store().start_sessions(&owned.lease).await.unwrap(), 1);
}

async fn a_job_with_failures_is_partially_completed(book: Book) {
    let failures = [
        (None, Some(report("f", ObjectStatus::Failed, Some(Reason::ReadError)))),
        (None, Some(report("f", ObjectStatus::Partial, Some(Reason::Changed)))),
        (Some(failed("d", Reason::Vanished, "gone")), None),
    ];
    for (unit, object) in failures {
        let running = book.running(job("a")).await;
        running.list([listed("", vec![file("f")])].into_iter().chain(unit).collect()).await;
        running.fan_out().await;
        let packet = running.classification().await;
        let results = objects(object.into_iter().collect());
        book.complete(&packet.claim, 0, results).await.unwrap();
        assert_eq!(running.complete_job().await, Some(JobStatus::PartiallyCompleted));
    }
    let running = book.running(job("a")).await;
    let packet = running.classify(&["f"]).await;
    let skipped = objects(vec![report("f", ObjectStatus::Skipped, Some(Reason::TooLarge))]);
    book.complete(&packet.claim, 0, skipped).await.unwrap();
    assert_eq!(running.complete_job().await, Some(JobStatus::Completed), "left out as asked is no failure");
}

async fn a_job_that_could_not_be_enumerated_failed(book: Book) {
    let running = book.running(job("a")).await;
    running.list(vec![failed("", Reason::PermissionDenied, "permission denied")]).await;
    assert_eq!(running.complete_job().await, Some(JobStatus::Failed));
    let ended = book.store().master_job(running.master).await.unwrap().unwrap();
    assert_eq!(ended.failure_reason.as_deref(), Some("permission denied"));
    let running = book.running(job("a")).await;
    let packet = running.enumeration().await;
    let gone = GiveBack::Failed { error: "no such host".to_owned() };
    book.store().give_back(&packet.claim, gone).await.unwrap();
    assert_eq!(running.complete_job().await, Some(JobStatus::Failed));
    let ended = book.store().master_job(running.master).await.unwrap().unwrap();
    assert_eq!(ended.failure_reason.as_deref(), Some("no such host"));
}

async fn a_master_job_ends_with_its_last_child(book: Book) {
    let master = book.submit(job("a").source("b").group("east")).await;
    for (group, unit, status) in [
        (GROUP, listed("", vec![]), JobStatus::Queued),
        ("east", failed("", Reason::Vanished, "gone"), JobStatus::PartiallyCompleted),
    ] {
        let (orchestrator, worker) =
            (book.process(Role::Orchestrator, group).await, book.process(Role::Worker, group).await);
        let lease = book.store().claim_job(orchestrator, group, LEASE).await.unwrap().unwrap().lease;
        book.store().start_sessions(&lease).await.unwrap();
        let running =
            Running { book: book.clone(), group: group.to_owned(), master, orchestrator, lease, worker };
        running.list(vec![unit]).await;
        assert!(running.complete_job().await.is_some());
        let job = book.store().master_job(master).await.unwrap().unwrap();
        assert_eq!((job.status, job.finished_at_ms.is_some()), (status, status != JobStatus::Queued));
    }
}

/// What the events say of how sessions ended, by the order they ended in.
async fn ended(book: &Book) -> Vec<String> {
    let events = book.store().events("test", 1_000).await.unwrap();
    let ended = events.into_iter().filter(|event| event.kind == "SessionEnded");
    ended.map(|event| event.payload["status"].as_str().unwrap().to_owned()).collect()
}

async fn sessions_end_as_their_enumeration_did(book: Book) {
    let running = book.running(job("a").source("b").source("c")).await;
    running.list(vec![listed("", vec![file("f")])]).await;
    assert_eq!(running.complete_job().await, None);
    assert_eq!(ended(&book).await, ["COMPLETED"], "its objects are not read yet, but they are all known");
    running.list(vec![listed("", vec![dir("d")]), failed("e", Reason::Vanished, "gone")]).await;
    assert_eq!(running.complete_job().await, None);
    assert_eq!(ended(&book).await.len(), 1, "a container waits for its turn");
    running.fan_out().await;
    running.list(vec![listed("d", vec![])]).await;
    running.list(vec![failed("", Reason::PermissionDenied, "denied")]).await;
    assert_eq!(running.complete_job().await, None);
    assert_eq!(ended(&book).await, ["COMPLETED", "PARTIALLY_COMPLETED", "FAILED"]);
    running.complete_job().await;
    assert_eq!(ended(&book).await.len(), 3, "once each");
}

const SILENCE: Duration = Duration::from_secs(300);

async fn a_silent_session_is_stalled_and_recovers(book: Book) {
    let running = book.running(job("a")).await;
    let root = running.enumeration().await;
    let store = book.store();
    store.stage_unit(&root.claim, batch("", 0, vec![file("f")])).await.unwrap();
    let stalled = || async { book.store().reap_sessions(GROUP, SILENCE).await.unwrap() };
    book.advance(SILENCE - Duration::from_millis(1));
    assert_eq!(stalled().await, 0);
    book.advance(Duration::from_millis(1));
    assert_eq!(store.reap_sessions("elsewhere", SILENCE).await.unwrap(), 0);
    assert_eq!(stalled().await, 1);
    book.advance(SILENCE);
    assert_eq!(stalled().await, 0, "it is stalled already");
    // The worker was only slow.
    store.stage_unit(&root.claim, batch("", 1, vec![file("g")])).await.unwrap();
    book.advance(SILENCE);
    assert_eq!(stalled().await, 1, "it had recovered, and stalled again");
    let unit = store.task_units(&root.claim).await.unwrap()[0].unit;
    store.commit_staged(&root.claim, unit).await.unwrap();
    store.complete_enumeration(&root.claim, Vec::new()).await.unwrap();
    assert_eq!(running.complete_job().await, None);
    assert_eq!(ended(&book).await, ["COMPLETED"], "a stalled session ends like any other");
}

async fn a_new_owner_resumes_stalled_sessions(book: Book) {
    let running = book.running(job("a")).await;
    let root = running.enumeration().await;
    book.store().stage_unit(&root.claim, batch("", 0, vec![file("f")])).await.unwrap();
    book.advance(SILENCE);
    assert_eq!(book.store().reap_sessions(GROUP, SILENCE).await.unwrap(), 1);
    let other = book.orchestrator().await;
    let owned = book.claim_job(other).await.unwrap();
    assert_eq!(book.store().start_sessions(&owned.lease).await.unwrap(), 0);
    assert_eq!(book.store().reap_sessions(GROUP, SILENCE).await.unwrap(), 0, "its silence starts anew");
    book.advance(SILENCE);
    assert_eq!(book.store().reap_sessions(GROUP, SILENCE).await.unwrap(), 1);
}

async fn a_session_that_only_classifies_is_not_stalled(book: Book) {
    let running = book.running(job("a")).await;
    running.classify(&["f"]).await;
    book.advance(SILENCE);
    assert_eq!(book.store().reap_sessions(GROUP, SILENCE).await.unwrap(), 0);
}
