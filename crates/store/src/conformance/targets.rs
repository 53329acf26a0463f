//! Scan targets: each in the book once, whoever comes upon it and however often; of a fleet, once for each node group.

use std::collections::BTreeSet;
use std::time::Duration;

use domesday_model::{JobStatus, ObjectKey, Reason, ScanTargetId, TargetDraft, TargetType};
use serde_json::json;

use super::book::*;
use super::cases;
use crate::types::*;

cases![
    a_data_source_is_a_target_when_its_session_starts,
    targets_come_with_the_page_they_were_listed_in,
    targets_of_staged_batches_are_written_too,
    repeated_drafts_update_what_is_there,
    a_target_is_one_in_every_job_and_source,
    one_address_may_be_a_repository_and_a_page,
    targets_are_found_by_type_and_number,
    targets_are_read_in_pages,
    the_end_of_a_session_is_the_time_of_the_scan,
    a_session_that_failed_scanned_nothing,
    workers_that_come_upon_the_same_targets_do_not_wait_in_a_circle,
    odd_addresses_are_kept,
];

fn repository(name: &str) -> TargetDraft {
    TargetDraft::GithubRepository {
        name: name.to_owned(),
        url: format!("https://host/{name}"),
        is_active: true,
        metadata: json!({ "stars": 3 }),
    }
}

fn page(path: &str) -> TargetDraft {
    TargetDraft::Url { url: format!("https://host/{path}"), metadata: json!({ "type": "text/html" }) }
}

fn with_targets(container: &str, targets: Vec<TargetDraft>) -> UnitListing {
    UnitListing { targets, ..listed(container, vec![]) }
}

fn of(target_type: TargetType) -> TargetFilter {
    TargetFilter { target_type: Some(target_type), ..TargetFilter::default() }
}

/// All targets of a filter, read two at a time.
async fn all(book: &Book, filter: TargetFilter) -> Vec<ScanTarget> {
    let mut all: Vec<ScanTarget> = Vec::new();
    loop {
        let after = all.last().map(|target| target.id);
        let page = book.store().targets(filter, after, 2).await.unwrap();
        if page.is_empty() {
            return all;
        }
        assert!(page.len() <= 2);
        all.extend(page);
    }
}

async fn names(book: &Book, filter: TargetFilter) -> Vec<String> {
    let mut names: Vec<_> = all(book, filter).await.into_iter().map(|target| target.name).collect();
    names.sort_unstable();
    names
}

async fn a_data_source_is_a_target_when_its_session_starts(book: Book) {
    let running = book.running(job("a").source("b")).await;
    let datasources = book.store().datasources(running.master).await.unwrap();
    for source in &datasources {
        let target = book.store().target_by_type_and_id(TargetType::Datasource, source.id.0).await.unwrap();
        let target = target.expect("it is a target");
        assert_eq!((target.name.as_str(), target.url.as_deref()), (source.name.as_str(), None));
        assert_eq!(target.metadata, json!({ "kind": "filesystem" }));
        assert_eq!((target.is_active, target.last_scan_time_ms), (None, None));
        assert_eq!(target.id, TargetType::Datasource.id(source.id.0));
    }
    assert_eq!(names(&book, of(TargetType::Datasource)).await, ["a", "b"]);
    // Again, in another job.
    book.running(job("a")).await;
    assert_eq!(names(&book, TargetFilter::default()).await, ["a", "b"]);
}

async fn targets_come_with_the_page_they_were_listed_in(book: Book) {
    let running = book.running(job("a")).await;
    let claim = running.enumeration().await.claim;
    let listing = with_targets("u", vec![repository("o/r"), page("p")]);
    book.lose_answer("commit_units", false);
    book.store().commit_units(&claim, vec![listing.clone()]).await.unwrap_err();
    assert_eq!(names(&book, TargetFilter::default()).await, ["a"], "nothing of it was committed");
    for _ in 0..2 {
        book.store().commit_units(&claim, vec![listing.clone()]).await.unwrap();
    }
    let last = with_targets("v", vec![page("q")]);
    book.store().complete_enumeration(&claim, vec![last]).await.unwrap();
    let [repository] = &book.store().targets_by_url("https://host/o/r").await.unwrap()[..] else {
        panic!("it is there once")
    };
    assert_eq!(repository.target_type, TargetType::GithubRepository);
    assert_eq!((repository.name.as_str(), repository.is_active), ("o/r", Some(true)));
    assert_eq!(repository.url.as_deref(), Some("https://host/o/r"));
    assert_eq!(repository.metadata, json!({ "stars": 3 }));
    assert_eq!(book.store().target(repository.id).await.unwrap().as_ref(), Some(repository));
    let [url] = &book.store().targets_by_url("https://host/q").await.unwrap()[..] else {
        panic!("it is there once")
    };
    assert_eq!((url.target_type, url.name.as_str()), (TargetType::Url, "https://host/q"));
    let master = Some(running.master);
    let of_job = TargetFilter { master, ..TargetFilter::default() };
    assert_eq!(names(&book, of_job).await, ["a", "https://host/p", "https://host/q", "o/r"]);
    assert_eq!(book.store().targets_by_url("https://host/none").await.unwrap(), []);
    assert_eq!(book.store().target(ScanTargetId([0; 16])).await.unwrap(), None);
}

