//! Templates, and schedules that fire once.

use domesday_model::{MasterJobId, MissedFirings, ScanTemplate, Schedule, TemplateRules};

use super::book::*;
use super::cases;
use crate::error::StoreError;
use crate::types::*;

cases![
    a_template_is_added_replaced_and_removed,
    templates_are_due_by_the_books_clock,
    a_firing_starts_one_job,
    a_firing_may_be_skipped,
    a_firing_of_a_changed_template_starts_nothing,
    a_time_that_has_fired_is_passed_over,
    orchestrators_that_fire_at_once_start_one_job,
    a_lost_answer_to_a_firing_starts_one_job,
];

fn template(name: &str) -> ScanTemplate {
    ScanTemplate {
        name: name.to_owned(),
        datasources: vec!["a".to_owned(), "nas-*".to_owned()],
        rules: vec![TemplateRules { name: "own.toml".to_owned(), text: "[[rule]]".to_owned() }],
        options: domesday_model::ScanOptions::default(),
        priority: 3,
        schedule: Some(Schedule {
            cron: "0 3 * * *".to_owned(),
            time_zone: "Europe/Berlin".to_owned(),
            missed: MissedFirings::Skip,
        }),
    }
}

async fn now(book: &Book) -> i64 {
    book.store().due_templates().await.unwrap().now_ms
}

/// The firing at `firing_ms` of the template `a`, due again at `next_ms`.
fn firing(book: &Book, firing_ms: i64, next_ms: i64) -> Firing {
    let job = NewMasterJob { template: Some("a".to_owned()), ..job("a").build(MasterJobId(book.id())) };
    Firing { template: "a".to_owned(), firing_ms, next_ms: Some(next_ms), job: Some(job) }
}

async fn jobs(book: &Book) -> usize {
    book.store().master_jobs(100).await.unwrap().len()
}

