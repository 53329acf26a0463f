//! Tasks whose worker is gone, or that make no progress: back, in half, or given up by name.

use std::collections::BTreeSet;
use std::time::Duration;

use domesday_model::{JobStatus, ObjectStatus, Reason, TaskType, UnitStatus};

use super::book::*;
use super::cases;
use crate::types::*;

use TaskType::{Classification, DiscoveryEnumerate};

cases![
    an_expired_workers_task_goes_back,
    a_released_workers_task_goes_back_at_once,
    a_live_workers_task_stays,
    a_task_without_progress_goes_back_although_its_worker_lives,
    progress_keeps_a_task,
    a_task_that_moves_is_kept_although_nothing_is_written,
    a_claim_that_was_lost_keeps_nobodys_task,
    what_moves_and_ends_every_worker_is_given_up,
    only_the_own_group_is_reaped,
    reaping_twice_is_once,
    a_completion_and_the_reaper_exclude_each_other,
    after_two_abandonments_a_task_is_split,
    halves_cover_the_whole_and_skip_what_was_committed,
    halves_resume_what_was_staged,
    a_task_that_makes_progress_is_never_given_up,
    an_object_that_ends_every_worker_is_given_up_by_name,
    what_was_held_together_with_such_an_object_is_not_given_up,
    a_container_that_ends_every_worker_is_given_up_by_name,
    a_poisoned_task_was_not_done_by_its_last_claim,
];

const RETURNED: ReapReport = ReapReport { returned: 1, split: 0, poisoned: 0 };
const SPLIT: ReapReport = ReapReport { returned: 0, split: 1, poisoned: 0 };
const POISONED: ReapReport = ReapReport { returned: 0, split: 0, poisoned: 1 };

async fn reap(book: &Book) -> ReapReport {
    book.store().reap_tasks(GROUP, DEADLINE).await.unwrap()
}

async fn an_expired_workers_task_goes_back(book: Book) {
    let mut running = book.running(job("a")).await;
    let first = running.enumeration().await;
    assert_eq!(running.abandon().await, RETURNED);
    let again = running.enumeration().await;
    assert_eq!((again.claim.task, again.failures), (first.claim.task, 0), "abandoned is not failed");
    assert_ne!(again.claim, first.claim);
}

async fn a_released_workers_task_goes_back_at_once(book: Book) {
    let running = book.running(job("a")).await;
    running.enumeration().await;
    book.store().release(Role::Worker, running.worker).await.unwrap();
    assert_eq!(reap(&book).await, RETURNED);
}

async fn a_live_workers_task_stays(book: Book) {
    let running = book.running(job("a")).await;
    running.enumeration().await;
    book.advance(LEASE - Duration::from_millis(1));
    assert_eq!(reap(&book).await, ReapReport::default());
}

/// Lets time pass while the worker stays alive.
async fn pass(running: &Running, mut time: Duration) {
    while !time.is_zero() {
        let step = time.min(LEASE / 2);
        running.book.advance(step);
        assert!(running.store().renew(Role::Worker, running.worker, LEASE, Load::default()).await.unwrap());
        time -= step;
    }
}

async fn a_task_without_progress_goes_back_although_its_worker_lives(book: Book) {
    let running = book.running(job("a")).await;
    running.enumeration().await;
    pass(&running, DEADLINE - Duration::from_millis(1)).await;
    assert_eq!(reap(&book).await, ReapReport::default());
    pass(&running, Duration::from_millis(1)).await;
    assert_eq!(reap(&book).await, RETURNED);
}

async fn progress_keeps_a_task(book: Book) {
    let running = book.running(job("a")).await;
    let packet = running.enumeration().await;
    for i in 0..3 {
        pass(&running, DEADLINE / 2).await;
        book.store().stage_unit(&packet.claim, batch("", i, files("f", 1))).await.unwrap();
        assert_eq!(reap(&book).await, ReapReport::default());
    }
}