async fn targets_of_staged_batches_are_written_too(book: Book) {
    let running = book.running(job("a")).await;
    let claim = running.enumeration().await.claim;
    let staged = StageBatch { targets: vec![page("p")], ..batch("", 0, files("f", 2)) };
    book.store().stage_unit(&claim, staged).await.unwrap();
    assert_eq!(names(&book, of(TargetType::Url)).await, ["https://host/p"]);
}

async fn repeated_drafts_update_what_is_there(book: Book) {
    let running = book.running(job("a")).await;
    let claim = running.enumeration().await.claim;
    let store = book.store();
    store.commit_units(&claim, vec![with_targets("u", vec![repository("o/r"), page("p")])]).await.unwrap();
    let before = store.targets_by_url("https://host/o/r").await.unwrap().remove(0);
    let renamed = |name: &str, is_active| TargetDraft::GithubRepository {
        name: name.to_owned(),
        url: "https://host/o/r".to_owned(),
        is_active,
        metadata: json!({ "stars": 4 }),
    };
    let listed_anew = TargetDraft::Url { url: "https://host/p".to_owned(), metadata: json!(["new"]) };
    // Twice in one commit: the last one counts.
    let drafts = vec![renamed("o/between", true), listed_anew, renamed("o/renamed", false)];
    book.advance(Duration::from_secs(1));
    store.commit_units(&claim, vec![with_targets("v", drafts)]).await.unwrap();
    let after = store.targets_by_url("https://host/o/r").await.unwrap();
    let expected = ScanTarget {
        name: "o/renamed".to_owned(),
        is_active: Some(false),
        metadata: json!({ "stars": 4 }),
        ..before
    };
    assert_eq!(after, [expected]);
    assert_eq!(store.targets_by_url("https://host/p").await.unwrap()[0].metadata, json!(["new"]));
}

async fn a_target_is_one_in_every_job_and_source(book: Book) {
    let first = book.running(job("a").source("b")).await;
    for container in ["", ""] {
        first.list(vec![with_targets(container, vec![repository("o/r")])]).await;
    }
    let second = book.running(job("a")).await;
    second.list(vec![with_targets("", vec![repository("o/r"), repository("o/s")])]).await;
    assert_eq!(names(&book, of(TargetType::GithubRepository)).await, ["o/r", "o/s"]);
    let of_job = |master| TargetFilter { master: Some(master), ..of(TargetType::GithubRepository) };
    assert_eq!(names(&book, of_job(first.master)).await, ["o/r"], "once, though two sources have it");
    assert_eq!(names(&book, of_job(second.master)).await, ["o/r", "o/s"]);
}

async fn one_address_may_be_a_repository_and_a_page(book: Book) {
    let running = book.running(job("a")).await;
    running.list(vec![with_targets("", vec![page("o/r"), repository("o/r")])]).await;
    let both = book.store().targets_by_url("https://host/o/r").await.unwrap();
    let mut types: Vec<_> = both.iter().map(|target| target.target_type).collect();
    types.sort_unstable();
    assert_eq!(types, [TargetType::GithubRepository, TargetType::Url]);
    assert_ne!(both[0].id, both[1].id);
}

async fn targets_are_found_by_type_and_number(book: Book) {
    let running = book.running(job("a")).await;
    running.list(vec![with_targets("", vec![page("p"), repository("o/r")])]).await;
    for target in all(&book, TargetFilter::default()).await {
        let found = book.store().target_by_type_and_id(target.target_type, target.target_id).await.unwrap();
        assert_eq!(found, Some(target));
    }
    assert_eq!(book.store().target_by_type_and_id(TargetType::Url, 999).await.unwrap(), None);
}

async fn targets_are_read_in_pages(book: Book) {
    let running = book.running(job("a")).await;
    running.list(vec![with_targets("", (0..9).map(|i| page(&i.to_string())).collect())]).await;
    let listed = all(&book, TargetFilter::default()).await;
    assert_eq!(listed.len(), 10);
    assert!(listed.is_sorted_by_key(|target| target.id) && listed.windows(2).all(|two| two[0] != two[1]));
    let of_job = TargetFilter { master: Some(running.master), ..TargetFilter::default() };
    assert_eq!(all(&book, of_job).await, listed);
    assert_eq!(all(&book, of(TargetType::Url)).await.len(), 9);
    assert_eq!(all(&book, of(TargetType::GithubRepository)).await, []);
}

