//! Several processes at the same moment: what SQLite's one writer cannot get wrong.

use std::time::Duration;

use domesday_model::{
    Category, Command, FindingDraft, Fingerprint, JobStatus, Location, Position, ProcessId, Retries, Score,
    Span, TargetDraft,
};

use super::*;

async fn worker(store: &PostgresStore, number: u8) -> ProcessId {
    let id = ProcessId([number; 16]);
    store.register(&process(id, Role::Worker), LEASE).await.unwrap();
    id
}

/// A job with `tasks` classification tasks pending.
async fn pending(store: &PostgresStore, tasks: usize, limit: Option<u32>) -> JobLease {
    let mut job = request(MASTER);
    job.configuration.datasources[0].concurrency_limit = limit;
    store.submit(job).await.unwrap();
    let orchestrator = ProcessId([2; 16]);
    store.register(&process(orchestrator, Role::Orchestrator), LEASE).await.unwrap();
    let lease = store.claim_job(orchestrator, GROUP, LEASE).await.unwrap().unwrap().lease;
    store.start_sessions(&lease).await.unwrap();
    let root = worker(store, 3).await;
    let root = claim(store, root, TaskType::DiscoveryEnumerate).await;
    let half = crate::decide::packing::PACK_OBJECTS_MAX as usize / 2 + 1;
    let units = (0..tasks).map(|i| listed(&format!("u{i}"), files("f", half))).collect();
    store.commit_units(&root, units).await.unwrap();
    store.complete_enumeration(&root, Vec::new()).await.unwrap();
    let report = store.fan_out(&lease, FanOutPolicy { ready_low: u32::MAX }).await.unwrap();
    assert_eq!(report.tasks[TaskType::Classification], tasks as u64);
    lease
}

