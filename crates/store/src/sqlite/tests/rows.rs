//! What no verb shows yet: when a finding was seen, the enumeration's own log, and where records come from.

use std::time::Duration;

use domesday_model::{
    FindingDraft, JobStatus, ProcessId, Reason, RecordKind, Retries, Score, TaskType, UnitRecord,
    VersionMarks,
};

use super::*;

/// Runs a job that finds the one thing there is.
async fn survey(store: &SqliteStore, number: u8, score: u8) {
    let (orchestrator, worker) = (ProcessId([number; 16]), ProcessId([number + 100; 16]));
    for (id, role) in [(orchestrator, Role::Orchestrator), (worker, Role::Worker)] {
        store.register(&process(id, role), LEASE).await.unwrap();
    }
    store.submit(request(MasterJobId([number; 16]))).await.unwrap();
    let lease = store.claim_job(orchestrator, GROUP, LEASE).await.unwrap().unwrap().lease;
    store.start_sessions(&lease).await.unwrap();
    let root = claim(store, worker, TaskType::DiscoveryEnumerate).await;
    store.commit_units(&root, vec![listed("", files("f", 1))]).await.unwrap();
    store.complete_enumeration(&root, Vec::new()).await.unwrap();
    store.fan_out(&lease, FanOutPolicy { ready_low: 1 }).await.unwrap();
    let task = claim(store, worker, TaskType::Classification).await;
    let done = Completion {
        batch: ResultBatch {
            findings: vec![FindingDraft { score: Score(score), ..finding("f0") }],
            ..ResultBatch::default()
        },
        ..completion(task)
    };
    assert!(matches!(store.complete_classifications(vec![done]).await.unwrap()[..], [Ok(())]));
    assert_eq!(store.complete_job(&lease, Retries::NONE).await.unwrap(), Some(JobStatus::Completed));
}

#[tokio::test]
async fn a_finding_lives_across_jobs() {
    const DAY: Duration = Duration::from_secs(86_400);
    let folder = tempfile::tempdir().unwrap();
    let clock = Arc::new(ManualClock::new(0));
    let options = Options { clock: Arc::clone(&clock) as Arc<dyn Clock>, ..Options::default() };
    let store = SqliteStore::open(folder.path(), options).unwrap();
    for (number, score) in [(1, 60), (2, 80), (3, 70)] {
        survey(&store, number, score).await;
        clock.advance(DAY);
    }
    let sql = "SELECT count(*), min(first_seen), max(last_seen), max(score), min(status) FROM findings";
    let row = store
        .read(move |c| {
            Ok(c.query_row(sql, [], |r| Ok((r.get(0)?, r.get(1)?, r.get(2)?, r.get(3)?, r.get(4)?)))?)
        })
        .await
        .unwrap();
    let expected: (i64, i64, i64, i64, String) = (1, 0, 2 * DAY.as_millis() as i64, 80, "OPEN".to_owned());
    assert_eq!(row, expected);
}

#[tokio::test]
async fn every_commit_of_an_enumeration_is_a_batch_with_its_checkpoint() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let (_, _, claim) = root(&store).await;
    let failed = UnitListing::failed(ObjectKey::new(*b"x"), 0, domesday_model::Reason::Vanished, "gone");
    store.commit_units(&claim, vec![listed("u", files("f", 3)), listed("v", files("f", 2))]).await.unwrap();
    store.commit_units(&claim, vec![listed("w", vec![]), failed.clone()]).await.unwrap();
    store.commit_units(&claim, vec![UnitListing { key: ObjectKey::new(*b"y"), ..failed }]).await.unwrap();
    let batch = StageBatch {
        key: ObjectKey::new(*b"s"),
        first_sequence: 0,
        records: files("g", 4),
        targets: Vec::new(),
    };
    store.stage_unit(&claim, batch.clone()).await.unwrap();
    store.stage_unit(&claim, batch).await.unwrap();
    let page = UnitListing { resume_point: Some("page 2".to_owned()), ..listed("z", files("g", 1)) };
    store.commit_units(&claim, vec![page]).await.unwrap();
    let (batches, checkpoint) = store
        .read(|c| {
            let mut statement = c.prepare("SELECT status, items_processed FROM enumeration_batches ORDER BY id")?;
            let batches = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
            let batches = batches.collect::<rusqlite::Result<Vec<(String, i64)>>>()?;
            let sql = "SELECT data FROM checkpoints JOIN enumeration_sessions s ON s.last_checkpoint = checkpoints.id";
            Ok((batches, c.query_row(sql, [], |row| row.get::<_, String>(0))?))
        })
        .await
        .unwrap();
    let batches: Vec<_> = batches.iter().map(|(status, items)| (status.as_str(), *items)).collect();
    let expected =
        [("SUCCEEDED", 5), ("PARTIALLY_COMPLETED", 0), ("FAILED", 0), ("SUCCEEDED", 4), ("SUCCEEDED", 1)];
    assert_eq!(batches, expected);
    let checkpoint: serde_json::Value = serde_json::from_str(&checkpoint).unwrap();
    assert_eq!(checkpoint, serde_json::json!({ "task": claim.task, "key": "z", "resume_point": "page 2" }));
}