async fn a_task_that_moves_is_kept_although_nothing_is_written(book: Book) {
    let running = book.running(job("a").source("b")).await;
    let (moving, still) = (running.enumeration().await, running.enumeration().await);
    for _ in 0..3 {
        pass(&running, DEADLINE / 2).await;
        book.store().renew_progress(&[moving.claim]).await.unwrap();
    }
    assert_eq!(reap(&book).await, RETURNED, "the one that does not move");
    book.advance(KEPT_BACK);
    let again = running.enumeration().await;
    assert_eq!(again.claim.task, still.claim.task);
    book.store().renew_progress(&[]).await.unwrap();
    book.store().renew_progress(&[again.claim, moving.claim]).await.unwrap();
    pass(&running, DEADLINE - Duration::from_millis(1)).await;
    assert_eq!(reap(&book).await, ReapReport::default());
    pass(&running, Duration::from_millis(1)).await;
    assert_eq!(reap(&book).await, ReapReport { returned: 2, ..RETURNED });
}

async fn a_claim_that_was_lost_keeps_nobodys_task(book: Book) {
    let mut running = book.running(job("a")).await;
    let lost = running.enumeration().await.claim;
    running.abandon().await;
    running.enumeration().await;
    pass(&running, DEADLINE / 2).await;
    book.store().renew_progress(&[lost]).await.unwrap();
    pass(&running, DEADLINE / 2).await;
    assert_eq!(reap(&book).await.returned, 1);
}

/// Moving leaves nothing behind that the next claim goes on from.
async fn what_moves_and_ends_every_worker_is_given_up(book: Book) {
    let mut running = book.running(job("a")).await;
    let mut reports = Vec::new();
    while let Some(packet) = running.claim_by(running.worker, DiscoveryEnumerate).await {
        book.store().renew_progress(&[packet.claim]).await.unwrap();
        reports.push(abandoned(&mut running).await);
    }
    assert_eq!(reports, [RETURNED, RETURNED, RETURNED, RETURNED, POISONED]);
}

async fn only_the_own_group_is_reaped(book: Book) {
    let mut running = book.running(job("a").group("east")).await;
    running.enumeration().await;
    book.advance(LEASE);
    assert_eq!(reap(&book).await, ReapReport::default());
    assert_eq!(running.abandon().await, RETURNED);
}

async fn reaping_twice_is_once(book: Book) {
    let mut running = book.running(job("a")).await;
    running.enumeration().await;
    assert_eq!(running.abandon().await, RETURNED);
    assert_eq!(reap(&book).await, ReapReport::default());
}

/// Both at once: the task is done, or it is someone else's; never both, never neither.
async fn a_completion_and_the_reaper_exclude_each_other(book: Book) {
    for round in 0..10 {
        let running = book.running(job("a").group(&format!("{round}"))).await;
        let claim = running.enumeration().await.claim;
        book.store().release(Role::Worker, running.worker).await.unwrap();
        let (reaping, completing) = (book.store(), book.store());
        let group = running.group.clone();
        let reaped = tokio::spawn(async move { reaping.reap_tasks(&group, DEADLINE).await.unwrap() });
        let completed =
            tokio::spawn(async move { completing.complete_enumeration(&claim, Vec::new()).await });
        let (reaped, completed) = (reaped.await.unwrap(), completed.await.unwrap());
        let done = book.is_done(&claim).await;
        assert_eq!((completed.is_ok(), reaped.returned), (done, u64::from(!done)));
    }
}

/// Longer than a task is kept back that was alone with a worker that ended.
const KEPT_BACK: Duration = Duration::from_secs(5);

/// Claims and abandons the next task of a type.
async fn abandon(running: &mut Running, task_type: TaskType) -> ReapReport {
    running.claim_by(running.worker, task_type).await.expect("a task is pending");
    abandoned(running).await
}

/// Abandons what is claimed, and waits until it can be claimed again.
async fn abandoned(running: &mut Running) -> ReapReport {
    let report = running.abandon().await;
    running.book.advance(KEPT_BACK);
    report
}

