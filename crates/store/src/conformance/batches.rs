//! Sessions, their batches and checkpoints, as people look at them.

use std::time::Duration;

use domesday_model::{
    BatchId, BatchStatus, CheckpointId, EnumerationSessionId, JobStatus, MasterJobId, Reason, SessionStatus,
};
use serde_json::json;

use super::book::*;
use super::cases;
use crate::error::StoreError;
use crate::types::*;

cases![
    a_session_tells_what_its_batches_did,
    sessions_are_read_in_pages,
    sessions_are_filtered,
    a_failed_session_tells_why,
    batches_are_read_newest_first,
    a_failed_batch_names_its_container,
    a_failed_task_is_a_failed_batch,
    a_checkpoint_follows_from_the_last_batch,
    other_checkpoints_are_saved_and_deleted,
];

async fn only_session(book: &Book) -> SessionInfo {
    let mut sessions = book.store().sessions(SessionFilter::default(), None, 10).await.unwrap();
    assert_eq!(sessions.len(), 1);
    sessions.remove(0)
}

async fn a_session_tells_what_its_batches_did(book: Book) {
    let running = book.running(job("a")).await;
    let new = only_session(&book).await;
    assert_eq!(
        (new.status, new.last_checkpoint, new.completed_at_ms),
        (SessionStatus::Initialized, None, None)
    );
    assert_eq!(new.metrics, SessionMetrics::default());
    assert_eq!((new.datasource.as_str(), new.source_type.as_str()), ("a", "filesystem"));
    assert_eq!((new.master, new.job), (running.master, running.lease.job));
    assert_eq!((new.node_group.as_str(), new.configuration), (GROUP, json!({ "path": "a" })));
    let root = running.enumeration().await;
    assert_eq!(root.session, new.id);
    book.advance(Duration::from_secs(2));
    let units = vec![listed("u", files("f", 3)), failed("v", Reason::Vanished, "gone")];
    book.store().commit_units(&root.claim, units).await.unwrap();
    let none = vec![failed("w", Reason::Vanished, "gone")];
    book.store().commit_units(&root.claim, none).await.unwrap();
    book.store().stage_unit(&root.claim, batch("x", 0, files("f", 4))).await.unwrap();
    let session = book.store().session(new.id).await.unwrap().unwrap();
    assert_eq!(session.status, SessionStatus::InProgress);
    assert_eq!(session.last_update_ms, new.started_at_ms + 2_000);
    let metrics = SessionMetrics { total_batches: 3, failed_batches: 1, items_found: 7, items_processed: 7 };
    assert_eq!(session.metrics, metrics);
    let unit = book.store().task_units(&root.claim).await.unwrap().pop().unwrap().unit;
    book.store().commit_staged(&root.claim, unit).await.unwrap();
    book.store().complete_enumeration(&root.claim, Vec::new()).await.unwrap();
    running.complete_job().await;
    let ended = only_session(&book).await;
    assert_eq!(ended.status, SessionStatus::PartiallyCompleted);
    assert_eq!(ended.failure_reason.as_deref(), Some("some containers could not be listed: gone"));
    assert!(ended.completed_at_ms.is_some());
    assert_eq!(book.store().session(EnumerationSessionId(new.id.0 + 1)).await.unwrap(), None);
    assert_eq!(book.store().session(EnumerationSessionId(i64::MIN)).await.unwrap(), None);
}

async fn sessions_are_read_in_pages(book: Book) {
    book.running((1..5).fold(job("s0"), |job, i| job.source(&format!("s{i}")))).await;
    let (mut names, mut after) = (Vec::new(), None);
    loop {
        let page = book.store().sessions(SessionFilter::default(), after, 2).await.unwrap();
        let Some(last) = page.last() else { break };
        after = Some(last.id);
        names.extend(page.into_iter().map(|session| session.datasource));
    }
    assert_eq!(names, ["s0", "s1", "s2", "s3", "s4"]);
}

