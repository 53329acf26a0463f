//! What may pass is tried again: containers and objects of a job, before it ends and by an operator.

use std::time::Duration;

use domesday_model::{Backoff, JobStatus, ObjectStatus, Reason, Retries, TaskStatus, TaskType};

use super::book::*;
use super::cases;
use crate::error::StoreError;
use crate::types::*;

cases![
    a_source_that_does_not_answer_is_waited_for,
    what_was_listed_begins_the_count_anew,
    containers_that_failed_are_listed_again_and_nothing_else,
    a_listing_that_broke_off_goes_on_behind_its_last_page,
    a_source_that_was_not_there_is_scanned_when_it_is,
    objects_are_read_again_before_the_job_ends,
    the_reading_that_got_farther_counts,
    what_is_read_again_and_fails_whole_takes_nothing_away,
    objects_that_failed_are_read_again_and_nothing_else,
    one_task_is_tried_again_alone,
    what_runs_is_not_tried_again_by_hand,
    a_repeated_retry_makes_no_second_task,
];

const WAIT: Duration = Duration::from_secs(10);
const THREE: Retries = Retries { attempts: 3, wait: Backoff::new(WAIT, WAIT) };

/// Claims the job again that was queued again.
async fn resume(running: &mut Running) {
    let owned = running.book.claim_job(running.orchestrator).await.expect("it is queued");
    assert_eq!(owned.master_job, running.master);
    assert_eq!(running.store().start_sessions(&owned.lease).await.unwrap(), 0);
    running.lease = owned.lease;
}

async fn retry(running: &mut Running, scope: RetryScope) -> Retried {
    let retried = running.store().retry(Retry::AllOf(running.master), scope).await.unwrap();
    assert_eq!(running.book.status(running.master).await, JobStatus::Queued);
    resume(running).await;
    retried
}

async fn problems(running: &Running) -> Vec<(String, ObjectStatus, Option<Reason>)> {
    let problems = running.store().problems(running.master, 10).await.unwrap();
    problems.into_iter().map(|p| (p.location.key.to_string(), p.status, p.reason)).collect()
}

async fn found(running: &Running) -> Vec<String> {
    let found = running.book.occurrences(running.master, OccurrenceFilter::default()).await;
    found.into_iter().map(|found| format!("{} {}", found.location.key, found.rule)).collect()
}

/// Completes a packet whose objects are these, as a worker does.
async fn complete(running: &Running, packet: &WorkPacket, batch: ResultBatch) {
    let store = running.store();
    let listed = store.packet_objects(packet).await.unwrap();
    let totals = TaskTotals { objects: listed.len() as u64, ..TaskTotals::default() };
    let replaces = match packet.reads_again {
        true => listed.into_iter().map(|object| object.key).collect(),
        false => Vec::new(),
    };
    let done = Completion { totals, replaces, ..completion(&packet.claim, 0, batch) };
    let answers = store.complete_classifications(vec![done]).await.unwrap();
    assert!(matches!(answers[..], [Ok(())]), "{answers:?}");
}

async fn keys(running: &Running, packet: &WorkPacket) -> Vec<String> {
    let objects = running.store().packet_objects(packet).await.unwrap();
    objects.iter().map(|object| object.key.to_string()).collect()
}

/// Findings in these objects, and what is said of others.
fn results(found: &[(&str, &str)], reports: &[(&str, ObjectStatus, Reason)]) -> ResultBatch {
    let reports = reports.iter().map(|(object, status, reason)| report(object, *status, Some(*reason)));
    ResultBatch {
        findings: found.iter().map(|(object, rule)| finding(object, rule)).collect(),
        ..objects(reports.collect())
    }
}

async fn a_source_that_does_not_answer_is_waited_for(book: Book) {
    let running = book.running(job("a")).await;
    let store = book.store();
    for failures in 1..=2 {
        let root = running.enumeration().await;
        assert_eq!(root.failures, failures - 1);
        let refused = GiveBack::Unavailable { error: "connection refused".to_owned(), after: WAIT };
        store.give_back(&root.claim, refused).await.unwrap();
        let child = store.child_jobs(running.master).await.unwrap().remove(0);
        assert!(child.progress.waiting_until_ms.is_some());
        assert_eq!(child.waiting_why.as_deref(), Some("connection refused"));
        assert!(book.claim(running.worker, TaskType::DiscoveryEnumerate).await.is_none(), "not yet");
        assert_eq!(running.complete_job().await, None);
        book.advance(WAIT);
    }
    running.list(vec![listed("", vec![])]).await;
    let child = store.child_jobs(running.master).await.unwrap().remove(0);
    assert_eq!((child.progress.waiting_until_ms, child.waiting_why), (None, None));
    assert_eq!(running.complete_job().await, Some(JobStatus::Completed));
}

