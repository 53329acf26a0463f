//! Containers that come in pages: each is committed, and scanned, before the next is asked for.

use std::time::Duration;

use domesday_model::{JobStatus, Reason, RecordKind, TaskType, UnitRecord, UnitStatus, VersionMarks};

use super::book::*;
use super::cases;
use crate::error::StoreError;
use crate::types::*;

cases![
    a_page_is_visible_before_the_next_is_listed,
    a_listing_goes_on_behind_the_last_page_wherever_it_stopped,
    the_names_of_pages_are_told,
    a_page_committed_twice_is_one_page,
    pages_of_one_commit_follow_one_another,
    a_page_that_skips_one_is_refused,
    a_container_that_ended_goes_on_no_more,
    a_task_with_an_open_page_is_not_completed,
    a_page_that_fails_ends_its_container,
    what_a_failed_task_had_listed_stays,
    a_retried_task_goes_on_behind_its_last_page,
    a_container_given_up_keeps_its_pages,
    halves_go_on_behind_the_last_page,
    many_pages_are_one_state,
    unchanged_objects_are_counted_and_carried_ones_are_packed,
    version_tags_are_kept,
    a_task_waits_without_a_failure,
    a_waiting_session_is_not_stalled,
    the_latest_wait_is_told,
];

/// Page `number` of the root, with two files; `last` ends it.
fn page(number: i64, last: bool) -> UnitListing {
    page_of("", number, last)
}

fn page_of(container: &str, number: i64, last: bool) -> UnitListing {
    let resume_point = (!last).then(|| format!("after {number}"));
    UnitListing { page: number, resume_point, ..listed(container, files(&format!("p{number}-"), 2)) }
}

/// The last page of each container, as `key page status resume point`.
async fn states(book: &Book, claim: &Claim) -> Vec<(String, i64, UnitStatus, Option<String>)> {
    let units = book.store().task_units(claim).await.unwrap();
    units.into_iter().map(|unit| (unit.key.to_string(), unit.page, unit.status, unit.resume_point)).collect()
}

fn open(container: &str, page: i64) -> (String, i64, UnitStatus, Option<String>) {
    (container.to_owned(), page, UnitStatus::Committed, Some(format!("after {page}")))
}

async fn listed_objects(running: &Running) -> u64 {
    running.store().summary(running.master).await.unwrap().objects_listed
}

async fn a_page_is_visible_before_the_next_is_listed(book: Book) {
    let running = book.running(job("a")).await;
    let claim = running.enumeration().await.claim;
    for number in 0..3 {
        book.store().commit_units(&claim, vec![page(number, number == 2)]).await.unwrap();
        assert_eq!(running.fan_out().await.tasks[TaskType::Classification], 1);
        let packet = running.classification().await;
        let objects = book.store().packet_objects(&packet).await.unwrap();
        let keys: Vec<_> = objects.iter().map(|object| object.key.to_string()).collect();
        assert_eq!(keys, [format!("p{number}-0"), format!("p{number}-1")]);
        running.complete(&packet).await;
    }
    book.store().complete_enumeration(&claim, Vec::new()).await.unwrap();
    assert_eq!(running.complete_job().await, Some(JobStatus::Completed));
    let summary = book.store().summary(running.master).await.unwrap();
    assert_eq!((summary.units, summary.objects_listed), (1, 6));
}

/// Whoever comes after a crash finds the last page that is there, and each object is listed once.
async fn a_listing_goes_on_behind_the_last_page_wherever_it_stopped(book: Book) {
    const PAGES: i64 = 4;
    for stop in 0..=PAGES {
        let mut running = book.running(job(&format!("a{stop}"))).await;
        let first = running.enumeration().await.claim;
        for number in 0..stop {
            book.store().commit_units(&first, vec![page(number, number == PAGES - 1)]).await.unwrap();
        }
        assert_eq!(running.abandon().await.returned, 1);
        let orchestrator = book.orchestrator().await;
        running.lease = book.claim_job(orchestrator).await.unwrap().lease;
        let claim = running.enumeration().await.claim;
        let begun = book.store().task_units(&claim).await.unwrap();
        let next = begun.first().map_or(0, |unit| unit.page + 1);
        assert_eq!((next, begun.len()), (stop, usize::from(stop > 0)));
        if let Some(unit) = begun.first() {
            let resume_point = (stop < PAGES).then(|| format!("after {}", stop - 1));
            assert_eq!(unit.resume_point, resume_point);
        }
        for number in next..PAGES {
            book.store().commit_units(&claim, vec![page(number, number == PAGES - 1)]).await.unwrap();
        }
        book.store().complete_enumeration(&claim, Vec::new()).await.unwrap();
        assert_eq!(listed_objects(&running).await, 2 * PAGES as u64);
        running.fan_out().await;
        let packet = running.classification().await;
        assert_eq!(book.store().packet_objects(&packet).await.unwrap().len(), 2 * PAGES as usize);
        running.complete(&packet).await;
        assert_eq!(running.complete_job().await, Some(JobStatus::Completed));
    }
}

