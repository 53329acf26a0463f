//! Units: direct commits, staging in batches, resumption.

use domesday_model::{ListedObject, ObjectKey, Reason, TaskType, UnitStatus};

use super::book::*;
use super::cases;
use crate::error::StoreError;
use crate::types::*;

cases![
    a_unit_is_committed_with_its_records,
    an_empty_container_is_a_unit,
    a_failed_unit_is_named,
    several_units_share_a_commit,
    a_unit_committed_twice_is_one_unit,
    a_staged_unit_is_invisible_until_committed,
    a_repeated_batch_is_harmless,
    a_missing_batch_is_noticed,
    committing_a_staged_unit_twice_is_once,
    what_is_staged_tells_where_to_resume,
    staged_hashes_are_read_one_range_at_a_time,
    a_cleared_unit_is_listed_again,
    a_listing_that_fits_one_batch_replaces_what_was_staged,
    a_staged_unit_can_fail,
    a_committed_unit_is_not_cleared,
    a_unit_of_another_task_is_out_of_reach,
    names_need_not_be_text,
];

async fn a_unit_is_committed_with_its_records(book: Book) {
    let running = book.running(job("a")).await;
    let packet = running.enumeration().await;
    let records = vec![
        file("f"),
        dir("d"),
        sized("g", 5),
        skipped("s", Reason::Symlink),
        skipped("t", Reason::Symlink),
    ];
    book.store().commit_units(&packet.claim, vec![listed("", records)]).await.unwrap();
    let summary = book.store().summary(running.master).await.unwrap();
    assert_eq!((summary.units, summary.objects_listed, summary.bytes_listed), (1, 2, FILE_SIZE + 5));
    assert_eq!(summary.skipped, [(Reason::Symlink, 2)]);
    let units = book.store().task_units(&packet.claim).await.unwrap();
    assert_eq!(units.len(), 1);
    assert_eq!((&units[0].key, units[0].status, units[0].records), (&key(""), UnitStatus::Committed, 5));
}

async fn an_empty_container_is_a_unit(book: Book) {
    let running = book.running(job("a")).await;
    let packet = running.enumeration().await;
    book.store().commit_units(&packet.claim, vec![listed("", vec![])]).await.unwrap();
    let units = book.store().task_units(&packet.claim).await.unwrap();
    assert_eq!((units[0].status, units[0].records), (UnitStatus::Committed, 0));
    assert_eq!(running.fan_out().await, FanOutReport::default());
}

async fn a_failed_unit_is_named(book: Book) {
    let running = book.running(job("a")).await;
    let packet = running.enumeration().await;
    let unit = failed("", Reason::PermissionDenied, "permission denied");
    book.store().commit_units(&packet.claim, vec![unit]).await.unwrap();
    assert_eq!(book.store().task_units(&packet.claim).await.unwrap()[0].status, UnitStatus::Failed);
    let problems = book.store().problems(running.master, 10).await.unwrap();
    assert_eq!(problems.len(), 1);
    assert_eq!(
        (problems[0].reason, problems[0].detail.as_str()),
        (Some(Reason::PermissionDenied), "permission denied")
    );
    assert_eq!(problems[0].datasource, packet.datasource.id);
    assert_eq!(book.store().summary(running.master).await.unwrap().failed, [(Reason::PermissionDenied, 1)]);
}

async fn several_units_share_a_commit(book: Book) {
    let running = book.running(job("a")).await;
    let packet = running.enumeration().await;
    let units = vec![listed("a", files("f", 3)), failed("b", Reason::Vanished, "gone"), listed("c", vec![])];
    book.store().commit_units(&packet.claim, units).await.unwrap();
    let units = book.store().task_units(&packet.claim).await.unwrap();
    let seen: Vec<_> = units.iter().map(|unit| (unit.key.clone(), unit.status, unit.records)).collect();
    assert_eq!(
        seen,
        [
            (key("a"), UnitStatus::Committed, 3),
            (key("b"), UnitStatus::Failed, 0),
            (key("c"), UnitStatus::Committed, 0)
        ]
    );
    book.store().commit_units(&packet.claim, vec![]).await.unwrap();
    assert_eq!(book.store().task_units(&packet.claim).await.unwrap(), units);
}