/// A listing of many pages that breaks off now and then gets on all the same.
async fn what_was_listed_begins_the_count_anew(book: Book) {
    let mut running = book.running(job("a")).await;
    for page in 0..3 {
        let root = running.enumeration().await;
        assert_eq!(root.failures, u32::from(page > 0));
        let resume_point = Some(format!("after {page}"));
        let next = UnitListing { page, resume_point, ..listed("", files("f", 1)) };
        book.store().commit_units(&root.claim, vec![next]).await.unwrap();
        let broke_off = GiveBack::Unavailable { error: "broke off".to_owned(), after: WAIT };
        book.store().give_back(&root.claim, broke_off).await.unwrap();
        book.advance(WAIT);
        running.worker = book.worker().await;
    }
    let root = running.enumeration().await;
    let units = book.store().task_units(&root.claim).await.unwrap();
    assert_eq!((units.len(), units[0].page, root.failures), (1, 2, 1));
    // A container that fails is no progress.
    let denied = failed("x", Reason::PermissionDenied, "denied");
    book.store().commit_units(&root.claim, vec![denied]).await.unwrap();
    book.store().give_back(&root.claim, GiveBack::Returned).await.unwrap();
    assert_eq!(running.enumeration().await.failures, 1);
}

async fn containers_that_failed_are_listed_again_and_nothing_else(book: Book) {
    let mut running = book.running(job("a")).await;
    let store = book.store();
    running.list(vec![listed("", ["a", "b", "c"].map(dir).to_vec())]).await;
    running.fan_out().await;
    let gone = failed("b", Reason::Unavailable, "connection refused");
    let denied = failed("c", Reason::PermissionDenied, "denied");
    running.list(vec![listed("a", files("f", 2)), gone, denied]).await;
    running.fan_out().await;
    let packet = running.classification().await;
    complete(&running, &packet, results(&[("a/f0", "r")], &[])).await;
    assert_eq!(running.complete_job().await, Some(JobStatus::PartiallyCompleted));
    store.mark_reported(running.master).await.unwrap();

    let retried = retry(&mut running, RetryScope::Passing).await;
    assert_eq!(retried, Retried { containers: 1, ..Retried::default() });
    assert_eq!(store.unfinished([1; 16]).await.unwrap().unwrap().id, running.master);
    let again = running.enumeration().await;
    assert_eq!(store.packet_containers(&again).await.unwrap(), [key("b")]);
    assert_eq!(running.claim_by(running.worker, TaskType::DiscoveryEnumerate).await, None);
    let session = store.session(again.session).await.unwrap().unwrap();
    assert_eq!((session.status.as_str(), session.completed_at_ms), ("IN_PROGRESS", None));
    store.complete_enumeration(&again.claim, vec![listed("b", files("g", 1))]).await.unwrap();
    running.fan_out().await;
    let packet = running.classification().await;
    assert_eq!(keys(&running, &packet).await, ["b/g0"]);
    complete(&running, &packet, results(&[("b/g0", "r")], &[])).await;
    assert_eq!(running.complete_job().await, Some(JobStatus::PartiallyCompleted));
    assert_eq!(
        problems(&running).await,
        [("c".to_owned(), ObjectStatus::Failed, Some(Reason::PermissionDenied))]
    );

    let nothing = store.retry(Retry::AllOf(running.master), RetryScope::Passing).await.unwrap();
    assert!(nothing.is_empty());
    assert_eq!(book.status(running.master).await, JobStatus::PartiallyCompleted);
    assert_eq!(retry(&mut running, RetryScope::All).await.containers, 1);
    let again = running.enumeration().await;
    assert_eq!(store.packet_containers(&again).await.unwrap(), [key("c")]);
    store.complete_enumeration(&again.claim, vec![listed("c", vec![])]).await.unwrap();
    assert_eq!(running.complete_job().await, Some(JobStatus::Completed));
    assert_eq!((problems(&running).await, found(&running).await.len()), (vec![], 2));
    assert_eq!(store.summary(running.master).await.unwrap().objects_done, 3);
    let refused = store.retry(Retry::AllOf(running.master), RetryScope::All).await.unwrap_err();
    assert!(matches!(refused, StoreError::Refused(_)), "{refused}");
}

