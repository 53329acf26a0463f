//! Claiming work, and giving it back.

use std::time::Duration;

use domesday_model::{JobStatus, TaskType};

use super::book::*;
use super::cases;
use crate::types::*;

use TaskType::{Classification, DiscoveryEnumerate};

cases![
    a_packet_has_all_that_is_needed,
    a_packet_keeps_the_configuration_its_job_was_submitted_with,
    only_tasks_of_the_workers_group_are_claimed,
    only_tasks_of_running_jobs_are_claimed,
    two_workers_never_get_the_same_task,
    an_expired_worker_gets_nothing,
    one_claim_goes_round_the_jobs,
    claims_of_one_go_round_the_jobs,
    found_containers_come_before_waiting_roots,
    a_data_source_runs_no_more_tasks_than_its_limit,
    a_full_data_source_does_not_hold_up_another,
    a_returned_task_is_as_good_as_new,
    a_retried_task_waits_its_time,
    a_failed_classification_names_its_objects,
    a_failed_enumeration_names_its_containers,
    a_failed_half_leaves_the_other_alone,
    results_staged_before_a_return_are_gone,
];

async fn a_packet_has_all_that_is_needed(book: Book) {
    let running = book.running(job("a")).await;
    let packet = running.enumeration().await;
    assert_eq!(
        (packet.job, packet.task_type, packet.rule_set),
        (running.lease.job, DiscoveryEnumerate, RULES)
    );
    assert_eq!(packet.datasource.name, "a");
    assert_eq!(packet.datasource.kind, "filesystem");
    assert_eq!(packet.datasource.configuration, serde_json::json!({ "path": "a" }));
    assert_eq!(packet.options, domesday_model::ScanOptions::default());
    assert_eq!(packet.failures, 0);
    assert_eq!(book.store().packet_containers(&packet).await.unwrap(), [key("")], "the root");
}

async fn a_packet_keeps_the_configuration_its_job_was_submitted_with(book: Book) {
    let running = book.running(job("a")).await;
    book.submit(job("a").with(|source| source.configuration = serde_json::json!({ "path": "elsewhere" })))
        .await;
    assert_eq!(running.enumeration().await.datasource.configuration, serde_json::json!({ "path": "a" }));
    let known = book.store().datasources(running.master).await.unwrap();
    assert_eq!(known[0].configuration, serde_json::json!({ "path": "a" }), "reports read it so, too");
}

async fn only_tasks_of_the_workers_group_are_claimed(book: Book) {
    let running = book.running(job("a").group("east")).await;
    let worker = book.worker().await;
    assert_eq!(book.claim(worker, DiscoveryEnumerate).await, None);
    running.enumeration().await;
}

async fn only_tasks_of_running_jobs_are_claimed(book: Book) {
    let mut running = book.running(job("a")).await;
    running.execute(domesday_model::Command::Pause).await;
    assert_eq!(book.claim(running.worker, DiscoveryEnumerate).await, None);
}

async fn two_workers_never_get_the_same_task(book: Book) {
    let running = book.running(job("a")).await;
    let units = (0..40)
        .map(|i| {
            listed(&format!("u{i}"), files("f", crate::decide::packing::PACK_OBJECTS_MAX as usize / 2 + 1))
        })
        .collect();
    running.list(units).await;
    assert_eq!(running.fan_out().await.tasks[Classification], 40);
    let mut workers = Vec::new();
    for _ in 0..4 {
        let (book, worker) = (book.clone(), book.worker().await);
        workers.push(tokio::spawn(async move {
            let mut tasks = Vec::new();
            loop {
                let packets = book.store().claim_tasks(worker, GROUP, Classification, 3).await.unwrap();
                if packets.is_empty() {
                    return tasks;
                }
                tasks.extend(packets.into_iter().map(|packet| packet.claim.task));
            }
        }));
    }
    let mut tasks = Vec::new();
    for worker in workers {
        tasks.extend(worker.await.unwrap());
    }
    let claimed = tasks.len();
    tasks.sort_unstable();
    tasks.dedup();
    assert_eq!((claimed, tasks.len()), (40, 40), "every task once");
}