async fn sessions_are_filtered(book: Book) {
    let first = book.running(job("a").source("b")).await;
    first.list(vec![listed("", vec![])]).await;
    assert_eq!(first.complete_job().await, None);
    let second = book.running(job("c")).await;
    let of = |filter: SessionFilter| {
        let store = book.store();
        async move {
            let sessions = store.sessions(filter, None, 10).await.unwrap();
            sessions.into_iter().map(|session| session.datasource).collect::<Vec<_>>()
        }
    };
    let any = SessionFilter::default;
    assert_eq!(of(any()).await, ["a", "b", "c"]);
    assert_eq!(of(SessionFilter { active_only: true, ..any() }).await, ["b", "c"]);
    assert_eq!(of(SessionFilter { master: Some(first.master), ..any() }).await, ["a", "b"]);
    let active_first = SessionFilter { master: Some(first.master), active_only: true, ..any() };
    assert_eq!(of(active_first).await, ["b"]);
    assert_eq!(of(SessionFilter { master: Some(second.master), ..any() }).await, ["c"]);
    assert_eq!(of(SessionFilter { status: Some(SessionStatus::Completed), ..any() }).await, ["a"]);
    assert_eq!(of(SessionFilter { master: Some(MasterJobId([9; 16])), ..any() }).await, [""; 0]);
}

async fn a_failed_session_tells_why(book: Book) {
    let running = book.running(job("a")).await;
    let root = running.enumeration().await;
    let error = "no such host".to_owned();
    book.store().give_back(&root.claim, GiveBack::Failed { error }).await.unwrap();
    assert_eq!(running.complete_job().await, Some(JobStatus::Failed));
    let session = only_session(&book).await;
    assert_eq!(session.status, SessionStatus::Failed);
    assert_eq!(session.failure_reason.as_deref(), Some("nothing could be listed: no such host"));
}

async fn batches_are_read_newest_first(book: Book) {
    let running = book.running(job("a").source("b")).await;
    let (root, other) = (running.enumeration().await, running.enumeration().await);
    let store = book.store();
    assert_eq!(store.last_batch(root.session).await.unwrap(), None);
    for i in 0..5 {
        let unit = |count| vec![listed(&format!("u{i}"), files("f", count))];
        store.commit_units(&root.claim, unit(i)).await.unwrap();
        store.commit_units(&other.claim, unit(1)).await.unwrap();
    }
    let (mut items, mut after) = (Vec::new(), None);
    loop {
        let page = store.batches(root.session, after, 2).await.unwrap();
        let Some(last) = page.last() else { break };
        after = Some(last.id);
        items.extend(page.iter().map(|batch| batch.items_processed));
        assert!(page.iter().all(|batch| batch.session == root.session));
    }
    assert_eq!(items, [4, 3, 2, 1, 0]);
    let last = store.last_batch(root.session).await.unwrap().unwrap();
    assert_eq!((last.items_processed, last.status), (4, BatchStatus::Succeeded));
    assert_eq!((last.expected_items, last.error_details.as_deref()), (4, None));
    assert!(last.completed_at_ms.is_some());
    assert_eq!(store.batch(last.id).await.unwrap(), Some(last.clone()));
    assert_eq!(store.batch(BatchId(last.id.0 + 100)).await.unwrap(), None);
}

async fn a_failed_batch_names_its_container(book: Book) {
    let running = book.running(job("a")).await;
    let root = running.enumeration().await;
    let store = book.store();
    let long = "é".repeat(5_000);
    for (units, status, says) in [
        (vec![failed("d/\u{7}", Reason::PermissionDenied, "denied")], BatchStatus::Failed, "`d/\\x07`: "),
        (
            vec![
                listed("e", vec![]),
                failed("f", Reason::Vanished, "gone"),
                failed("g", Reason::Vanished, "too"),
            ],
            BatchStatus::PartiallyCompleted,
            "`f`: vanished: gone (and 1 more)",
        ),
        (vec![failed("", Reason::ReadError, "a\0b")], BatchStatus::Failed, "the root: "),
        (vec![failed("h", Reason::ReadError, &long)], BatchStatus::Failed, "é…"),
    ] {
        store.commit_units(&root.claim, units).await.unwrap();
        let last = store.last_batch(root.session).await.unwrap().unwrap();
        let error = last.error_details.expect("it says what failed");
        assert_eq!(last.status, status);
        assert!(error.contains(says), "{error}");
        assert!(error.len() < 600, "{}", error.len());
    }
}