async fn a_listing_that_broke_off_goes_on_behind_its_last_page(book: Book) {
    let mut running = book.running(job("a")).await;
    let first = UnitListing { resume_point: Some("after 0".to_owned()), ..listed("", files("f", 2)) };
    let broke_off = UnitListing::failed(key(""), 1, Reason::Unavailable, "broke off");
    running.list(vec![first, broke_off]).await;
    running.fan_out().await;
    running.complete(&running.classification().await).await;
    assert_eq!(running.complete_job().await, Some(JobStatus::PartiallyCompleted));
    assert_eq!(retry(&mut running, RetryScope::Passing).await.containers, 1);
    let again = running.enumeration().await;
    let units = book.store().task_units(&again.claim).await.unwrap();
    assert_eq!((units.len(), units[0].page, units[0].resume_point.as_deref()), (1, 0, Some("after 0")));
    let last = UnitListing { page: 1, ..listed("", files("g", 1)) };
    book.store().complete_enumeration(&again.claim, vec![last]).await.unwrap();
    running.fan_out().await;
    let packet = running.classification().await;
    assert_eq!(keys(&running, &packet).await, ["g0"]);
    running.complete(&packet).await;
    assert_eq!(running.complete_job().await, Some(JobStatus::Completed));
}

async fn a_source_that_was_not_there_is_scanned_when_it_is(book: Book) {
    let mut running = book.running(job("a")).await;
    running.list(vec![failed("", Reason::Unavailable, "connection refused")]).await;
    assert_eq!(running.complete_job().await, Some(JobStatus::Failed));
    // A task that lists again and fails leaves what the first one left.
    assert_eq!(retry(&mut running, RetryScope::Passing).await.containers, 1);
    let again = running.enumeration().await;
    let error = "the credential is gone".to_owned();
    book.store().give_back(&again.claim, GiveBack::Failed { error }).await.unwrap();
    assert_eq!(running.complete_job().await, Some(JobStatus::Failed));
    assert_eq!(retry(&mut running, RetryScope::Passing).await, Retried { tasks: 1, ..Retried::default() });
    running.list(vec![listed("", files("f", 1))]).await;
    running.fan_out().await;
    running.complete(&running.classification().await).await;
    assert_eq!(running.complete_job().await, Some(JobStatus::Completed));
    let job = book.store().master_job(running.master).await.unwrap().unwrap();
    assert_eq!((job.failure_reason, problems(&running).await), (None, vec![]));
}

async fn objects_are_read_again_before_the_job_ends(book: Book) {
    use ObjectStatus::{Failed, Partial};
    let running = book.running(job("a")).await;
    let store = book.store();
    let packet = running.classify(&["f", "g", "h", "i"]).await;
    assert!(!packet.reads_again);
    let reports =
        [("g", Failed, Reason::Unavailable), ("h", Partial, Reason::Locked), ("i", Failed, Reason::Vanished)];
    complete(&running, &packet, results(&[("f", "r"), ("h", "r")], &reports)).await;
    assert_eq!(store.complete_job(&running.lease, THREE).await.unwrap(), None);
    assert_eq!(store.complete_job(&running.lease, THREE).await.unwrap(), None, "once");
    let child = store.child_jobs(running.master).await.unwrap().remove(0);
    assert_eq!((child.progress.objects_done, child.progress.tasks_pending), (2, 1));
    assert_eq!(child.waiting_why.as_deref(), Some("about g"));
    assert_eq!(found(&running).await, ["f r", "h r"], "until there is something better");
    assert!(book.claim(running.worker, TaskType::Classification).await.is_none(), "not yet");
    book.advance(WAIT);
    let again = running.classification().await;
    assert_eq!((again.reads_again, again.failures), (true, 1));
    assert_eq!(keys(&running, &again).await, ["g", "h"]);
    complete(&running, &again, results(&[("g", "r"), ("h", "r"), ("h", "s")], &[])).await;
    assert_eq!(store.complete_job(&running.lease, THREE).await.unwrap(), Some(JobStatus::PartiallyCompleted));
    assert_eq!(found(&running).await, ["f r", "g r", "h r", "h s"]);
    assert_eq!(problems(&running).await, [("i".to_owned(), Failed, Some(Reason::Vanished))]);
    assert_eq!(store.summary(running.master).await.unwrap().objects_done, 4);
}