async fn an_expired_worker_gets_nothing(book: Book) {
    let running = book.running(job("a")).await;
    book.advance(LEASE);
    assert_eq!(running.claim_by(running.worker, DiscoveryEnumerate).await, None);
    let released = book.worker().await;
    book.store().release(Role::Worker, released).await.unwrap();
    assert_eq!(running.claim_by(released, DiscoveryEnumerate).await, None);
    let unknown = domesday_model::ProcessId(book.id());
    assert_eq!(running.claim_by(unknown, DiscoveryEnumerate).await, None);
    let live = book.worker().await;
    assert!(running.claim_by(live, DiscoveryEnumerate).await.is_some());
}

/// A large job (three root tasks) and a small one (one), the large one first.
async fn large_and_small(book: &Book) -> (Running, Running) {
    (book.running(job("a").source("b").source("c")).await, book.running(job("d")).await)
}

async fn one_claim_goes_round_the_jobs(book: Book) {
    let (large, small) = large_and_small(&book).await;
    let packets = book.store().claim_tasks(large.worker, GROUP, DiscoveryEnumerate, 3).await.unwrap();
    let jobs: Vec<_> = packets.iter().map(|packet| packet.job).collect();
    assert_eq!(jobs, [large.lease.job, small.lease.job, large.lease.job]);
    let rest = book.store().claim_tasks(large.worker, GROUP, DiscoveryEnumerate, 3).await.unwrap();
    assert_eq!(rest.len(), 1);
}

async fn claims_of_one_go_round_the_jobs(book: Book) {
    let (large, small) = large_and_small(&book).await;
    let mut jobs = Vec::new();
    for _ in 0..2 {
        jobs.push(book.claim(large.worker, DiscoveryEnumerate).await.unwrap().job);
    }
    assert_eq!(jobs, [large.lease.job, small.lease.job], "a large job does not starve a small one");
}

/// Enumeration goes deep first, so that one source is known whole before the next begins.
async fn found_containers_come_before_waiting_roots(book: Book) {
    let running = book.running(job("a").source("b")).await;
    running.list(vec![listed("", vec![dir("d")])]).await;
    running.fan_out().await;
    let packet = running.enumeration().await;
    assert_eq!(book.store().packet_containers(&packet).await.unwrap(), [key("d")]);
    let root = running.enumeration().await;
    assert_eq!(root.datasource.name, "b");
}

async fn a_data_source_runs_no_more_tasks_than_its_limit(book: Book) {
    let running = book.running(job("a").limit(2)).await;
    let half = crate::decide::packing::PACK_CONTAINERS_MAX as usize / 2 + 1;
    let dirs = |i: usize| (0..half).map(|d| dir(&format!("{i}-{d}"))).collect();
    running.list((0..5).map(|i| listed(&format!("u{i}"), dirs(i))).collect()).await;
    assert_eq!(running.fan_out().await.tasks[DiscoveryEnumerate], 5);
    let mut packets = book.store().claim_tasks(running.worker, GROUP, DiscoveryEnumerate, 10).await.unwrap();
    assert_eq!(packets.len(), 2);
    assert_eq!(running.claim_by(running.worker, DiscoveryEnumerate).await, None);
    let done = packets.pop().unwrap();
    book.store().complete_enumeration(&done.claim, Vec::new()).await.unwrap();
    assert_eq!(
        book.store().claim_tasks(running.worker, GROUP, DiscoveryEnumerate, 10).await.unwrap().len(),
        1
    );
}

async fn a_full_data_source_does_not_hold_up_another(book: Book) {
    let running = book.running(job("a").limit(1).source("b")).await;
    let roots = book.store().claim_tasks(running.worker, GROUP, DiscoveryEnumerate, 2).await.unwrap();
    let half = crate::decide::packing::PACK_OBJECTS_MAX as usize / 2 + 1;
    for (root, units) in roots.iter().zip([4, 1]) {
        let units = (0..units).map(|i| listed(&format!("u{i}"), files("f", half))).collect();
        book.store().commit_units(&root.claim, units).await.unwrap();
        book.store().complete_enumeration(&root.claim, Vec::new()).await.unwrap();
    }
    assert_eq!(running.fan_out().await.tasks[Classification], 5);
    let packets = book.store().claim_tasks(running.worker, GROUP, Classification, 2).await.unwrap();
    let names: Vec<_> = packets.iter().map(|packet| packet.datasource.name.as_str()).collect();
    assert_eq!(names, ["a", "b"]);
}

