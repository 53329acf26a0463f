//! The outbox: events in order, at least once, per consumer; and wake-ups.

use domesday_model::JobStatus;

use super::book::*;
use super::cases;

cases![
    events_tell_a_jobs_life_in_order,
    events_come_again_until_acknowledged,
    consumers_are_independent,
    an_acknowledgement_never_goes_back,
    events_are_pruned_when_every_consumer_has_them,
    a_refused_write_leaves_no_event,
    changes_wake_whoever_waits,
];

async fn events_tell_a_jobs_life_in_order(book: Book) {
    let running = book.running(job("a")).await;
    let packet = running.classify(&["f"]).await;
    running.complete(&packet).await;
    assert_eq!(running.complete_job().await, Some(JobStatus::Completed));
    let events = book.store().events("relay", 100).await.unwrap();
    assert!(events.iter().all(|event| event.job == running.lease.job));
    assert!(events.is_sorted_by_key(|event| event.id));
    let kinds: Vec<_> = events.iter().map(|event| event.kind.as_str()).collect();
    let expected = [
        "JobQueued",
        "JobClaimed",
        "TaskCreated",
        "BatchCommitted",
        "TaskCreated",
        "SessionEnded",
        "JobStatusChanged",
    ];
    assert_eq!(kinds, expected);
    assert_eq!(events[6].payload, serde_json::json!({ "from": "RUNNING", "to": "COMPLETED" }));
}

async fn events_come_again_until_acknowledged(book: Book) {
    book.running(job("a")).await;
    let store = book.store();
    let all = store.events("relay", 100).await.unwrap();
    assert_eq!(store.events("relay", 100).await.unwrap(), all);
    assert_eq!(store.events("relay", 1).await.unwrap(), all[..1]);
    store.acknowledge("relay", all[0].id).await.unwrap();
    assert_eq!(store.events("relay", 100).await.unwrap(), all[1..]);
}

async fn consumers_are_independent(book: Book) {
    let store = book.store();
    store.acknowledge("fast", 0).await.unwrap();
    store.acknowledge("slow", 0).await.unwrap();
    book.running(job("a")).await;
    let all = store.events("fast", 100).await.unwrap();
    store.acknowledge("fast", all.last().unwrap().id).await.unwrap();
    assert_eq!(store.events("fast", 100).await.unwrap(), []);
    assert_eq!(store.events("slow", 100).await.unwrap(), all, "nothing is pruned that someone still needs");
}

async fn an_acknowledgement_never_goes_back(book: Book) {
    let store = book.store();
    store.acknowledge("other", 0).await.unwrap();
    book.running(job("a")).await;
    let all = store.events("relay", 100).await.unwrap();
    store.acknowledge("relay", all[1].id).await.unwrap();
    store.acknowledge("relay", all[0].id).await.unwrap();
    assert_eq!(store.events("relay", 100).await.unwrap(), all[2..]);
}

async fn events_are_pruned_when_every_consumer_has_them(book: Book) {
    let store = book.store();
    book.running(job("a")).await;
    let all = store.events("relay", 100).await.unwrap();
    store.acknowledge("relay", all[1].id).await.unwrap();
    assert_eq!(store.events("late", 100).await.unwrap(), all[2..], "who comes late starts at what is left");
    book.running(job("b").group("east")).await;
    let next = store.events("relay", 100).await.unwrap();
    assert!(next.last().unwrap().id > all.last().unwrap().id, "ids are not used again");
}

async fn a_refused_write_leaves_no_event(book: Book) {
    let mut running = book.running(job("a")).await;
    let lost = running.enumeration().await;
    running.abandon().await;
    let before = book.store().events("relay", 100).await.unwrap();
    assert!(book.store().commit_units(&lost.claim, vec![listed("", vec![])]).await.unwrap_err().is_lost());
    assert_eq!(book.store().events("relay", 100).await.unwrap(), before);
}

async fn changes_wake_whoever_waits(book: Book) {
    let mut changes = book.store().changes();
    changes.mark_unchanged();
    book.submit(job("a")).await;
    changes.changed().await.unwrap();
}