async fn after_two_abandonments_a_task_is_split(book: Book) {
    let mut running = book.running(job("a")).await;
    running.list(vec![listed("u", files("f", 3)), listed("v", files("f", 2))]).await;
    running.fan_out().await;
    assert_eq!(abandon(&mut running, Classification).await, RETURNED);
    let whole = running.classification().await;
    assert_eq!(running.abandon().await, SPLIT);
    let late = book.store().stage_results(&whole.claim, 0, findings(vec![finding("u/f0", "r")])).await;
    assert!(late.is_err_and(|error| error.is_lost()));
    assert!(!book.is_done(&whole.claim).await);
    let mut keys = Vec::new();
    for _ in 0..2 {
        let packet = running.classification().await;
        let objects = book.store().packet_objects(&packet).await.unwrap();
        assert!(!objects.is_empty());
        keys.extend(objects.into_iter().map(|object| object.key));
        running.complete(&packet).await;
    }
    assert_eq!(keys, ["u/f0", "u/f1", "u/f2", "v/f0", "v/f1"].map(key));
    assert_eq!(running.claim_by(running.worker, Classification).await, None);
    assert_eq!(running.complete_job().await, Some(JobStatus::Completed), "what was split is not open");
}

/// A task over four containers, claimed.
async fn four_containers(running: &Running) -> WorkPacket {
    running.list(vec![listed("", ["a", "b", "c", "d"].map(dir).to_vec())]).await;
    running.fan_out().await;
    running.enumeration().await
}

async fn halves_cover_the_whole_and_skip_what_was_committed(book: Book) {
    let mut running = book.running(job("a")).await;
    let store = book.store();
    let whole = four_containers(&running).await;
    store.commit_units(&whole.claim, vec![listed("a", files("f", 1)), listed("c", vec![])]).await.unwrap();
    assert_eq!(running.abandon().await, RETURNED);
    running.enumeration().await;
    assert_eq!(running.abandon().await, SPLIT);
    let mut listed_by_halves = BTreeSet::new();
    for _ in 0..2 {
        let half = running.enumeration().await;
        let done = store.task_units(&half.claim).await.unwrap();
        for container in store.packet_containers(&half).await.unwrap() {
            if done.iter().all(|unit| unit.key != container || unit.status != UnitStatus::Committed) {
                assert!(listed_by_halves.insert(container.clone()), "each container is in one half");
                let unit = UnitListing::whole(container, files("g", 1));
                store.commit_units(&half.claim, vec![unit]).await.unwrap();
            }
        }
        // Listed again although it need not be: still one unit.
        store.commit_units(&half.claim, vec![listed("a", files("again", 5))]).await.unwrap();
        store.complete_enumeration(&half.claim, Vec::new()).await.unwrap();
    }
    assert_eq!(listed_by_halves, BTreeSet::from(["b", "d"].map(key)));
    let summary = store.summary(running.master).await.unwrap();
    assert_eq!((summary.units, summary.objects_listed), (5, 3));
}

async fn halves_resume_what_was_staged(book: Book) {
    let mut running = book.running(job("a")).await;
    let store = book.store();
    let whole = four_containers(&running).await;
    let unit = store.stage_unit(&whole.claim, batch("d", 0, files("f", 2))).await.unwrap();
    running.abandon().await;
    running.enumeration().await;
    assert_eq!(running.abandon().await, SPLIT);
    let _first = running.enumeration().await;
    let second = running.enumeration().await;
    let units = store.task_units(&second.claim).await.unwrap();
    assert_eq!((units[0].unit, units[0].status, units[0].records), (unit, UnitStatus::Staging, 2));
    assert_eq!(store.stage_unit(&second.claim, batch("d", 2, files("g", 1))).await.unwrap(), unit);
    store.commit_staged(&second.claim, unit).await.unwrap();
    assert_eq!(store.summary(running.master).await.unwrap().objects_listed, 3);
}

async fn a_task_that_makes_progress_is_never_given_up(book: Book) {
    let mut running = book.running(job("a")).await;
    for sequence in 0..12 {
        let packet = running.enumeration().await;
        let batch = batch("", sequence, vec![file(&format!("f{sequence}"))]);
        book.store().stage_unit(&packet.claim, batch).await.unwrap();
        assert_eq!(running.abandon().await, RETURNED);
    }
    let packet = running.enumeration().await;
    assert_eq!(book.store().task_units(&packet.claim).await.unwrap()[0].records, 12);
}

