//! Managed data sources, what claims make of their labels, and the fingerprint key.

use domesday_model::{DatasourceSpec, JobStatus, MasterJobId, ScanTemplate, TaskType};
use serde_json::json;

use super::book::*;
use super::cases;
use crate::error::StoreError;
use crate::types::*;

cases![
    a_source_is_added_edited_and_listed,
    a_source_of_a_job_is_not_listed_until_it_is_added,
    a_submitted_job_leaves_a_managed_source_as_it_is,
    a_source_in_use_is_not_removed,
    a_source_that_is_added_again_is_the_same_source,
    a_repeated_edit_is_harmless,
    a_label_decides_who_reads_a_source,
    an_edited_label_holds_for_running_jobs,
    a_worker_without_the_key_gets_nothing,
    a_higher_priority_is_claimed_first,
    the_first_fingerprint_key_holds,
    the_fingerprint_key_of_open_jobs_stays,
];

fn spec(name: &str) -> DatasourceSpec {
    DatasourceSpec::new(name, "filesystem", GROUP, json!({ "path": name }))
}

async fn a_source_is_added_edited_and_listed(book: Book) {
    let store = book.store();
    let full = DatasourceSpec {
        concurrency_limit: Some(4),
        worker_label: Some("host=nas1".to_owned()),
        credential: Some("env:TOKEN".to_owned()),
        ..spec("b")
    };
    store.put_datasource(&full, Put::New).await.unwrap();
    store.put_datasource(&spec("a"), Put::New).await.unwrap();
    let listed = store.managed_datasources().await.unwrap();
    assert_eq!(listed.iter().map(|source| source.spec.name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(listed[1].spec, full);
    let again = store.put_datasource(&full, Put::New).await.unwrap_err();
    assert!(matches!(&again, StoreError::Exists { name, .. } if name == "b"), "{again}");
    book.advance(LEASE);
    let edited = DatasourceSpec { node_group: "east".to_owned(), ..spec("b") };
    store.put_datasource(&edited, Put::Replace).await.unwrap();
    let found = store.managed_datasource("b").await.unwrap().unwrap();
    assert_eq!((found.id, &found.spec), (listed[1].id, &edited));
    assert_eq!(found.created_at_ms, listed[1].created_at_ms);
    assert!(found.updated_at_ms > found.created_at_ms);
    let missing = store.put_datasource(&spec("c"), Put::Replace).await.unwrap_err();
    assert!(matches!(&missing, StoreError::Missing { name, .. } if name == "c"), "{missing}");
    assert_eq!(store.managed_datasource("c").await.unwrap(), None);
}

async fn a_source_of_a_job_is_not_listed_until_it_is_added(book: Book) {
    let running = book.running(job("a")).await;
    let store = book.store();
    assert_eq!(store.managed_datasources().await.unwrap(), []);
    let missing = store.put_datasource(&spec("a"), Put::Replace).await.unwrap_err();
    assert!(matches!(missing, StoreError::Missing { .. }), "{missing}");
    store.put_datasource(&spec("a"), Put::New).await.unwrap();
    let source = store.managed_datasource("a").await.unwrap().unwrap();
    assert_eq!(source.id, store.datasources(running.master).await.unwrap()[0].id);
}

async fn a_submitted_job_leaves_a_managed_source_as_it_is(book: Book) {
    let store = book.store();
    let managed = DatasourceSpec { concurrency_limit: Some(1), ..spec("a") };
    store.put_datasource(&managed, Put::New).await.unwrap();
    let other = |source: &mut DatasourceSpec| {
        source.worker_label = Some("host=other".to_owned());
        source.configuration = json!({ "path": "elsewhere" });
    };
    let running = book.running(job("a").with(other)).await;
    assert_eq!(store.managed_datasource("a").await.unwrap().unwrap().spec, managed);
    let packet = running.enumeration().await;
    assert_eq!(packet.datasource.configuration, json!({ "path": "elsewhere" }), "the job has its own copy");
}

fn template(name: &str, datasources: &[&str]) -> ScanTemplate {
    ScanTemplate {
        name: name.to_owned(),
        datasources: datasources.iter().map(|&name| name.to_owned()).collect(),
        rules: Vec::new(),
        options: domesday_model::ScanOptions::default(),
        priority: 0,
        schedule: None,
    }
}

async fn a_source_in_use_is_not_removed(book: Book) {
    let store = book.store();
    for name in ["a", "named"] {
        store.put_datasource(&spec(name), Put::New).await.unwrap();
    }
    let running = book.running(job("a")).await;
    store.put_template(&template("nightly", &["named", "*"]), Put::New, None).await.unwrap();
    for (name, by) in [("a", "job"), ("named", "nightly")] {
        let refused = store.remove_datasource(name).await.unwrap_err();
        assert!(matches!(&refused, StoreError::InUse { by: said, .. } if said.contains(by)), "{refused}");
    }
    running.list(vec![listed("", vec![])]).await;
    assert_eq!(running.complete_job().await, Some(JobStatus::Completed));
    store.remove_datasource("a").await.unwrap();
    store.remove_template("nightly").await.unwrap();
    store.remove_datasource("named").await.unwrap();
    assert_eq!(store.managed_datasources().await.unwrap(), []);
    let missing = store.remove_datasource("a").await.unwrap_err();
    assert!(matches!(missing, StoreError::Missing { .. }), "{missing}");
}

async fn a_source_that_is_added_again_is_the_same_source(book: Book) {
    let store = book.store();
    store.put_datasource(&spec("a"), Put::New).await.unwrap();
    let first = store.managed_datasource("a").await.unwrap().unwrap();
    store.remove_datasource("a").await.unwrap();
    assert_eq!(store.managed_datasource("a").await.unwrap(), None);
    store.put_datasource(&spec("a"), Put::New).await.unwrap();
    assert_eq!(store.managed_datasource("a").await.unwrap().unwrap().id, first.id);
}

async fn a_repeated_edit_is_harmless(book: Book) {
    book.store().put_datasource(&spec("a"), Put::New).await.unwrap();
    for (committed, limit) in [(true, 1), (false, 2)] {
        let edit = DatasourceSpec { concurrency_limit: Some(limit), ..spec("a") };
        book.lose_answer("put_datasource", committed);
        let lost = book.store().put_datasource(&edit, Put::Replace).await.unwrap_err();
        assert!(lost.is_retryable(), "{lost}");
        book.store().put_datasource(&edit, Put::Replace).await.unwrap();
        assert_eq!(book.store().managed_datasource("a").await.unwrap().unwrap().spec, edit);
    }
}

fn labelled(labels: &[&str]) -> Profile {
    Profile { labels: labels.iter().map(|&label| label.to_owned()).collect(), ..profile() }
}

async fn a_label_decides_who_reads_a_source(book: Book) {
    let labelled_source = |source: &mut DatasourceSpec| source.worker_label = Some("host=nas1".to_owned());
    let running = book.running(job("a").with(labelled_source).source("b")).await;
    let other = book.process_with(Role::Worker, GROUP, labelled(&["host=nas2", "host"])).await;
    for (worker, sources) in [(running.worker, vec!["b"]), (other, vec![])] {
        let packets = book.store().claim_tasks(worker, GROUP, TaskType::DiscoveryEnumerate, 8).await.unwrap();
        let names: Vec<_> = packets.iter().map(|packet| packet.datasource.name.as_str()).collect();
        assert_eq!(names, sources);
    }
    let near = book.process_with(Role::Worker, GROUP, labelled(&["disk=ssd", "host=nas1"])).await;
    let packet = book.claim(near, TaskType::DiscoveryEnumerate).await.unwrap();
    assert_eq!(packet.datasource.name, "a");
}

async fn an_edited_label_holds_for_running_jobs(book: Book) {
    book.store().put_datasource(&spec("a"), Put::New).await.unwrap();
    let running = book.running(job("a")).await;
    let away = DatasourceSpec { worker_label: Some("host=nas1".to_owned()), ..spec("a") };
    book.store().put_datasource(&away, Put::Replace).await.unwrap();
    assert_eq!(book.claim(running.worker, TaskType::DiscoveryEnumerate).await, None);
    book.store().put_datasource(&spec("a"), Put::Replace).await.unwrap();
    assert!(book.claim(running.worker, TaskType::DiscoveryEnumerate).await.is_some());
}

async fn a_worker_without_the_key_gets_nothing(book: Book) {
    let running = book.running(job("a")).await;
    for key in [None, Some("another".to_owned()), Some(String::new())] {
        let profile = Profile { fingerprint_key: key, ..profile() };
        let worker = book.process_with(Role::Worker, GROUP, profile).await;
        assert_eq!(book.claim(worker, TaskType::DiscoveryEnumerate).await, None);
    }
    assert!(book.claim(running.worker, TaskType::DiscoveryEnumerate).await.is_some());
}

async fn a_higher_priority_is_claimed_first(book: Book) {
    let orchestrator = book.orchestrator().await;
    let mut ids = Vec::new();
    for priority in [0, 5, 1] {
        let job = NewMasterJob { priority, ..job("a").build(MasterJobId(book.id())) };
        ids.push(job.id);
        book.store().submit(job).await.unwrap();
    }
    for index in [1, 2, 0] {
        assert_eq!(book.claim_job(orchestrator).await.unwrap().master_job, ids[index]);
    }
}

async fn the_first_fingerprint_key_holds(book: Book) {
    let store = book.store();
    assert_eq!(store.fingerprint_key().await.unwrap(), None);
    assert_eq!(store.set_fingerprint_key("one", false).await.unwrap(), "one");
    assert_eq!(store.set_fingerprint_key("two", false).await.unwrap(), "one");
    assert_eq!(store.fingerprint_key().await.unwrap().as_deref(), Some("one"));
    assert_eq!(store.set_fingerprint_key("two", true).await.unwrap(), "two");
    assert_eq!(store.fingerprint_key().await.unwrap().as_deref(), Some("two"));
}

async fn the_fingerprint_key_of_open_jobs_stays(book: Book) {
    let store = book.store();
    store.set_fingerprint_key(KEY, false).await.unwrap();
    let running = book.running(job("a")).await;
    let refused = store.set_fingerprint_key("two", true).await.unwrap_err();
    assert!(matches!(&refused, StoreError::InUse { name, .. } if name == KEY), "{refused}");
    assert_eq!(store.set_fingerprint_key(KEY, true).await.unwrap(), KEY, "the same key is no change");
    running.list(vec![listed("", vec![])]).await;
    running.complete_job().await;
    assert_eq!(store.set_fingerprint_key("two", true).await.unwrap(), "two");
}