/// More records than go in together, of all kinds, with and without what is not plain.
fn varied(count: u8) -> Vec<UnitRecord> {
    let varied = |i: u8| {
        let kind = RecordKind::ALL[usize::from(i) % RecordKind::ALL.len()];
        let marks = VersionMarks {
            mtime_ns: i64::from(i) << 40,
            ctime_ns: -i64::from(i),
            inode: u64::MAX - u64::from(i),
            tag: (i % 7 == 3).then_some([i; 16]),
        };
        let reason = (kind == RecordKind::Skipped).then_some(Reason::Excluded);
        let metadata = (i % 5 == 4).then(|| format!("{{\"n\":{i}}}").into());
        UnitRecord { kind, name: vec![0xff, i], size: u64::from(i) * 1_000, marks, reason, metadata }
    };
    (0..count).map(varied).collect()
}

#[tokio::test]
async fn records_are_read_as_they_were_committed_wherever_they_come_from() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let (lease, worker, claim) = root(&store).await;
    let units = vec![listed("", varied(120)), listed("v", varied(3)), listed("w", varied(37))];
    store.complete_enumeration(&claim, units).await.unwrap();
    store.fan_out(&lease, FanOutPolicy { ready_low: 1 }).await.unwrap();
    let mut packets = Vec::new();
    for task_type in [TaskType::DiscoveryEnumerate, TaskType::Classification] {
        packets.extend(store.claim_tasks(worker, GROUP, task_type, 9).await.unwrap());
    }
    assert_eq!(packets.len(), 2);
    let (folders, objects) = (&packets[0], &packets[1]);
    let kept =
        (store.packet_containers(folders).await.unwrap(), store.packet_objects(objects).await.unwrap());
    assert_eq!((kept.0.len(), kept.1.len()), (64, 63));
    let read =
        (store.packet_containers(folders).await.unwrap(), store.packet_objects(objects).await.unwrap());
    assert_eq!(read, kept, "the second time they come from the book");
    drop(store);
    let store = open(folder.path());
    assert_eq!(store.packet_objects(objects).await.unwrap(), kept.1, "and to another process, too");
    assert_eq!(store.packet_containers(folders).await.unwrap(), kept.0);
}

#[tokio::test]
async fn records_of_a_moment_ago_are_not_read_from_the_book() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let (lease, worker, claim) = root(&store).await;
    store.complete_enumeration(&claim, vec![listed("", files("f", 20))]).await.unwrap();
    store.fan_out(&lease, FanOutPolicy { ready_low: 1 }).await.unwrap();
    let packet = store.claim_tasks(worker, GROUP, TaskType::Classification, 1).await.unwrap().remove(0);
    store.write("test", |c| Ok(c.execute("DELETE FROM task_output_records", [])?)).await.unwrap();
    assert_eq!(store.packet_objects(&packet).await.unwrap().len(), 20);
    assert_eq!(store.packet_objects(&packet).await.unwrap().len(), 0, "they are given out once");
}