async fn a_unit_committed_twice_is_one_unit(book: Book) {
    let running = book.running(job("a")).await;
    let packet = running.enumeration().await;
    for records in [files("f", 2), files("other", 7)] {
        book.store().commit_units(&packet.claim, vec![listed("", records)]).await.unwrap();
    }
    let late = failed("", Reason::Vanished, "gone");
    book.store().commit_units(&packet.claim, vec![late]).await.unwrap();
    let summary = book.store().summary(running.master).await.unwrap();
    assert_eq!(
        (summary.units, summary.objects_listed, summary.failed),
        (1, 2, vec![]),
        "the first one counts"
    );
}

async fn a_staged_unit_is_invisible_until_committed(book: Book) {
    let running = book.running(job("a")).await;
    let packet = running.enumeration().await;
    let store = book.store();
    let unit = store.stage_unit(&packet.claim, batch("", 0, files("a", 3))).await.unwrap();
    let mixed = vec![dir("d"), file("b"), skipped("s", Reason::Excluded)];
    assert_eq!(store.stage_unit(&packet.claim, batch("", 3, mixed)).await.unwrap(), unit);
    assert_eq!(
        store.summary(running.master).await.unwrap(),
        JobSummary { tasks_open: 1, ..JobSummary::default() }
    );
    assert_eq!(running.fan_out().await, FanOutReport::default());
    assert_eq!(running.complete_job().await, None);
    store.commit_staged(&packet.claim, unit).await.unwrap();
    let summary = store.summary(running.master).await.unwrap();
    assert_eq!((summary.units, summary.objects_listed, summary.bytes_listed), (1, 4, 4 * FILE_SIZE));
    assert_eq!(summary.skipped, [(Reason::Excluded, 1)]);
    let report = running.fan_out().await;
    assert_eq!((report.tasks[TaskType::DiscoveryEnumerate], report.tasks[TaskType::Classification]), (1, 1));
    let objects = store.packet_objects(&running.classification().await).await.unwrap();
    let keys: Vec<_> = objects.into_iter().map(|object| object.key).collect();
    assert_eq!(keys, [key("a0"), key("a1"), key("a2"), key("b")]);
}

async fn a_repeated_batch_is_harmless(book: Book) {
    let running = book.running(job("a")).await;
    let packet = running.enumeration().await;
    let store = book.store();
    let mut unit = None;
    for _ in 0..2 {
        let first = batch("", 0, vec![file("a"), skipped("s", Reason::Excluded)]);
        unit = Some(store.stage_unit(&packet.claim, first).await.unwrap());
        store.stage_unit(&packet.claim, batch("", 2, vec![file("b")])).await.unwrap();
    }
    let units = store.task_units(&packet.claim).await.unwrap();
    assert_eq!((units[0].records, units[0].page), (3, 0));
    store.commit_staged(&packet.claim, unit.unwrap()).await.unwrap();
    let summary = store.summary(running.master).await.unwrap();
    assert_eq!((summary.objects_listed, summary.skipped), (2, vec![(Reason::Excluded, 1)]));
}

async fn a_missing_batch_is_noticed(book: Book) {
    let running = book.running(job("a")).await;
    let packet = running.enumeration().await;
    let store = book.store();
    store.stage_unit(&packet.claim, batch("", 0, files("f", 2))).await.unwrap();
    let gap = store.stage_unit(&packet.claim, batch("", 3, files("g", 1))).await.unwrap_err();
    assert!(matches!(gap, StoreError::Gap { expected: 2, found: 3, .. }), "{gap}");
    let gap = store.stage_unit(&packet.claim, batch("other", 1, files("g", 1))).await.unwrap_err();
    assert!(matches!(gap, StoreError::Gap { expected: 0, found: 1, .. }), "{gap}");
    let units = store.task_units(&packet.claim).await.unwrap();
    assert_eq!((units.len(), units[0].records), (1, 2), "nothing was written");
}