async fn a_failed_task_is_a_failed_batch(book: Book) {
    let running = book.running(job("a")).await;
    running.list(vec![listed("", vec![dir("d"), dir("e")])]).await;
    running.fan_out().await;
    let packet = running.enumeration().await;
    book.store().commit_units(&packet.claim, vec![listed("d", vec![])]).await.unwrap();
    let error = "the token expired".to_owned();
    book.store().give_back(&packet.claim, GiveBack::Failed { error }).await.unwrap();
    let last = book.store().last_batch(packet.session).await.unwrap().unwrap();
    assert_eq!(
        (last.status, last.error_details.as_deref()),
        (BatchStatus::Failed, Some("the token expired"))
    );
    assert_eq!(running.complete_job().await, Some(JobStatus::PartiallyCompleted));
    let session = only_session(&book).await;
    assert_eq!((session.status, session.metrics.failed_batches), (SessionStatus::PartiallyCompleted, 1));
}

async fn a_checkpoint_follows_from_the_last_batch(book: Book) {
    let running = book.running(job("a")).await;
    let root = running.enumeration().await;
    let store = book.store();
    let target = format!("session:{}", root.session);
    assert_eq!(store.checkpoint_of(&target).await.unwrap(), None);
    let at = |point: &str| json!({ "task": root.claim.task, "key": "z", "resume_point": point });
    for (page, point) in [(0, "page 1"), (1, "page 2")] {
        let page = UnitListing { page, resume_point: Some(point.to_owned()), ..listed("z", files("f", 2)) };
        store.commit_units(&root.claim, vec![page]).await.unwrap();
        let checkpoint = store.checkpoint_of(&target).await.unwrap().expect("it has one");
        assert_eq!((&checkpoint.target, &checkpoint.data), (&target, &at(point)));
        assert_eq!(store.checkpoint(checkpoint.id).await.unwrap().as_ref(), Some(&checkpoint));
        assert_eq!(only_session(&book).await.last_checkpoint, Some(checkpoint));
        let last = store.last_batch(root.session).await.unwrap().unwrap();
        assert_eq!(last.checkpoint, Some(at(point)));
    }
    for refused in [
        store.save_checkpoint(&target, &json!({})).await.map(|_| ()),
        store.delete_checkpoint(&target).await.map(|_| ()),
    ] {
        assert!(matches!(refused, Err(StoreError::Refused(_))), "{refused:?}");
    }
}

async fn other_checkpoints_are_saved_and_deleted(book: Book) {
    let running = book.running(job("a")).await;
    running.list(vec![listed("", vec![])]).await;
    let store = book.store();
    let first = store.save_checkpoint("mirror:x", &json!({ "at": 1 })).await.unwrap();
    let other = store.save_checkpoint("mirror:y", &json!(null)).await.unwrap();
    assert_ne!(first, other);
    book.advance(Duration::from_secs(1));
    assert_eq!(store.save_checkpoint("mirror:x", &json!({ "at": 2 })).await.unwrap(), first);
    let saved = store.checkpoint_of("mirror:x").await.unwrap().unwrap();
    assert_eq!((saved.id, saved.data.clone()), (first, json!({ "at": 2 })));
    assert_eq!(store.checkpoint(first).await.unwrap(), Some(saved));
    assert!(store.delete_checkpoint("mirror:x").await.unwrap());
    assert!(!store.delete_checkpoint("mirror:x").await.unwrap());
    assert_eq!(store.checkpoint_of("mirror:x").await.unwrap(), None);
    assert_eq!(store.checkpoint(first).await.unwrap(), None);
    assert_eq!(store.checkpoint(CheckpointId(i64::MAX)).await.unwrap(), None);
    assert!(store.checkpoint(other).await.unwrap().is_some());
}