async fn the_end_of_a_session_is_the_time_of_the_scan(book: Book) {
    let running = book.running(job("a").source("b")).await;
    let store = book.store();
    running.list(vec![with_targets("", vec![page("p")]), failed("x", Reason::Vanished, "gone")]).await;
    book.advance(Duration::from_secs(5));
    assert_eq!(running.complete_job().await, None);
    let sessions = store.sessions(SessionFilter::default(), None, 10).await.unwrap();
    let ended = sessions[0].completed_at_ms;
    assert!(ended.is_some());
    assert_eq!(sessions[1].completed_at_ms, None);
    let times = || async {
        let times = all(&book, TargetFilter::default()).await;
        let mut times: Vec<_> = times.into_iter().map(|t| (t.name, t.last_scan_time_ms)).collect();
        times.sort_unstable();
        times
    };
    let expected = |b| vec![("a".into(), ended), ("b".into(), b), ("https://host/p".into(), ended)];
    assert_eq!(times().await, expected(None), "the other session goes on");
    book.advance(Duration::from_secs(5));
    running.list(vec![with_targets("", vec![])]).await;
    assert_eq!(running.complete_job().await, Some(JobStatus::PartiallyCompleted));
    assert_eq!(times().await, expected(ended.map(|time| time + 5_000)));
}

async fn a_session_that_failed_scanned_nothing(book: Book) {
    let running = book.running(job("a")).await;
    let listing = UnitListing { targets: vec![page("p")], ..failed("", Reason::Vanished, "gone") };
    running.list(vec![listing]).await;
    assert_eq!(running.complete_job().await, Some(JobStatus::Failed));
    let targets = all(&book, TargetFilter::default()).await;
    assert_eq!(targets.len(), 2, "what it came upon is known");
    assert!(targets.iter().all(|target| target.last_scan_time_ms.is_none()));
}

/// Two sources list the same targets, in opposite orders, while sessions of other jobs end.
async fn workers_that_come_upon_the_same_targets_do_not_wait_in_a_circle(book: Book) {
    const TARGETS: usize = 40;
    let running = book.running(job("a").source("b").source("c")).await;
    let mut listing = Vec::new();
    for backwards in [false, true, false] {
        let claim = running.enumeration().await.claim;
        let store = book.store();
        listing.push(tokio::spawn(async move {
            for round in 0..10 {
                let names = (0..TARGETS).map(|i| if backwards { TARGETS - 1 - i } else { i });
                let drafts = names.flat_map(|i| [page(&format!("{i}")), repository(&format!("o/{i}"))]);
                let unit = with_targets(&format!("u{round}"), drafts.collect());
                store.commit_units(&claim, vec![unit]).await.unwrap();
            }
            store.complete_enumeration(&claim, Vec::new()).await.unwrap();
        }));
    }
    for i in 0..5 {
        let other = book.running(job("d").group(&format!("g{i}"))).await;
        other.list(vec![with_targets("", (0..TARGETS).rev().map(|i| page(&format!("{i}"))).collect())]).await;
        assert_eq!(other.complete_job().await, Some(JobStatus::Completed));
    }
    for done in listing {
        done.await.unwrap();
    }
    let pages: BTreeSet<_> = all(&book, of(TargetType::Url)).await.into_iter().map(|page| page.url).collect();
    assert_eq!(pages.len(), TARGETS);
    assert_eq!(all(&book, of(TargetType::GithubRepository)).await.len(), TARGETS);
    assert_eq!(running.complete_job().await, Some(JobStatus::Completed));
    let unscanned = all(&book, TargetFilter::default()).await;
    assert!(unscanned.iter().all(|target| target.last_scan_time_ms.is_some()));
}

async fn odd_addresses_are_kept(book: Book) {
    let long = format!("https://host/{}", "ä\\x".repeat(20_000));
    let odd = ["", "a\0b", long.as_str(), "https://host/\u{202e}'\"$1"];
    let drafts = odd.map(|url| TargetDraft::Url { url: url.to_owned(), metadata: json!({ "\0": "\0" }) });
    let running = book.running(job("a")).await;
    running.list(vec![with_targets("", drafts.to_vec())]).await;
    for url in odd {
        let found = book.store().targets_by_url(url).await.unwrap();
        assert_eq!(found.len(), 1, "{}", ObjectKey::new(url.as_bytes()));
        assert_eq!(found[0].metadata, json!({ "\0": "\0" }));
    }
}