async fn a_template_is_added_replaced_and_removed(book: Book) {
    let store = book.store();
    for name in ["b", "a"] {
        store.put_template(&template(name), Put::New, Some(5)).await.unwrap();
    }
    let refused = store.put_template(&template("a"), Put::New, None).await.unwrap_err();
    assert!(matches!(&refused, StoreError::Exists { name, .. } if name == "a"), "{refused}");
    let listed = store.templates().await.unwrap();
    assert_eq!(listed.iter().map(|stored| stored.template.name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!((&listed[1].template, listed[1].next_firing_ms), (&template("b"), Some(5)));
    let changed = ScanTemplate { schedule: None, ..template("b") };
    book.advance(LEASE);
    store.put_template(&changed, Put::Replace, None).await.unwrap();
    let found = store.template("b").await.unwrap().unwrap();
    assert_eq!((found.template, found.next_firing_ms, found.last_firing), (changed, None, None));
    assert!(found.updated_at_ms > listed[1].updated_at_ms);
    store.remove_template("b").await.unwrap();
    assert_eq!(store.template("b").await.unwrap(), None);
    for missing in [
        store.remove_template("b").await.unwrap_err(),
        store.put_template(&template("b"), Put::Replace, None).await.unwrap_err(),
    ] {
        assert!(matches!(&missing, StoreError::Missing { name, .. } if name == "b"), "{missing}");
    }
}

async fn templates_are_due_by_the_books_clock(book: Book) {
    let now = now(&book).await;
    let at = |seconds: i64| Some(now + seconds * 1_000);
    for (name, next) in
        [("late", at(-1)), ("just", at(0)), ("soon", at(10)), ("later", at(60)), ("never", None)]
    {
        book.store().put_template(&template(name), Put::New, next).await.unwrap();
    }
    let due = book.store().due_templates().await.unwrap();
    let names: Vec<_> = due.templates.iter().map(|stored| stored.template.name.as_str()).collect();
    assert_eq!((names, due.next_ms), (vec!["late", "just"], at(10)));
    book.advance(LEASE * 2);
    let due = book.store().due_templates().await.unwrap();
    assert_eq!((due.templates.len(), due.next_ms, due.now_ms), (4, None, now + 60_000));
}

async fn a_firing_starts_one_job(book: Book) {
    let now = now(&book).await;
    book.store().put_template(&template("a"), Put::New, Some(now)).await.unwrap();
    let first = firing(&book, now, now + 1_000);
    let id = first.job.as_ref().unwrap().id;
    assert!(book.store().fire(first).await.unwrap());
    // Someone else saw the same and comes late.
    assert!(!book.store().fire(firing(&book, now, now + 1_000)).await.unwrap());
    assert_eq!(jobs(&book).await, 1);
    let stored = book.store().template("a").await.unwrap().unwrap();
    assert_eq!((stored.next_firing_ms, stored.last_firing), (Some(now + 1_000), Some((now, Some(id)))));
    assert_eq!(book.store().due_templates().await.unwrap().templates, []);
    let orchestrator = book.orchestrator().await;
    assert_eq!(book.claim_job(orchestrator).await.unwrap().master_job, id, "it is a job as any other");
}

async fn a_firing_may_be_skipped(book: Book) {
    let now = now(&book).await;
    book.store().put_template(&template("a"), Put::New, Some(now)).await.unwrap();
    let skip = Firing { job: None, ..firing(&book, now, now + 1_000) };
    assert!(book.store().fire(skip.clone()).await.unwrap());
    assert!(!book.store().fire(skip).await.unwrap());
    assert_eq!(jobs(&book).await, 0);
    let stored = book.store().template("a").await.unwrap().unwrap();
    assert_eq!((stored.next_firing_ms, stored.last_firing), (Some(now + 1_000), Some((now, None))));
}

async fn a_firing_of_a_changed_template_starts_nothing(book: Book) {
    let now = now(&book).await;
    let store = book.store();
    store.put_template(&template("a"), Put::New, Some(now)).await.unwrap();
    store.put_template(&template("a"), Put::Replace, Some(now + 500)).await.unwrap();
    assert!(!store.fire(firing(&book, now, now + 1_000)).await.unwrap());
    store.remove_template("a").await.unwrap();
    assert!(!store.fire(firing(&book, now + 500, now + 1_000)).await.unwrap());
    assert_eq!(jobs(&book).await, 0);
}

/// A template that is put back to a time it has fired at does not stay due for ever.
async fn a_time_that_has_fired_is_passed_over(book: Book) {
    let now = now(&book).await;
    let store = book.store();
    store.put_template(&template("a"), Put::New, Some(now)).await.unwrap();
    assert!(store.fire(firing(&book, now, now + 1_000)).await.unwrap());
    store.put_template(&template("a"), Put::Replace, Some(now)).await.unwrap();
    assert!(!store.fire(firing(&book, now, now + 2_000)).await.unwrap());
    assert_eq!(store.template("a").await.unwrap().unwrap().next_firing_ms, Some(now + 2_000));
    assert_eq!(jobs(&book).await, 1);
}

async fn orchestrators_that_fire_at_once_start_one_job(book: Book) {
    let now = now(&book).await;
    book.store().put_template(&template("a"), Put::New, Some(now)).await.unwrap();
    let firing: Vec<_> = (0..8)
        .map(|_| {
            let (book, firing) = (book.clone(), firing(&book, now, now + 1_000));
            tokio::spawn(async move { book.store().fire(firing).await.unwrap() })
        })
        .collect();
    let mut fired = 0;
    for one in firing {
        fired += usize::from(one.await.unwrap());
    }
    assert_eq!((fired, jobs(&book).await), (1, 1));
}

async fn a_lost_answer_to_a_firing_starts_one_job(book: Book) {
    for (count, committed) in [(1, true), (2, false)] {
        let now = now(&book).await;
        let put = if count == 1 { Put::New } else { Put::Replace };
        book.store().put_template(&template("a"), put, Some(now + count)).await.unwrap();
        let firing = firing(&book, now + count, now + 1_000);
        book.lose_answer("fire", committed);
        let lost = book.store().fire(firing.clone()).await.unwrap_err();
        assert!(matches!(lost, StoreError::CommitUnknown(_)), "{lost}");
        assert_eq!(book.store().fire(firing).await.unwrap(), !committed);
        assert_eq!(jobs(&book).await, count as usize);
    }
}