/// For a listing that begins anew, and leaves out what is there.
async fn the_names_of_pages_are_told(book: Book) {
    let running = book.running(job("a").source("b")).await;
    let (claim, other) = (running.enumeration().await.claim, running.enumeration().await.claim);
    let pages = vec![page(0, false), page(1, false), page_of("else", 0, true), page(2, false)];
    book.store().commit_units(&claim, pages).await.unwrap();
    let names = async |claim: &Claim, pages| {
        let mut names = book.store().listed_names(claim, &key(""), pages).await.unwrap();
        names.sort_unstable();
        names.into_iter().map(|name| String::from_utf8(name).unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(names(&claim, 0..1).await, ["p0-0", "p0-1"]);
    assert_eq!(names(&claim, 1..9).await, ["p1-0", "p1-1", "p2-0", "p2-1"]);
    assert!(names(&claim, 3..9).await.is_empty());
    assert!(names(&other, 0..9).await.is_empty(), "another source's");
}

async fn a_page_committed_twice_is_one_page(book: Book) {
    let running = book.running(job("a")).await;
    let claim = running.enumeration().await.claim;
    for number in [0, 0, 1, 0, 1] {
        book.store().commit_units(&claim, vec![page(number, false)]).await.unwrap();
    }
    book.lose_answer("commit_units", true);
    assert!(book.store().commit_units(&claim, vec![page(2, false)]).await.unwrap_err().is_retryable());
    book.store().commit_units(&claim, vec![page(2, false)]).await.unwrap();
    let other = UnitListing { resume_point: None, ..listed("", files("other", 7)) };
    book.store().commit_units(&claim, vec![other]).await.unwrap();
    assert_eq!(states(&book, &claim).await, [open("", 2)], "the first one counts");
    assert_eq!(listed_objects(&running).await, 6);
}

async fn pages_of_one_commit_follow_one_another(book: Book) {
    let running = book.running(job("a")).await;
    let claim = running.enumeration().await.claim;
    let both = vec![page_of("a", 0, false), page_of("b", 0, true), page_of("a", 1, false)];
    book.store().commit_units(&claim, both).await.unwrap();
    book.store().commit_units(&claim, vec![page_of("a", 1, false), page_of("a", 2, true)]).await.unwrap();
    let ended = |key: &str, page| (key.to_owned(), page, UnitStatus::Committed, None);
    assert_eq!(states(&book, &claim).await, [ended("a", 2), ended("b", 0)]);
    assert_eq!(listed_objects(&running).await, 8);
    book.store().complete_enumeration(&claim, Vec::new()).await.unwrap();
}

async fn a_page_that_skips_one_is_refused(book: Book) {
    let running = book.running(job("a")).await;
    let claim = running.enumeration().await.claim;
    let gap = |result: Result<(), StoreError>| match result.unwrap_err() {
        StoreError::Gap { expected, found, .. } => (expected, found),
        other => panic!("{other}"),
    };
    let commit = |listings: Vec<UnitListing>| {
        let store = book.store();
        async move { store.commit_units(&claim, listings).await }
    };
    assert_eq!(gap(commit(vec![page(1, false)]).await), (0, 1));
    commit(vec![page(0, false)]).await.unwrap();
    assert_eq!(gap(commit(vec![page(2, true)]).await), (1, 2));
    assert_eq!(gap(commit(vec![page_of("b", 0, true), page(2, false), page(3, true)]).await), (1, 2));
    assert_eq!(gap(commit(vec![page(1, false), page(3, true)]).await), (2, 3));
    assert_eq!(states(&book, &claim).await, [open("", 0)], "nothing of them was written");
    assert_eq!(listed_objects(&running).await, 2);
}

async fn a_container_that_ended_goes_on_no_more(book: Book) {
    let running = book.running(job("a")).await;
    let claim = running.enumeration().await.claim;
    book.store().commit_units(&claim, vec![page_of("a", 0, true)]).await.unwrap();
    let failed = UnitListing::failed(key("b"), 0, Reason::Vanished, "gone");
    book.store().commit_units(&claim, vec![failed]).await.unwrap();
    for container in ["a", "b"] {
        let error = book.store().commit_units(&claim, vec![page_of(container, 1, true)]).await.unwrap_err();
        assert!(matches!(error, StoreError::Gap { expected: 0, found: 1, .. }), "{error}");
    }
    assert_eq!(listed_objects(&running).await, 2);
}

async fn a_task_with_an_open_page_is_not_completed(book: Book) {
    let running = book.running(job("a")).await;
    let claim = running.enumeration().await.claim;
    book.store().commit_units(&claim, vec![page(0, false)]).await.unwrap();
    let refused = book.store().complete_enumeration(&claim, Vec::new()).await.unwrap_err();
    assert!(matches!(refused, StoreError::OpenUnit(task) if task == claim.task), "{refused}");
    let refused = book.store().complete_enumeration(&claim, vec![page(1, false)]).await.unwrap_err();
    assert!(matches!(refused, StoreError::OpenUnit(_)), "{refused}");
    assert_eq!(states(&book, &claim).await, [open("", 0)], "what came with it was not written");
    book.store().complete_enumeration(&claim, vec![page(1, true)]).await.unwrap();
    assert!(book.is_done(&claim).await);
}

async fn a_page_that_fails_ends_its_container(book: Book) {
    let running = book.running(job("a")).await;
    let claim = running.enumeration().await.claim;
    book.store().commit_units(&claim, vec![page(0, false)]).await.unwrap();
    for _ in 0..2 {
        let failed = UnitListing::failed(key(""), 1, Reason::ReadError, "bad gateway");
        book.store().commit_units(&claim, vec![failed]).await.unwrap();
    }
    book.store().complete_enumeration(&claim, Vec::new()).await.unwrap();
    running.fan_out().await;
    let packet = running.classification().await;
    running.complete(&packet).await;
    assert_eq!(running.complete_job().await, Some(JobStatus::PartiallyCompleted));
    let summary = book.store().summary(running.master).await.unwrap();
    assert_eq!((summary.objects_done, summary.failed), (0, vec![(Reason::ReadError, 1)]));
    assert_eq!(summary.objects_listed, 2);
}

async fn what_a_failed_task_had_listed_stays(book: Book) {
    let running = book.running(job("a")).await;
    let claim = running.enumeration().await.claim;
    book.store().commit_units(&claim, vec![page(0, false), page(1, false)]).await.unwrap();
    book.store().commit_units(&claim, vec![page_of("b", 0, true), page_of("c", 0, false)]).await.unwrap();
    let error = "the token expired".to_owned();
    book.store().give_back(&claim, GiveBack::Failed { error }).await.unwrap();
    let problems = book.store().problems(running.master, 10).await.unwrap();
    let named: Vec<_> = problems.iter().map(|p| (p.location.key.clone(), p.detail.as_str())).collect();
    assert_eq!(named, [(key(""), "the token expired"), (key("c"), "the token expired")], "once each");
    running.fan_out().await;
    let packet = running.classification().await;
    assert_eq!(book.store().packet_objects(&packet).await.unwrap().len(), 8);
    running.complete(&packet).await;
    assert_eq!(running.complete_job().await, Some(JobStatus::PartiallyCompleted));
}

async fn a_retried_task_goes_on_behind_its_last_page(book: Book) {
    let running = book.running(job("a")).await;
    let claim = running.enumeration().await.claim;
    book.store().commit_units(&claim, vec![page(0, false)]).await.unwrap();
    let error = "the token expired".to_owned();
    book.store().give_back(&claim, GiveBack::Failed { error }).await.unwrap();
    assert_eq!(book.store().retry(Retry::AllOf(running.master), RetryScope::Passing).await.unwrap().tasks, 1);
    let claim = running.enumeration().await.claim;
    assert_eq!(states(&book, &claim).await, [open("", 0)]);
    book.store().complete_enumeration(&claim, vec![page(1, true)]).await.unwrap();
    assert_eq!(book.store().problems(running.master, 10).await.unwrap(), []);
    assert_eq!(listed_objects(&running).await, 4);
}

/// The next page ends every worker.
async fn a_container_given_up_keeps_its_pages(book: Book) {
    let mut running = book.running(job("a")).await;
    let claim = running.enumeration().await.claim;
    book.store().commit_units(&claim, vec![page(0, false)]).await.unwrap();
    let mut poisoned = running.abandon().await.poisoned;
    for _ in 0..4 {
        book.advance(Duration::from_secs(5));
        running.enumeration().await;
        poisoned += running.abandon().await.poisoned;
    }
    assert_eq!(poisoned, 1);
    let problems = book.store().problems(running.master, 10).await.unwrap();
    let named: Vec<_> = problems.iter().map(|problem| (&problem.location.key, problem.reason)).collect();
    assert_eq!(named, [(&key(""), Some(Reason::Poisoned))]);
    assert_eq!(listed_objects(&running).await, 2);
    let owner = book.orchestrator().await;
    running.lease = book.claim_job(owner).await.unwrap().lease;
    assert_eq!(running.fan_out().await.tasks[TaskType::Classification], 1);
}

async fn halves_go_on_behind_the_last_page(book: Book) {
    let mut running = book.running(job("a")).await;
    running.list(vec![listed("", ["a", "b"].map(dir).to_vec())]).await;
    running.fan_out().await;
    let whole = running.enumeration().await.claim;
    let begun = ["a", "b"].map(|container| page_of(container, 0, false));
    book.store().commit_units(&whole, begun.to_vec()).await.unwrap();
    for expected in [0, 1] {
        assert_eq!(running.abandon().await.split, expected);
        if expected == 0 {
            running.enumeration().await;
        }
    }
    let (first, second) = (running.enumeration().await, running.enumeration().await);
    assert_eq!(states(&book, &first.claim).await, [open("a", 0), open("b", 0)], "their origin's");
    book.store().complete_enumeration(&first.claim, vec![page_of("a", 1, true)]).await.unwrap();
    let refused = book.store().complete_enumeration(&second.claim, Vec::new()).await.unwrap_err();
    assert!(matches!(refused, StoreError::OpenUnit(_)), "{refused}");
    // One that fails leaves the other's pages alone.
    let error = "gone".to_owned();
    book.store().give_back(&second.claim, GiveBack::Failed { error }).await.unwrap();
    let problems = book.store().problems(running.master, 10).await.unwrap();
    assert_eq!(problems.into_iter().map(|problem| problem.location.key).collect::<Vec<_>>(), [key("b")]);
    assert_eq!(listed_objects(&running).await, 6);
}

async fn many_pages_are_one_state(book: Book) {
    const PAGES: i64 = 300;
    let running = book.running(job("a")).await;
    let claim = running.enumeration().await.claim;
    for first in (0..PAGES).step_by(50) {
        let pages = (first..first + 50).map(|number| page(number, false)).collect();
        book.store().commit_units(&claim, pages).await.unwrap();
    }
    assert_eq!(states(&book, &claim).await, [open("", PAGES - 1)]);
    assert_eq!(listed_objects(&running).await, 2 * PAGES as u64);
}

fn of_kind(kind: RecordKind, name: &str) -> UnitRecord {
    UnitRecord { kind, ..file(name) }
}

async fn unchanged_objects_are_counted_and_carried_ones_are_packed(book: Book) {
    let running = book.running(job("a")).await;
    let records = vec![
        of_kind(RecordKind::Unchanged, "clean"),
        of_kind(RecordKind::Carried, "carried"),
        file("new"),
        of_kind(RecordKind::Unchanged, "clean too"),
    ];
    let claim = running.enumeration().await.claim;
    book.store().commit_units(&claim, vec![listed("u", records)]).await.unwrap();
    let only_clean = vec![of_kind(RecordKind::Unchanged, "clean")];
    let unit = book.store().stage_unit(&claim, batch("v", 0, only_clean)).await.unwrap();
    book.store().commit_staged(&claim, unit).await.unwrap();
    book.store().complete_enumeration(&claim, Vec::new()).await.unwrap();
    assert_eq!(running.fan_out().await.tasks[TaskType::Classification], 1);
    let packet = running.classification().await;
    let objects = book.store().packet_objects(&packet).await.unwrap();
    let seen: Vec<_> = objects.iter().map(|object| (object.key.to_string(), object.is_carried())).collect();
    assert_eq!(seen, [("u/carried".to_owned(), true), ("u/new".to_owned(), false)]);
    running.complete(&packet).await;
    assert_eq!(running.complete_job().await, Some(JobStatus::Completed));
    let summary = book.store().summary(running.master).await.unwrap();
    assert_eq!((summary.objects_listed, summary.objects_unchanged), (2, 3));
    assert_eq!(summary.bytes_listed, 2 * FILE_SIZE);
    let progress = book.store().child_jobs(running.master).await.unwrap()[0].progress;
    assert_eq!((progress.objects_listed, progress.objects_unchanged), (2, 3));
}

async fn version_tags_are_kept(book: Book) {
    let running = book.running(job("a")).await;
    let tagged = UnitRecord { marks: VersionMarks::tagged(b"etag"), ..file("f") };
    running.list(vec![listed("", vec![tagged.clone(), file("g")])]).await;
    running.fan_out().await;
    let objects = book.store().packet_objects(&running.classification().await).await.unwrap();
    assert_eq!(
        objects.iter().map(|object| object.marks).collect::<Vec<_>>(),
        [tagged.marks, file("g").marks]
    );
}

const WAIT: Duration = Duration::from_secs(3_600);

fn wait(after: Duration) -> GiveBack {
    GiveBack::Wait { after, why: "the rate limit is used up".to_owned() }
}

async fn a_task_waits_without_a_failure(book: Book) {
    let mut running = book.running(job("a")).await;
    let claim = running.enumeration().await.claim;
    book.store().commit_units(&claim, vec![page(0, false)]).await.unwrap();
    book.store().give_back(&claim, wait(WAIT)).await.unwrap();
    assert!(book.store().give_back(&claim, wait(WAIT)).await.unwrap_err().is_lost());
    let task = book.store().task(claim.task).await.unwrap().unwrap();
    let why = Some("the rate limit is used up".to_owned());
    assert_eq!((task.failures, task.abandonments, task.last_error), (0, 0, why), "what it waits for");
    assert_eq!(running.claim_by(running.worker, TaskType::DiscoveryEnumerate).await, None);
    let events = book.store().events("test", 1_000).await.unwrap();
    let waiting: Vec<_> = events.iter().filter(|event| event.kind == "SessionWaiting").collect();
    assert_eq!(waiting.len(), 1);
    assert_eq!(waiting[0].payload["why"], "the rate limit is used up");
    assert_eq!(waiting[0].payload["until_ms"], task.not_before_ms);
    book.advance(WAIT);
    running.worker = book.worker().await;
    let again = running.enumeration().await;
    assert_eq!((again.claim.task, again.failures), (claim.task, 0));
    assert_eq!(states(&book, &again.claim).await, [open("", 0)]);
}

async fn a_waiting_session_is_not_stalled(book: Book) {
    const SILENCE: Duration = Duration::from_secs(300);
    let mut running = book.running(job("a")).await;
    let claim = running.enumeration().await.claim;
    book.store().commit_units(&claim, vec![page(0, false)]).await.unwrap();
    book.store().give_back(&claim, wait(WAIT)).await.unwrap();
    let stalled = || async { book.store().reap_sessions(GROUP, SILENCE).await.unwrap() };
    let waiting = || async {
        book.store().child_jobs(running.master).await.unwrap()[0].progress.waiting_until_ms.is_some()
    };
    book.advance(WAIT - Duration::from_millis(1));
    assert_eq!((stalled().await, waiting().await), (0, true));
    book.advance(Duration::from_millis(1));
    assert_eq!((stalled().await, waiting().await), (0, false), "its silence begins when the wait ends");
    book.advance(SILENCE);
    assert_eq!(stalled().await, 1);
    running.worker = book.worker().await;
    let claim = running.enumeration().await.claim;
    book.store().give_back(&claim, wait(WAIT * 2)).await.unwrap();
    book.advance(WAIT * 2);
    running.worker = book.worker().await;
    let claim = running.enumeration().await.claim;
    book.store().give_back(&claim, wait(WAIT)).await.unwrap();
    book.advance(WAIT);
    running.worker = book.worker().await;
    // A batch ends the wait, whoever set it.
    let claim = running.enumeration().await.claim;
    book.store().commit_units(&claim, vec![page(1, false)]).await.unwrap();
    book.advance(SILENCE);
    assert_eq!(stalled().await, 1);
}

async fn the_latest_wait_is_told(book: Book) {
    let running = book.running(job("a").source("b")).await;
    let until =
        || async { book.store().child_jobs(running.master).await.unwrap()[0].progress.waiting_until_ms };
    assert_eq!(until().await, None);
    let (a, b) = (running.enumeration().await.claim, running.enumeration().await.claim);
    book.store().give_back(&a, wait(WAIT * 2)).await.unwrap();
    book.store().give_back(&b, wait(WAIT)).await.unwrap();
    let task = book.store().task(a.task).await.unwrap().unwrap();
    assert_eq!(until().await, Some(task.not_before_ms));
    book.advance(WAIT * 2);
    assert_eq!(until().await, None);
}