async fn an_object_that_ends_every_worker_is_given_up_by_name(book: Book) {
    let mut running = book.running(job("a")).await;
    let store = book.store();
    running.list(vec![listed("", ["bad", "good"].map(file).to_vec())]).await;
    running.fan_out().await;
    for expected in [RETURNED, SPLIT] {
        assert_eq!(abandon(&mut running, Classification).await, expected);
    }
    // Whoever gets the good object completes it; the bad one ends its worker each time.
    let mut reports = Vec::new();
    while let Some(packet) = running.claim_by(running.worker, Classification).await {
        let objects = store.packet_objects(&packet).await.unwrap();
        if objects[0].key == key("good") {
            running.complete(&packet).await;
        } else {
            store.stage_results(&packet.claim, 0, findings(vec![finding("bad", "r")])).await.unwrap();
            reports.push(abandoned(&mut running).await);
        }
    }
    assert_eq!(reports, [RETURNED, RETURNED, RETURNED, POISONED], "five times in all");
    let problems = store.problems(running.master, 10).await.unwrap();
    assert_eq!(problems.len(), 1);
    let given_up = &problems[0];
    assert_eq!((&given_up.location.key, given_up.status), (&key("bad"), ObjectStatus::Failed));
    assert_eq!(given_up.reason, Some(Reason::Poisoned));
    assert_eq!(book.occurrences(running.master, OccurrenceFilter::default()).await, []);
    assert_eq!(running.complete_job().await, Some(JobStatus::PartiallyCompleted));
    assert_eq!(store.sweep(100).await.unwrap(), 4, "what the lost claims staged");
}

async fn what_was_held_together_with_such_an_object_is_not_given_up(book: Book) {
    let mut running = book.running(job("a")).await;
    let store = book.store();
    running.list(vec![listed("", ["a", "bad", "c"].map(file).to_vec())]).await;
    running.fan_out().await;
    // Whoever holds the bad object loses all that it holds.
    let mut completed = BTreeSet::new();
    for _ in 0..40 {
        let packets = store.claim_tasks(running.worker, &running.group, Classification, 10).await.unwrap();
        let mut keys = BTreeSet::new();
        for packet in &packets {
            keys.extend(store.packet_objects(packet).await.unwrap().into_iter().map(|object| object.key));
        }
        if keys.contains(&key("bad")) {
            running.abandon().await;
            continue;
        }
        for packet in &packets {
            running.complete(packet).await;
        }
        completed.extend(keys);
        book.advance(Duration::from_secs(1));
    }
    assert_eq!(completed, BTreeSet::from(["a", "c"].map(key)));
    let problems = store.problems(running.master, 10).await.unwrap();
    let named: Vec<_> = problems.iter().map(|problem| (&problem.location.key, problem.reason)).collect();
    assert_eq!(named, [(&key("bad"), Some(Reason::Poisoned))]);
    assert_eq!(running.complete_job().await, Some(JobStatus::PartiallyCompleted));
}

async fn a_container_that_ends_every_worker_is_given_up_by_name(book: Book) {
    let mut running = book.running(job("a")).await;
    running.list(vec![listed("", vec![dir("bad")])]).await;
    running.fan_out().await;
    let packet = running.enumeration().await;
    book.store().stage_unit(&packet.claim, batch("bad", 0, files("f", 2))).await.unwrap();
    let mut reports = vec![running.abandon().await];
    for _ in 0..4 {
        reports.push(abandon(&mut running, DiscoveryEnumerate).await);
    }
    assert_eq!(reports, [RETURNED, RETURNED, RETURNED, RETURNED, POISONED]);
    let problems = book.store().problems(running.master, 10).await.unwrap();
    let named: Vec<_> =
        problems.iter().map(|problem| (problem.location.key.clone(), problem.reason)).collect();
    assert_eq!(named, [(key("bad"), Some(Reason::Poisoned))]);
    assert_eq!(running.complete_job().await, Some(JobStatus::PartiallyCompleted));
}

async fn a_poisoned_task_was_not_done_by_its_last_claim(book: Book) {
    let mut running = book.running(job("a")).await;
    let mut last = None;
    for _ in 0..5 {
        last = Some(running.enumeration().await);
        abandoned(&mut running).await;
    }
    assert!(!book.is_done(&last.unwrap().claim).await);
}