async fn committing_a_staged_unit_twice_is_once(book: Book) {
    let running = book.running(job("a")).await;
    let packet = running.enumeration().await;
    let unit = book.store().stage_unit(&packet.claim, batch("", 0, files("f", 2))).await.unwrap();
    book.store().commit_staged(&packet.claim, unit).await.unwrap();
    running.fan_out().await;
    book.store().commit_staged(&packet.claim, unit).await.unwrap();
    assert_eq!(running.fan_out().await, FanOutReport::default());
}

async fn what_is_staged_tells_where_to_resume(book: Book) {
    let mut running = book.running(job("a")).await;
    let packet = running.enumeration().await;
    let store = book.store();
    store.commit_units(&packet.claim, vec![listed("done", vec![])]).await.unwrap();
    store.stage_unit(&packet.claim, batch("half", 0, files("f", 2))).await.unwrap();
    running.abandon().await;
    let again = running.enumeration().await;
    assert_eq!(again.claim.task, packet.claim.task);
    let units = store.task_units(&again.claim).await.unwrap();
    let done = &units[0];
    assert_eq!((&done.key, done.status), (&key("done"), UnitStatus::Committed));
    let half = &units[1];
    assert_eq!((&half.key, half.status, half.records), (&key("half"), UnitStatus::Staging, 2));
    let mut hashes = store.staged_hashes(half.unit, 0..=255).await.unwrap();
    let mut expected = [ObjectKey::hash128(b"f0"), ObjectKey::hash128(b"f1")];
    hashes.sort_unstable();
    expected.sort_unstable();
    assert_eq!(hashes, expected);
    store.stage_unit(&again.claim, batch("half", half.records, files("g", 1))).await.unwrap();
    store.commit_staged(&again.claim, half.unit).await.unwrap();
    assert_eq!(store.summary(running.master).await.unwrap().objects_listed, 3);
}

async fn staged_hashes_are_read_one_range_at_a_time(book: Book) {
    let running = book.running(job("a")).await;
    let packet = running.enumeration().await;
    let unit = book.store().stage_unit(&packet.claim, batch("", 0, files("f", 200))).await.unwrap();
    let mut all = Vec::new();
    for range in [0..=0, 1..=127, 128..=255] {
        let hashes = book.store().staged_hashes(unit, range.clone()).await.unwrap();
        assert!(hashes.iter().all(|hash| range.contains(&hash[0])));
        all.extend(hashes);
    }
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 200);
}

async fn a_cleared_unit_is_listed_again(book: Book) {
    let running = book.running(job("a")).await;
    let packet = running.enumeration().await;
    let store = book.store();
    let stale = vec![file("old"), skipped("s", Reason::Excluded), dir("d")];
    let unit = store.stage_unit(&packet.claim, batch("", 0, stale)).await.unwrap();
    store.clear_unit(&packet.claim, unit).await.unwrap();
    assert_eq!(store.staged_hashes(unit, 0..=255).await.unwrap(), Vec::<[u8; 16]>::new());
    assert_eq!(store.stage_unit(&packet.claim, batch("", 0, files("new", 2))).await.unwrap(), unit);
    store.commit_staged(&packet.claim, unit).await.unwrap();
    let summary = store.summary(running.master).await.unwrap();
    assert_eq!((summary.objects_listed, summary.skipped), (2, vec![]));
    let report = running.fan_out().await;
    assert_eq!((report.tasks[TaskType::DiscoveryEnumerate], report.tasks[TaskType::Classification]), (0, 1));
}