async fn a_returned_task_is_as_good_as_new(book: Book) {
    let running = book.running(job("a")).await;
    let first = running.enumeration().await;
    book.store().give_back(&first.claim, GiveBack::Returned).await.unwrap();
    let again = running.enumeration().await;
    assert_eq!((again.claim.task, again.failures), (first.claim.task, 0));
    assert_ne!(again.claim.claim, first.claim.claim);
}

async fn a_retried_task_waits_its_time(book: Book) {
    let running = book.running(job("a")).await;
    let wait = Duration::from_secs(5);
    for failures in 1..=2 {
        let packet = running.enumeration().await;
        let retry = GiveBack::Retry { error: "no route".to_owned(), after: wait };
        book.store().give_back(&packet.claim, retry).await.unwrap();
        book.advance(wait - Duration::from_millis(1));
        assert_eq!(running.claim_by(running.worker, DiscoveryEnumerate).await, None);
        book.advance(Duration::from_millis(1));
        let again = running.enumeration().await;
        assert_eq!((again.claim.task, again.failures), (packet.claim.task, failures));
        book.store().give_back(&again.claim, GiveBack::Returned).await.unwrap();
    }
}

async fn a_failed_classification_names_its_objects(book: Book) {
    let running = book.running(job("a")).await;
    let packet = running.classify(&["f", "g"]).await;
    let failed = GiveBack::Failed { error: "the share is gone".to_owned() };
    book.store().give_back(&packet.claim, failed).await.unwrap();
    assert_eq!(running.claim_by(running.worker, Classification).await, None);
    let problems = book.store().problems(running.master, 10).await.unwrap();
    let named: Vec<_> = problems.iter().map(|p| (p.location.key.clone(), p.detail.as_str())).collect();
    assert_eq!(named, [(key("f"), "the share is gone"), (key("g"), "the share is gone")]);
    assert_eq!(book.store().summary(running.master).await.unwrap().tasks_failed, 1);
    assert_eq!(running.complete_job().await, Some(JobStatus::PartiallyCompleted));
}

async fn a_failed_enumeration_names_its_containers(book: Book) {
    let running = book.running(job("a")).await;
    running.list(vec![listed("", vec![dir("d"), dir("e"), dir("f")])]).await;
    running.fan_out().await;
    let packet = running.enumeration().await;
    let store = book.store();
    store.commit_units(&packet.claim, vec![listed("d", vec![])]).await.unwrap();
    store.stage_unit(&packet.claim, batch("e", 0, vec![file("x")])).await.unwrap();
    store.give_back(&packet.claim, GiveBack::Failed { error: "gone".to_owned() }).await.unwrap();
    let problems = store.problems(running.master, 10).await.unwrap();
    let named: Vec<_> = problems.iter().map(|problem| problem.location.key.clone()).collect();
    assert_eq!(named, [key("e"), key("f")], "what was committed stays");
    assert_eq!(running.complete_job().await, Some(JobStatus::PartiallyCompleted));
}

async fn a_failed_half_leaves_the_other_alone(book: Book) {
    let mut running = book.running(job("a")).await;
    running.list(vec![listed("", vec![dir("d"), dir("e")])]).await;
    running.fan_out().await;
    for _ in 0..2 {
        running.enumeration().await;
        running.abandon().await;
    }
    let (first, second) = (running.enumeration().await, running.enumeration().await);
    let store = book.store();
    let unit = store.stage_unit(&second.claim, batch("e", 0, vec![file("x")])).await.unwrap();
    store.give_back(&first.claim, GiveBack::Failed { error: "gone".to_owned() }).await.unwrap();
    store.stage_unit(&second.claim, batch("e", 1, vec![file("y")])).await.unwrap();
    store.commit_staged(&second.claim, unit).await.unwrap();
    store.complete_enumeration(&second.claim, Vec::new()).await.unwrap();
    assert_eq!(store.summary(running.master).await.unwrap().objects_listed, 2);
}

async fn results_staged_before_a_return_are_gone(book: Book) {
    let running = book.running(job("a")).await;
    let packet = running.classify(&["f"]).await;
    book.store().stage_results(&packet.claim, 0, findings(vec![finding("f", "r")])).await.unwrap();
    book.store().give_back(&packet.claim, GiveBack::Returned).await.unwrap();
    let again = running.classification().await;
    running.complete(&again).await;
    assert_eq!(book.occurrences(running.master, OccurrenceFilter::default()).await, []);
    assert_eq!(book.store().sweep(100).await.unwrap(), 0, "nothing was left behind");
}