async fn the_reading_that_got_farther_counts(book: Book) {
    use ObjectStatus::{Failed, Partial};
    let running = book.running(job("a")).await;
    let store = book.store();
    let packet = running.classify(&["f", "g"]).await;
    let broke_off =
        results(&[("f", "r")], &[("f", Partial, Reason::Unavailable), ("g", Failed, Reason::Unavailable)]);
    complete(&running, &packet, broke_off).await;
    for attempt in 1..3 {
        assert_eq!(store.complete_job(&running.lease, THREE).await.unwrap(), None);
        book.advance(WAIT);
        let mut asked = Vec::new();
        while let Some(again) = book.claim(running.worker, TaskType::Classification).await {
            assert_eq!(again.failures, attempt);
            let keys = keys(&running, &again).await;
            let refused: Vec<_> =
                keys.iter().map(|key| (key.as_str(), Failed, Reason::Unavailable)).collect();
            complete(&running, &again, results(&[], &refused)).await;
            asked.extend(keys);
        }
        asked.sort();
        assert_eq!(asked, ["f", "g"]);
    }
    assert_eq!(store.complete_job(&running.lease, THREE).await.unwrap(), Some(JobStatus::PartiallyCompleted));
    assert_eq!(found(&running).await, ["f r"]);
    let expected = [("f", Partial), ("g", Failed)];
    let expected = expected.map(|(key, status)| (key.to_owned(), status, Some(Reason::Unavailable)));
    assert_eq!(problems(&running).await, expected);
    let summary = store.summary(running.master).await.unwrap();
    assert_eq!(
        (summary.objects_done, summary.failed, summary.partial.len()),
        (2, vec![(Reason::Unavailable, 1)], 1)
    );
}

async fn what_is_read_again_and_fails_whole_takes_nothing_away(book: Book) {
    let mut running = book.running(job("a")).await;
    let store = book.store();
    let packet = running.classify(&["f", "g"]).await;
    let partial = [("f", ObjectStatus::Partial, Reason::Unavailable)];
    complete(&running, &packet, results(&[("f", "r")], &partial)).await;
    assert_eq!(running.complete_job().await, Some(JobStatus::PartiallyCompleted));
    assert_eq!(retry(&mut running, RetryScope::Passing).await.objects, 1);
    let again = running.classification().await;
    let error = "the credential is gone".to_owned();
    store.give_back(&again.claim, GiveBack::Failed { error }).await.unwrap();
    assert_eq!(running.complete_job().await, Some(JobStatus::PartiallyCompleted));
    assert_eq!(problems(&running).await.len(), 1);
    assert_eq!(found(&running).await, ["f r"]);
    // The failed task is the one that reads it again: it is read once.
    assert_eq!(retry(&mut running, RetryScope::Passing).await, Retried { tasks: 1, ..Retried::default() });
    let again = running.classification().await;
    complete(&running, &again, results(&[("f", "r")], &[])).await;
    assert_eq!(running.complete_job().await, Some(JobStatus::Completed));
    assert_eq!((found(&running).await, problems(&running).await), (vec!["f r".to_owned()], vec![]));
    assert_eq!(store.summary(running.master).await.unwrap().objects_done, 2);
}

