//! The pipeliner's verb: committed units become tasks, each record exactly once.

use std::collections::BTreeMap;

use domesday_model::{ObjectKey, Takes, TaskType};

use super::book::*;
use super::cases;
use crate::decide::packing::{PACK_BYTES_MAX, PACK_CONTAINERS_MAX, PACK_OBJECTS_MAX};
use crate::types::*;

use TaskType::{Classification, DiscoveryEnumerate};

cases![
    small_units_share_a_task,
    a_pack_that_is_not_full_waits,
    a_waiting_pack_is_cut_when_few_tasks_are_ready,
    containers_and_objects_go_apart,
    fanning_out_twice_is_once,
    a_large_unit_is_cut_into_tasks,
    large_objects_are_spread_over_tasks,
    sources_are_not_mixed,
    units_committed_later_are_fanned_out_later,
];

/// The keys all pending tasks of a type cover, with how often each is covered.
async fn covered(running: &Running, task_type: TaskType) -> (usize, BTreeMap<ObjectKey, usize>) {
    let store = running.store();
    let packets = store.claim_tasks(running.worker, GROUP, task_type, u32::MAX).await.unwrap();
    let mut times = BTreeMap::new();
    for packet in &packets {
        let keys: Vec<ObjectKey> = match task_type.facts().takes {
            Takes::Objects => {
                store.packet_objects(packet).await.unwrap().into_iter().map(|o| o.key).collect()
            }
            Takes::Containers => store.packet_containers(packet).await.unwrap(),
            Takes::Nothing => store.untraced(&packet.claim, u32::MAX).await.unwrap(),
        };
        for key in keys {
            *times.entry(key).or_default() += 1;
        }
    }
    (packets.len(), times)
}

fn once(times: &BTreeMap<ObjectKey, usize>) -> bool {
    times.values().all(|&times| times == 1)
}

async fn small_units_share_a_task(book: Book) {
    let running = book.running(job("a")).await;
    running.list((0..10).map(|i| listed(&format!("u{i}"), files("f", 3))).collect()).await;
    let report = running.fan_out().await;
    let mut expected = FanOutReport { units: 10, ..FanOutReport::default() };
    expected.tasks[Classification] = 1;
    assert_eq!(report, expected);
    let (tasks, times) = covered(&running, Classification).await;
    assert_eq!((tasks, times.len(), once(&times)), (1, 30, true));
}

async fn a_pack_that_is_not_full_waits(book: Book) {
    let running = book.running(job("a")).await;
    let third = PACK_OBJECTS_MAX as usize / 3;
    running.list((0..4).map(|i| listed(&format!("u{i}"), files("f", third))).collect()).await;
    let full = book.store().fan_out(&running.lease, FULL_ONLY).await.unwrap();
    assert_eq!((full.units, full.tasks[Classification]), (3, 1));
    assert_eq!(book.store().fan_out(&running.lease, FULL_ONLY).await.unwrap(), FanOutReport::default());
    assert_eq!(running.complete_job().await, None, "a unit that waits is not forgotten");
    assert_eq!(running.fan_out().await.units, 1);
    let (tasks, times) = covered(&running, Classification).await;
    assert_eq!((tasks, times.len(), once(&times)), (2, 4 * third, true));
}

async fn a_waiting_pack_is_cut_when_few_tasks_are_ready(book: Book) {
    let running = book.running(job("a")).await;
    let packet = running.enumeration().await;
    let policy = FanOutPolicy { ready_low: 1 };
    for (name, cut) in [("u", 1), ("v", 0)] {
        book.store().commit_units(&packet.claim, vec![listed(name, files("f", 3))]).await.unwrap();
        let report = book.store().fan_out(&running.lease, policy).await.unwrap();
        assert_eq!(report.tasks[Classification], cut, "one task is enough to be ready");
    }
    running.classification().await;
    assert_eq!(book.store().fan_out(&running.lease, policy).await.unwrap().tasks[Classification], 1);
}

async fn containers_and_objects_go_apart(book: Book) {
    let running = book.running(job("a")).await;
    let mixed = vec![file("f"), dir("d"), file("g"), dir("b")];
    running.list(vec![listed("u", mixed)]).await;
    let report = running.fan_out().await;
    assert_eq!((report.tasks[DiscoveryEnumerate], report.tasks[Classification]), (1, 1));
    let packet = running.enumeration().await;
    assert_eq!(book.store().packet_containers(&packet).await.unwrap(), [key("u/b"), key("u/d")], "sorted");
    let packet = running.classification().await;
    let objects = book.store().packet_objects(&packet).await.unwrap();
    assert_eq!(objects.into_iter().map(|object| object.key).collect::<Vec<_>>(), [key("u/f"), key("u/g")]);
}

async fn fanning_out_twice_is_once(book: Book) {
    let running = book.running(job("a")).await;
    running.list(vec![listed("", vec![dir("d"), file("f")])]).await;
    running.fan_out().await;
    assert_eq!(running.fan_out().await, FanOutReport::default());
    let (tasks, times) = covered(&running, Classification).await;
    assert_eq!((tasks, once(&times)), (1, true));
}

async fn a_large_unit_is_cut_into_tasks(book: Book) {
    let running = book.running(job("a")).await;
    let (objects, containers) = (2 * PACK_OBJECTS_MAX as usize + 7, PACK_CONTAINERS_MAX as usize + 3);
    let mut records = files("f", objects);
    // Containers among the objects: ranges are cut by sequence, and each task takes what is its own.
    records.extend((0..containers).map(|i| dir(&format!("d{i}"))));
    records.sort_by_key(|record| ObjectKey::hash128(&record.name));
    running.list(vec![listed("u", records)]).await;
    running.fan_out().await;
    for (task_type, count, least) in [(Classification, objects, 3), (DiscoveryEnumerate, containers, 2)] {
        let (tasks, times) = covered(&running, task_type).await;
        assert!(tasks >= least);
        assert_eq!((times.len(), once(&times)), (count, true));
    }
}

async fn large_objects_are_spread_over_tasks(book: Book) {
    let running = book.running(job("a")).await;
    let half = PACK_BYTES_MAX as u64 / 2;
    let large = ["a", "b", "c", "d"].map(|name| sized(name, half)).to_vec();
    let huge = vec![sized("one", u64::try_from(PACK_BYTES_MAX).unwrap() * 3)];
    running.list(vec![listed("u", large), listed("v", huge), listed("w", files("f", 2))]).await;
    assert_eq!(running.fan_out().await.tasks[Classification], 4);
    let (_, times) = covered(&running, Classification).await;
    assert_eq!((times.len(), once(&times)), (7, true));
}

async fn sources_are_not_mixed(book: Book) {
    let running = book.running(job("a").source("b")).await;
    for _ in 0..2 {
        running.list(vec![listed("", vec![file("f")])]).await;
    }
    assert_eq!(running.fan_out().await.tasks[Classification], 2);
    let names =
        [running.classification().await.datasource.name, running.classification().await.datasource.name];
    assert_eq!(names, ["a", "b"]);
}

async fn units_committed_later_are_fanned_out_later(book: Book) {
    let running = book.running(job("a")).await;
    let packet = running.enumeration().await;
    for name in ["u", "v"] {
        book.store().commit_units(&packet.claim, vec![listed(name, vec![file("f")])]).await.unwrap();
        assert_eq!(running.fan_out().await.units, 1);
    }
    let (tasks, times) = covered(&running, Classification).await;
    assert_eq!((tasks, times.keys().cloned().collect::<Vec<_>>()), (2, vec![key("u/f"), key("v/f")]));
}
