//! How often each verb of a worker waits for the server, which may be far away.

use domesday_model::{Command, Location, ObjectReport, ObjectStatus, ProcessId, Reason, UnitId};

use super::*;

/// Waits for the server while `verb` runs; its statements are prepared.
async fn waits<T>(store: &PostgresStore, verb: impl Future<Output = Result<T>>) -> (u64, T) {
    let before = store.round_trips();
    let answer = verb.await.unwrap();
    (store.round_trips() - before, answer)
}

fn part(key: &str, first_sequence: i64) -> StageBatch {
    let records = files(&format!("{first_sequence}"), 3);
    StageBatch { key: ObjectKey::new(key.as_bytes()), first_sequence, records, targets: Vec::new() }
}

/// What a worker's verbs cost; the same again for every job.
#[tokio::test]
async fn a_worker_waits_once_or_twice_for_each_verb() {
    let database = Database::new();
    let options = Options { connections_max: 1, ..Options::default() };
    let store = PostgresStore::connect(&database.url, options).await.unwrap();
    let mut seen = Vec::new();
    // The first job prepares the statements.
    for round in ["a", "b"] {
        seen = one_job(&store, round).await;
    }
    assert_eq!(
        seen,
        [
            ("claim_tasks", 1),
            ("packet_containers", 0),
            ("task_units", 1),
            ("commit_units", 2),
            ("stage_unit", 2),
            ("stage_unit again", 2),
            ("commit_staged", 2),
            ("complete_enumeration", 2),
            ("claim_tasks of nothing", 1),
            ("packet_objects", 1),
            ("stage_results", 2),
            ("complete_classifications of nothing found", 1),
            ("complete_classifications", 2),
            ("give_back", 2),
            ("are_done", 1),
            ("renew", 1),
        ]
    );
}

async fn one_job(store: &PostgresStore, name: &str) -> Vec<(&'static str, u64)> {
    let mut seen = Vec::new();
    let id = MasterJobId([name.as_bytes()[0]; 16]);
    let (orchestrator, worker) = (ProcessId([2; 16]), ProcessId([3; 16]));
    for (id, role) in [(orchestrator, Role::Orchestrator), (worker, Role::Worker)] {
        store.register(&process(id, role), LEASE).await.unwrap();
    }
    store.submit(request(id)).await.unwrap();
    let lease = store.claim_job(orchestrator, GROUP, LEASE).await.unwrap().unwrap().lease;
    store.start_sessions(&lease).await.unwrap();
    let claim = |kind, max| waits(store, store.claim_tasks(worker, GROUP, kind, max));
    let (count, packets) = claim(TaskType::DiscoveryEnumerate, 1).await;
    seen.push(("claim_tasks", count));
    let root = packets[0].claim;
    seen.push(("packet_containers", waits(store, store.packet_containers(&packets[0])).await.0));
    seen.push(("task_units", waits(store, store.task_units(&root)).await.0));
    // Each a task of its own.
    let many = crate::decide::packing::PACK_OBJECTS_MAX as usize / 2 + 1;
    let units = ["u", "v"].map(|key| listed(key, files("f", many))).to_vec();
    seen.push(("commit_units", waits(store, store.commit_units(&root, units)).await.0));
    let (count, unit): (u64, UnitId) = waits(store, store.stage_unit(&root, part("w", 0))).await;
    seen.push(("stage_unit", count));
    seen.push(("stage_unit again", waits(store, store.stage_unit(&root, part("w", 3))).await.0));
    seen.push(("commit_staged", waits(store, store.commit_staged(&root, unit)).await.0));
    let last = vec![listed("x", files("f", many))];
    seen.push(("complete_enumeration", waits(store, store.complete_enumeration(&root, last)).await.0));
    seen.push(("claim_tasks of nothing", claim(TaskType::Classification, 9).await.0));
    store.fan_out(&lease, FanOutPolicy { ready_low: u32::MAX }).await.unwrap();
    let packets = claim(TaskType::Classification, 9).await.1;
    seen.push(("packet_objects", waits(store, store.packet_objects(&packets[0])).await.0));
    let results = || ResultBatch { objects: vec![left_out()], ..ResultBatch::default() };
    let [first, second, third] = [0, 1, 2].map(|at: usize| packets[at].claim);
    seen.push(("stage_results", waits(store, store.stage_results(&first, 0, results())).await.0));
    let none = vec![completion(second)];
    let count = waits(store, store.complete_classifications(none)).await.0;
    seen.push(("complete_classifications of nothing found", count));
    let some = vec![Completion { first_sequence: 1, batch: results(), ..completion(first) }];
    seen.push(("complete_classifications", waits(store, store.complete_classifications(some)).await.0));
    seen.push(("give_back", waits(store, store.give_back(&third, GiveBack::Returned)).await.0));
    let (count, done) = waits(store, store.are_done(&[first, second, third])).await;
    assert_eq!(done, [true, true, false]);
    seen.push(("are_done", count));
    let renewed = store.renew(Role::Worker, worker, LEASE, Load::default());
    seen.push(("renew", waits(store, renewed).await.0));
    store.append_command(id, Command::Cancel).await.unwrap();
    let cancelled = store.execute_commands(&lease).await.unwrap().unwrap();
    store.settle_job(&cancelled.lease).await.unwrap().unwrap();
    seen
}

fn left_out() -> ObjectReport {
    ObjectReport {
        location: Location { key: ObjectKey::new(*b"f"), nested: Vec::new() },
        status: ObjectStatus::Skipped,
        reason: Some(Reason::TooLarge),
        detail: String::new(),
        overflow: 0,
    }
}