async fn a_listing_that_fits_one_batch_replaces_what_was_staged(book: Book) {
    let running = book.running(job("a")).await;
    let packet = running.enumeration().await;
    let store = book.store();
    let stale = vec![file("old"), skipped("s", Reason::Excluded), dir("d")];
    store.stage_unit(&packet.claim, batch("", 0, stale)).await.unwrap();
    store.commit_units(&packet.claim, vec![listed("", files("new", 2))]).await.unwrap();
    let units = store.task_units(&packet.claim).await.unwrap();
    assert_eq!((units.len(), units[0].status, units[0].records), (1, UnitStatus::Committed, 2));
    store.complete_enumeration(&packet.claim, Vec::new()).await.unwrap();
    assert_eq!(running.fan_out().await.tasks[TaskType::DiscoveryEnumerate], 0);
    let objects = store.packet_objects(&running.classification().await).await.unwrap();
    assert_eq!(objects.into_iter().map(|object| object.key).collect::<Vec<_>>(), [key("new0"), key("new1")]);
    assert_eq!(store.summary(running.master).await.unwrap().skipped, []);
}

async fn a_staged_unit_can_fail(book: Book) {
    let running = book.running(job("a")).await;
    let packet = running.enumeration().await;
    let store = book.store();
    store.stage_unit(&packet.claim, batch("", 0, files("f", 2))).await.unwrap();
    store
        .commit_units(&packet.claim, vec![failed("", Reason::ReadError, "input/output error")])
        .await
        .unwrap();
    let units = store.task_units(&packet.claim).await.unwrap();
    assert_eq!((units.len(), units[0].status), (1, UnitStatus::Failed));
    assert_eq!(store.summary(running.master).await.unwrap().objects_listed, 0);
    assert_eq!(running.fan_out().await, FanOutReport::default());
    assert_eq!(store.sweep(1).await.unwrap(), 1, "a sweep is bounded");
    assert_eq!(store.sweep(100).await.unwrap(), 1);
    assert_eq!(store.sweep(100).await.unwrap(), 0);
}

async fn a_committed_unit_is_not_cleared(book: Book) {
    let running = book.running(job("a")).await;
    let packet = running.enumeration().await;
    let store = book.store();
    let unit = store.stage_unit(&packet.claim, batch("", 0, files("f", 2))).await.unwrap();
    store.commit_staged(&packet.claim, unit).await.unwrap();
    let before = book.view(running.master, &packet.claim).await;
    store.clear_unit(&packet.claim, unit).await.unwrap();
    assert_eq!(book.view(running.master, &packet.claim).await, before);
    assert_eq!(store.staged_hashes(unit, 0..=255).await.unwrap().len(), 2);
}

async fn a_unit_of_another_task_is_out_of_reach(book: Book) {
    let running = book.running(job("a").source("b")).await;
    let (mine, other) = (running.enumeration().await, running.enumeration().await);
    let store = book.store();
    let unit = store.stage_unit(&other.claim, batch("", 0, files("f", 2))).await.unwrap();
    assert!(store.commit_staged(&mine.claim, unit).await.unwrap_err().is_lost());
    store.clear_unit(&mine.claim, unit).await.unwrap();
    assert_eq!(store.task_units(&other.claim).await.unwrap()[0].records, 2);
    assert_eq!(store.task_units(&mine.claim).await.unwrap(), []);
}

async fn names_need_not_be_text(book: Book) {
    let running = book.running(job("a")).await;
    let odd = ObjectKey::new(*b"\xff\n/\0\xfe");
    let mut entry = dir("");
    entry.name = odd.0.clone();
    running.list(vec![listed("", vec![entry])]).await;
    running.fan_out().await;
    let packet = running.claim_by(running.worker, TaskType::DiscoveryEnumerate).await.unwrap();
    assert_eq!(book.store().packet_containers(&packet).await.unwrap(), std::slice::from_ref(&odd));
    let mut inside = file("");
    inside.name = b"\x80".to_vec();
    let unit = UnitListing::whole(odd.clone(), vec![inside.clone()]);
    book.store().commit_units(&packet.claim, vec![unit]).await.unwrap();
    running.fan_out().await;
    let objects = book.store().packet_objects(&running.classification().await).await.unwrap();
    let object = ListedObject::by_key(odd.join(b"\x80"));
    assert_eq!(objects, [ListedObject { size: inside.size, marks: inside.marks, ..object }]);
}