async fn objects_that_failed_are_read_again_and_nothing_else(book: Book) {
    use ObjectStatus::{Failed, Partial};
    let mut running = book.running(job("a")).await;
    let packet = running.classify(&["f", "g", "h", "i"]).await;
    let reports = [("f", Partial, Reason::Unavailable), ("h", Failed, Reason::PermissionDenied)];
    complete(&running, &packet, results(&[("f", "r"), ("g", "r")], &reports)).await;
    assert_eq!(running.complete_job().await, Some(JobStatus::PartiallyCompleted));
    assert_eq!(retry(&mut running, RetryScope::Passing).await, Retried { objects: 1, ..Retried::default() });
    let again = running.classification().await;
    assert_eq!(
        (again.reads_again, again.failures, keys(&running, &again).await),
        (true, 0, vec!["f".to_owned()])
    );
    // Clean by now: what was found in it then is gone.
    complete(&running, &again, ResultBatch::default()).await;
    assert_eq!(running.complete_job().await, Some(JobStatus::PartiallyCompleted));
    assert_eq!(found(&running).await, ["g r"]);
    assert_eq!(retry(&mut running, RetryScope::All).await.objects, 1);
    let again = running.classification().await;
    assert_eq!(keys(&running, &again).await, ["h"]);
    complete(&running, &again, results(&[("h", "r")], &[])).await;
    assert_eq!(running.complete_job().await, Some(JobStatus::Completed));
    assert_eq!(
        (found(&running).await, problems(&running).await),
        (vec!["g r".to_owned(), "h r".to_owned()], vec![])
    );
    assert_eq!(book.store().summary(running.master).await.unwrap().objects_done, 4);
}

async fn one_task_is_tried_again_alone(book: Book) {
    let mut running = book.running(job("a")).await;
    let store = book.store();
    let root = running.enumeration().await;
    let gone = failed("b", Reason::Unavailable, "connection refused");
    store.complete_enumeration(&root.claim, vec![listed("", files("f", 1)), gone]).await.unwrap();
    running.fan_out().await;
    let packet = running.classification().await;
    complete(&running, &packet, results(&[], &[("f0", ObjectStatus::Failed, Reason::Unavailable)])).await;
    assert_eq!(running.complete_job().await, Some(JobStatus::PartiallyCompleted));
    let retried = store.retry(Retry::Task(packet.claim.task), RetryScope::Passing).await.unwrap();
    assert_eq!(retried, Retried { objects: 1, ..Retried::default() });
    resume(&mut running).await;
    assert!(running.claim_by(running.worker, TaskType::DiscoveryEnumerate).await.is_none());
    let again = running.classification().await;
    complete(&running, &again, ResultBatch::default()).await;
    assert_eq!(running.complete_job().await, Some(JobStatus::PartiallyCompleted));
    let retried = store.retry(Retry::Task(root.claim.task), RetryScope::Passing).await.unwrap();
    assert_eq!(retried, Retried { containers: 1, ..Retried::default() });
    resume(&mut running).await;
    running.list(vec![listed("b", vec![])]).await;
    assert_eq!(running.complete_job().await, Some(JobStatus::Completed));
    let tasks = store.tasks(TaskFilter::default(), 10).await.unwrap();
    assert!(tasks.iter().all(|task| task.status == TaskStatus::Completed), "{tasks:?}");
}

async fn what_runs_is_not_tried_again_by_hand(book: Book) {
    let running = book.running(job("a").source("b")).await;
    running.list(vec![failed("", Reason::Unavailable, "connection refused")]).await;
    let retried = book.store().retry(Retry::AllOf(running.master), RetryScope::All).await.unwrap();
    assert!(retried.is_empty(), "the other source is open: {retried:?}");
    assert_eq!(problems(&running).await.len(), 1);
}

async fn a_repeated_retry_makes_no_second_task(book: Book) {
    for (group, committed) in [("east", true), ("west", false)] {
        let running = book.running(job("a").group(group)).await;
        running.list(vec![failed("", Reason::Unavailable, "connection refused")]).await;
        assert_eq!(running.complete_job().await, Some(JobStatus::Failed));
        book.lose_answer("retry", committed);
        let again = || async { book.store().retry(Retry::AllOf(running.master), RetryScope::Passing).await };
        assert!(matches!(again().await, Err(StoreError::CommitUnknown(_))));
        assert_eq!(again().await.unwrap().is_empty(), committed);
        let filter = TaskFilter { master: Some(running.master), ..TaskFilter::default() };
        assert_eq!(book.store().tasks(filter, 10).await.unwrap().len(), 2);
    }
}