/// `count` processes, each with a store of its own, all doing the same at once.
async fn at_once<T, F>(database: &Database, count: u8, act: impl Fn(PostgresStore, ProcessId) -> F) -> Vec<T>
where
    T: Send + 'static,
    F: Future<Output = T> + Send + 'static,
{
    let mut ready = Vec::new();
    for number in 0..count {
        let store = database.open().await;
        let id = worker(&store, 10 + number).await;
        ready.push((store, id));
    }
    let running: Vec<_> = ready.into_iter().map(|(store, id)| tokio::spawn(act(store, id))).collect();
    let mut done = Vec::new();
    for one in running {
        done.push(one.await.unwrap());
    }
    done
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_limit_holds_across_processes() {
    let database = Database::new();
    pending(&database.open().await, 12, Some(3)).await;
    let claimed = at_once(&database, 8, |store, worker| async move {
        store.claim_tasks(worker, GROUP, TaskType::Classification, 2).await.unwrap().len()
    });
    assert_eq!(claimed.await.into_iter().sum::<usize>(), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn processes_share_the_work_and_none_of_it_is_done_twice() {
    const TASKS: usize = 60;
    let database = Database::new();
    let store = database.open().await;
    let lease = pending(&store, TASKS, None).await;
    let done = at_once(&database, 6, |store, worker| async move {
        let mut done = 0;
        loop {
            let packets = store.claim_tasks(worker, GROUP, TaskType::Classification, 4).await.unwrap();
            if packets.is_empty() && store.summary(MASTER).await.unwrap().tasks_open == 0 {
                return done;
            }
            let totals = TaskTotals { objects: 1, ..TaskTotals::default() };
            let mut completions = Vec::new();
            for packet in packets {
                completions.push(Completion { totals, ..completion(packet.claim) });
            }
            done += completions.len();
            let answers = store.complete_classifications(completions).await.unwrap();
            assert!(answers.iter().all(|answer| answer.is_ok()), "{answers:?}");
        }
    });
    assert_eq!(done.await.into_iter().sum::<usize>(), TASKS);
    assert_eq!(store.summary(MASTER).await.unwrap().objects_done, TASKS as u64);
    assert_eq!(store.complete_job(&lease, Retries::NONE).await.unwrap(), Some(JobStatus::Completed));
}

/// A job is cancelled while workers claim, complete and die, and reapers split: nothing of it stays open.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancelled_job_leaves_no_task_open() {
    for _ in 0..3 {
        let database = Database::new();
        let store = database.open().await;
        let lease = pending(&store, 30, None).await;
        database.psql("UPDATE tasks SET abandonments = 1 WHERE status = 'PENDING'");
        store.append_command(MASTER, Command::Cancel).await.unwrap();
        let workers = at_once(&database, 4, |store, worker| async move {
            let mut completed = 0;
            for _ in 0..6 {
                let packets = store.claim_tasks(worker, GROUP, TaskType::Classification, 2).await.unwrap();
                if let Some(packet) = packets.first() {
                    let answers = store.complete_classifications(vec![completion(packet.claim)]).await;
                    match &answers.unwrap()[0] {
                        Ok(()) => completed += 1,
                        Err(error) => assert!(error.is_lost(), "{error}"),
                    }
                }
                // What the other packet had is split by whoever reaps first.
                store.reap_tasks(GROUP, Duration::ZERO).await.unwrap();
            }
            completed
        });
        let cancel = async {
            tokio::task::yield_now().await;
            store.execute_commands(&lease).await.unwrap().unwrap()
        };
        let (completed, cancelled) = tokio::join!(workers, cancel);
        assert_eq!(store.settle_job(&cancelled.lease).await.unwrap(), Some(JobStatus::Cancelled));
        assert_eq!(store.summary(MASTER).await.unwrap().tasks_open, 0);
        let count = database
            .psql("SELECT count(*) FROM tasks WHERE type = 'CLASSIFICATION' AND status = 'COMPLETED'");
        assert_eq!(count, completed.into_iter().sum::<i32>().to_string());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_paused_job_runs_nothing() {
    for _ in 0..5 {
        let database = Database::new();
        let store = database.open().await;
        let lease = pending(&store, 20, None).await;
        store.append_command(MASTER, Command::Pause).await.unwrap();
        let workers = at_once(&database, 4, |store, worker| async move {
            for _ in 0..5 {
                for packet in store.claim_tasks(worker, GROUP, TaskType::Classification, 1).await.unwrap() {
                    store.give_back(&packet.claim, GiveBack::Returned).await.expect("accepted while pausing");
                }
            }
        });
        let pause = async {
            let mut lease = lease;
            if let Some(job) = store.execute_commands(&lease).await.unwrap() {
                lease = job.lease;
            }
            while store.settle_job(&lease).await.unwrap().is_none() {}
            database.psql("SELECT count(*) FROM tasks WHERE status = 'RUNNING'")
        };
        let (_, running) = tokio::join!(workers, pause);
        assert_eq!(running, "0");
    }
}

/// Orchestrators that see the same template due, each with a connection of its own, time and again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_firing_starts_one_job_across_processes() {
    const FIRINGS: i64 = 10;
    let database = Database::new();
    let store = database.open().await;
    let template = domesday_model::ScanTemplate {
        name: "nightly".to_owned(),
        datasources: vec!["a".to_owned()],
        rules: Vec::new(),
        options: domesday_model::ScanOptions::default(),
        priority: 0,
        schedule: None,
    };
    store.put_template(&template, Put::New, Some(0)).await.unwrap();
    let fired = at_once(&database, 6, |store, orchestrator| async move {
        let mut fired = 0;
        while let Some(due) = store.due_templates().await.unwrap().templates.pop() {
            let at = due.next_firing_ms.unwrap();
            let mut id = orchestrator.0;
            id[15] = at as u8;
            let firing = Firing {
                template: due.template.name,
                firing_ms: at,
                next_ms: Some(at + 1).filter(|next| *next < FIRINGS),
                job: Some(request(MasterJobId(id))),
            };
            fired += i64::from(store.fire(firing).await.unwrap());
        }
        fired
    });
    assert_eq!(fired.await.into_iter().sum::<i64>(), FIRINGS);
    assert_eq!(database.psql("SELECT count(*) FROM master_jobs"), FIRINGS.to_string());
    let jobs = "SELECT count(DISTINCT master_job_id) FROM schedule_firings";
    assert_eq!(database.psql(jobs), FIRINGS.to_string());
}

/// Jobs are submitted while their source is edited: the edit holds.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_edit_is_not_undone_by_a_submitted_job() {
    let database = Database::new();
    let store = database.open().await;
    let mut source = request(MASTER).configuration.datasources.remove(0);
    store.put_datasource(&source, Put::New).await.unwrap();
    let submits = at_once(&database, 4, |store, worker| async move {
        for number in 0..10 {
            let mut id = worker.0;
            id[15] = number;
            store.submit(request(MasterJobId(id))).await.unwrap();
        }
    });
    let edits = async {
        for limit in 1..=10 {
            source.concurrency_limit = Some(limit);
            store.put_datasource(&source, Put::Replace).await.unwrap();
            assert_eq!(store.managed_datasource("a").await.unwrap().unwrap().spec, source);
        }
    };
    tokio::join!(submits, edits);
    assert_eq!(store.managed_datasource("a").await.unwrap().unwrap().spec.concurrency_limit, Some(10));
}

/// Tasks that find the same things, each in another order, complete at the same moment.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_findings_from_many_tasks_are_one_each() {
    const FINDINGS: u8 = 200;
    let database = Database::new();
    let store = database.open().await;
    pending(&store, 8, None).await;
    at_once(&database, 8, |store, worker| async move {
        let claim = claim(&store, worker, TaskType::Classification).await;
        let location = Location { key: ObjectKey::new(*b"f"), nested: Vec::new() };
        let finding = |number| FindingDraft {
            location: Arc::new(location.clone()),
            rule: "rule".into(),
            category: Category::Secret,
            score: Score(number),
            reasons: String::new(),
            fingerprint: Fingerprint([number; 16]),
            preview: "****".to_owned(),
            span: Span { start: 0, end: 9 },
            position: Position { line: 1, column: 1 },
            decoding: Arc::from([]),
            row: None,
            suppressed: None,
        };
        let mut findings: Vec<_> = (0..FINDINGS).map(finding).collect();
        findings.rotate_left(usize::from(worker.0[0]) * 7 % usize::from(FINDINGS));
        let batch = ResultBatch { findings, ..ResultBatch::default() };
        let answers = store.complete_classifications(vec![Completion { batch, ..completion(claim) }]).await;
        assert!(matches!(answers.unwrap()[..], [Ok(())]));
    })
    .await;
    assert_eq!(database.psql("SELECT count(*), count(DISTINCT id), max(score) FROM findings"), "200|200|199");
    assert_eq!(database.psql("SELECT count(*) FROM finding_occurrences"), "1600");
}

/// The reader gets ahead of a transaction that drew its numbers first.
#[tokio::test]
async fn an_event_that_is_committed_late_is_not_passed_over() {
    let database = Database::new();
    let store = database.open().await;
    let late = database.session().await;
    late.batch_execute(
        "BEGIN; INSERT INTO events (job_id, kind, payload, created_at) VALUES (1, 'Late', '{}', 0)",
    )
    .await
    .unwrap();
    store.submit(request(MASTER)).await.unwrap();
    let first = store.events("relay", 10).await.unwrap();
    assert_eq!(first.iter().map(|event| event.kind.as_str()).collect::<Vec<_>>(), ["JobQueued"]);
    store.acknowledge("relay", first[0].id).await.unwrap();
    late.batch_execute("COMMIT").await.unwrap();
    let then = store.events("relay", 10).await.unwrap();
    assert_eq!(then.iter().map(|event| event.kind.as_str()).collect::<Vec<_>>(), ["Late"]);
}

/// Reading back waits for a commit that is still under way.
#[tokio::test]
async fn reading_back_waits_for_the_commit() {
    let database = Database::new();
    let store = Arc::new(database.open().await);
    let (_, _, claim) = root(&*store).await;
    let other = database.session().await;
    other
        .batch_execute(&format!("BEGIN; UPDATE tasks SET status = 'COMPLETED' WHERE id = {}", claim.task))
        .await
        .unwrap();
    let reading = tokio::spawn({
        let store = Arc::clone(&store);
        async move { store.are_done(&[claim]).await.unwrap() }
    });
    let waits = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()";
    while database.psql(waits) != "1" {
        tokio::task::yield_now().await;
    }
    other.batch_execute("COMMIT").await.unwrap();
    assert_eq!(reading.await.unwrap(), [true]);
}

/// Commits that come upon the same targets wait for one another, and never in a circle: a circle would be broken by
/// the server, and the verb tried again, which nobody would see.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn targets_are_persisted_once_and_without_deadlocks() {
    const PROCESSES: u8 = 4;
    const TARGETS: usize = 50;
    let database = Database::new();
    let store = database.open().await;
    let mut job = request(MASTER);
    let source = job.configuration.datasources[0].clone();
    for number in 1..PROCESSES {
        let name = format!("source {number}");
        job.configuration.datasources.push(domesday_model::DatasourceSpec { name, ..source.clone() });
    }
    store.submit(job).await.unwrap();
    let orchestrator = ProcessId([2; 16]);
    store.register(&process(orchestrator, Role::Orchestrator), LEASE).await.unwrap();
    let lease = store.claim_job(orchestrator, GROUP, LEASE).await.unwrap().unwrap().lease;
    assert_eq!(store.start_sessions(&lease).await.unwrap(), u64::from(PROCESSES));
    let draft = |i: usize| {
        let (url, metadata) = (format!("https://host/{i}"), serde_json::json!({}));
        let name = format!("o/{i}");
        [
            TargetDraft::Url { url: url.clone(), metadata: metadata.clone() },
            TargetDraft::GithubRepository { name, url, is_active: true, metadata },
        ]
    };
    let done = at_once(&database, PROCESSES, |store, worker| async move {
        let claim = claim(&store, worker, TaskType::DiscoveryEnumerate).await;
        for round in 0..20 {
            let turned = (0..TARGETS).map(|i| (i * 7 + usize::from(worker.0[0]) * 13 + round) % TARGETS);
            let targets = turned.flat_map(draft).collect();
            let unit = UnitListing { targets, ..listed(&format!("u{round}"), files("f", 1)) };
            store.commit_units(&claim, vec![unit]).await.unwrap();
        }
        store.complete_enumeration(&claim, Vec::new()).await.unwrap();
    });
    done.await;
    for (sql, count) in [
        ("SELECT count(*) FROM github_repos", TARGETS),
        ("SELECT count(*) FROM url_targets", TARGETS),
        ("SELECT count(*) FROM scan_targets", 2 * TARGETS + usize::from(PROCESSES)),
        ("SELECT count(*) FROM job_scan_targets", usize::from(PROCESSES) * (2 * TARGETS + 1)),
    ] {
        assert_eq!(database.psql(sql), count.to_string(), "{sql}");
    }
    let deadlocks = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()";
    assert_eq!(database.psql(deadlocks), "0");
}
