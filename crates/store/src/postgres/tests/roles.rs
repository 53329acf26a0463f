//! The roles of `docs/fleet/roles.sql`: that file itself is applied, and each role does all of its work with
//! the rights that it gets there, and nothing else.

use domesday_model::{
    Command, JobStatus, ObjectStatus, ProcessId, Reason, Retries, RuleSetHash, ScanOptions, ScanTemplate,
    TargetDraft,
};

use super::*;

pub(super) const ROLES: &str = include_str!("../../../../../docs/fleet/roles.sql");

const RULES: RuleSetHash = RuleSetHash([0; 16]);

async fn open_as(database: &Database, role: &str) -> PostgresStore {
    let url = database.url.replace("postgres@", &format!("{role}@"));
    PostgresStore::connect(&url, Options { migrate: false, ..Options::default() }).await.unwrap()
}

fn refused<T: std::fmt::Debug>(result: Result<T>) {
    let error = result.expect_err("the role has no right to do this");
    assert!(matches!(&error, StoreError::Refused(text) if text.contains("permission denied")), "{error}");
}

fn drafts() -> Vec<TargetDraft> {
    let url = || "https://host/o/r".to_owned();
    let metadata = serde_json::json!({});
    let name = "o/r".to_owned();
    vec![
        TargetDraft::GithubRepository { name, url: url(), is_active: true, metadata: metadata.clone() },
        TargetDraft::Url { url: url(), metadata },
    ]
}

/// All that a worker does about enumeration.
async fn enumerate(store: &PostgresStore, worker: ProcessId) {
    let packet = store.claim_tasks(worker, GROUP, TaskType::DiscoveryEnumerate, 1).await.unwrap().remove(0);
    let claim = packet.claim;
    assert_eq!(store.rule_set(packet.rule_set).await.unwrap().as_deref(), Some("rules"));
    assert_eq!(store.packet_containers(&packet).await.unwrap().len(), 1);
    assert_eq!(store.task_units(&claim).await.unwrap(), []);
    let skipped = domesday_model::UnitRecord {
        kind: domesday_model::RecordKind::Skipped,
        reason: Some(Reason::ReadError),
        ..files("s", 1).remove(0)
    };
    let batch = |first_sequence| StageBatch {
        key: ObjectKey::new(*b"large"),
        first_sequence,
        records: [files("f", 2), vec![skipped.clone()]].concat(),
        targets: drafts(),
    };
    let unit = store.stage_unit(&claim, batch(0)).await.unwrap();
    assert_eq!(store.staged_hashes(unit, 0..=255).await.unwrap().len(), 3);
    store.clear_unit(&claim, unit).await.unwrap();
    for first in [0, 3] {
        store.stage_unit(&claim, batch(first)).await.unwrap();
    }
    store.commit_staged(&claim, unit).await.unwrap();
    let failed = UnitListing::failed(ObjectKey::new(*b"x"), 0, Reason::ReadError, "denied");
    let failed = UnitListing { targets: drafts(), ..failed };
    for (page, resume_point) in [(0, Some("more".to_owned())), (1, None)] {
        let page = UnitListing { page, resume_point, ..listed("paged", files("p", 1)) };
        store.commit_units(&claim, vec![page]).await.unwrap();
    }
    let half = crate::decide::packing::PACK_OBJECTS_MAX as usize / 2 + 1;
    let units = (0..4).map(|i| listed(&format!("u{i}"), files("f", half))).chain([failed]).collect();
    store.commit_units(&claim, units).await.unwrap();
    // What an earlier claim began comes whole.
    store.stage_unit(&claim, StageBatch { key: ObjectKey::new(*b"y"), ..batch(0) }).await.unwrap();
    store.complete_enumeration(&claim, vec![listed("y", files("f", 1))]).await.unwrap();
    assert_eq!(store.are_done(&[claim]).await.unwrap(), [true]);
}

/// All that a worker does about classification.
async fn classify(store: &PostgresStore, worker: ProcessId) -> Base {
    let next = || claim(store, worker, TaskType::Classification);
    let packet = store.claim_tasks(worker, GROUP, TaskType::Classification, 1).await.unwrap().remove(0);
    assert!(!store.packet_objects(&packet).await.unwrap().is_empty());
    let base = Base { session: packet.session, job: packet.job, started_at_ms: 0 };
    store
        .stage_results(&packet.claim, 0, results("f", ObjectStatus::Skipped, Reason::ReadError))
        .await
        .unwrap();
    let staged = Completion {
        first_sequence: 3,
        batch: results("f", ObjectStatus::Skipped, Reason::ReadError),
        ..completion(packet.claim)
    };
    let untraced = vec![ObjectKey::new(*b"f"), ObjectKey::new(*b"g")];
    let whole = Completion {
        batch: results("f", ObjectStatus::Skipped, Reason::ReadError),
        untraced,
        replaces: vec![ObjectKey::new(*b"f")],
        ..completion(next().await)
    };
    for answer in store.complete_classifications(vec![staged, whole]).await.unwrap() {
        answer.unwrap();
    }
    assert_eq!(store.are_done(&[packet.claim]).await.unwrap(), [true]);
    store.give_back(&next().await, GiveBack::Returned).await.unwrap();
    let error = "no route".to_owned();
    let retry = GiveBack::Retry { error: error.clone(), after: std::time::Duration::ZERO };
    store.give_back(&next().await, retry).await.unwrap();
    let wait = GiveBack::Wait { after: std::time::Duration::ZERO, why: "too many requests".to_owned() };
    store.give_back(&next().await, wait).await.unwrap();
    let unavailable = GiveBack::Unavailable { error: error.clone(), after: std::time::Duration::ZERO };
    store.give_back(&next().await, unavailable).await.unwrap();
    store.give_back(&next().await, GiveBack::Failed { error }).await.unwrap();
    loop {
        let packets = store.claim_tasks(worker, GROUP, TaskType::Classification, 8).await.unwrap();
        if packets.is_empty() {
            break;
        }
        let completions = packets.iter().map(|packet| completion(packet.claim)).collect();
        for answer in store.complete_classifications(completions).await.unwrap() {
            answer.unwrap();
        }
    }
    base
}

/// All that a worker does about origins.
async fn trace(store: &PostgresStore, worker: ProcessId) {
    let claim = claim(store, worker, TaskType::Tracing).await;
    let keys = store.untraced(&claim, 10).await.unwrap();
    assert_eq!(keys.len(), 2);
    let origin = domesday_model::Origin {
        path: Some(ObjectKey::new(*b"src/f")),
        commit: "c0ffee".to_owned(),
        author: "A <a@host>".to_owned(),
        time_ms: 1,
        is_abandoned: false,
    };
    // Twice: what is there is written over.
    for _ in 0..2 {
        let origins = vec![(keys[0].clone(), Some(origin.clone())), (keys[1].clone(), None)];
        store.save_origins(&claim, origins).await.unwrap();
    }
    store.complete_task(&claim).await.unwrap();
}

fn template() -> ScanTemplate {
    ScanTemplate {
        name: "nightly".to_owned(),
        datasources: vec!["a".to_owned()],
        rules: Vec::new(),
        options: ScanOptions::default(),
        priority: 0,
        schedule: None,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_role_does_its_work_and_no_more() {
    let database = Database::new();
    // Before there are tables, and again when there are.
    database.psql(ROLES);
    let owner = database.url.replace("postgres@", "domesday_owner@");
    assert!(!PostgresStore::migrate(&owner).await.unwrap().is_empty());
    database.psql(ROLES);
    for (login, groups) in [("domesday_worker", GROUP), ("domesday_orchestrator", GROUP)] {
        database.psql(&format!("SELECT grant_login('{login}', '{login}', '{{{groups}}}')"));
    }
    let operator = open_as(&database, "domesday_operator").await;
    let orchestrator = open_as(&database, "domesday_orchestrator").await;
    let worker = open_as(&database, "domesday_worker").await;
    let (owned_by, id) = (ProcessId([2; 16]), ProcessId([3; 16]));

    // The operator starts a job on a managed source with a limit.
    let mut source = request(MASTER).configuration.datasources.remove(0);
    source.concurrency_limit = Some(1_000);
    operator.put_datasource(&source, Put::New).await.unwrap();
    operator.put_template(&template(), Put::New, None).await.unwrap();
    operator.set_fingerprint_key(KEY, false).await.unwrap();
    operator.put_rule_set(RULES, "rules").await.unwrap();
    operator.submit(request(MASTER)).await.unwrap();
    orchestrator.register(&process(owned_by, Role::Orchestrator), LEASE).await.unwrap();
    let lease = orchestrator.claim_job(owned_by, GROUP, LEASE).await.unwrap().unwrap().lease;
    orchestrator.start_sessions(&lease).await.unwrap();

    worker.register(&process(id, Role::Worker), LEASE).await.unwrap();
    assert!(worker.renew(Role::Worker, id, LEASE, Load::default()).await.unwrap());
    assert_eq!(worker.stopping_jobs(vec![lease.job]).await.unwrap(), []);
    assert_eq!(worker.fingerprint_key().await.unwrap().as_deref(), Some(KEY));
    enumerate(&worker, id).await;
    orchestrator.fan_out(&lease, FanOutPolicy { ready_low: u32::MAX }).await.unwrap();
    let base = classify(&worker, id).await;
    let report = orchestrator.fan_out(&lease, FanOutPolicy { ready_low: u32::MAX }).await.unwrap();
    assert_eq!(report.tasks[TaskType::Tracing], 1);
    trace(&worker, id).await;

    // What is not a worker's to do.
    let job = request(MasterJobId([9; 16]));
    refused(worker.submit(job.clone()).await);
    refused(worker.put_datasource(&source, Put::Replace).await);
    refused(worker.put_template(&template(), Put::Replace, None).await);
    refused(worker.append_command(MASTER, Command::Cancel).await);
    refused(worker.complete_job(&lease, Retries::NONE).await);
    refused(worker.put_rule_set(RULES, "others").await);
    refused(worker.set_fingerprint_key("another", true).await);
    refused(worker.retry(Retry::AllOf(MASTER), RetryScope::Passing).await);
    refused(worker.prune(std::time::Duration::ZERO, 10).await);
    for sql in [
        "UPDATE jobs SET status = 'CANCELLED'",
        "UPDATE datasources SET worker_label = NULL",
        "DELETE FROM tasks",
        "UPDATE tasks SET payload = '{}'",
        "UPDATE findings SET status = 'CLOSED'",
        "DELETE FROM findings",
    ] {
        let refusal = database.psql(&format!(
            "DO $$ BEGIN SET LOCAL ROLE domesday_worker; {sql}; RAISE 'it was allowed';
             EXCEPTION WHEN insufficient_privilege THEN NULL; END $$; SELECT 'refused'"
        ));
        assert_eq!(refusal, "refused", "{sql}");
    }
    worker.release(Role::Worker, id).await.unwrap();

    // The rest of an operator's work.
    orchestrator.renew_jobs(owned_by, LEASE).await.unwrap();
    orchestrator.reap_tasks(GROUP, LEASE).await.unwrap();
    orchestrator.reap_sessions(GROUP, LEASE).await.unwrap();
    orchestrator.sweep(100).await.unwrap();
    orchestrator.execute_unowned_commands(GROUP).await.unwrap();
    assert_eq!(orchestrator.execute_commands(&lease).await.unwrap(), None);
    assert_eq!(orchestrator.settle_job(&lease).await.unwrap(), None);
    orchestrator.open_session(&lease, "a").await.unwrap();
    let of_job = SessionFilter { master: Some(MASTER), ..SessionFilter::default() };
    assert_eq!(orchestrator.sessions(of_job, None, 10).await.unwrap().len(), 1);
    // What is about all node groups is none of its business: it finds nothing, and no error.
    assert_eq!(orchestrator.events("log", 10).await.unwrap(), []);
    assert_eq!(orchestrator.due_templates().await.unwrap().templates, []);
    refused(orchestrator.submit(request(MasterJobId([9; 16]))).await);
    assert_eq!(
        orchestrator.complete_job(&lease, Retries::NONE).await.unwrap(),
        Some(JobStatus::PartiallyCompleted)
    );
    // What a worker knows from a job that ended.
    let prior =
        worker.prior_records(&base, &[ObjectKey::new(*b"u0")], PriorCursor::default(), 10).await.unwrap();
    assert_eq!(prior.records.len(), 10);
    let results = worker.prior_results(&base, vec![ObjectKey::new(*b"f")]).await.unwrap();
    assert_eq!(results[0].as_ref().unwrap().findings.len(), 1);
    assert!(operator.occurrences(MASTER, OccurrenceFilter::default()).await.unwrap().recv().await.is_some());
    assert_eq!(operator.problems(MASTER, 1).await.unwrap().len(), 1);
    let events = operator.events("relay", 10).await.unwrap();
    operator.acknowledge("relay", events[0].id).await.unwrap();
    assert_eq!(operator.retry(Retry::AllOf(MASTER), RetryScope::Passing).await.unwrap().tasks, 1);
    assert_eq!(operator.fleet().await.unwrap().groups.len(), 1);
    operator.due_templates().await.unwrap();
    operator.prune(LEASE, 100).await.unwrap();
    operator.remove_template("nightly").await.unwrap();
    orchestrator.release(Role::Orchestrator, owned_by).await.unwrap();
    let ddl = database.url.replace("postgres@", "domesday_operator@");
    database
        .psql("DELETE FROM schema_migrations WHERE version = (SELECT max(version) FROM schema_migrations)");
    assert!(matches!(PostgresStore::migrate(&ddl).await.unwrap_err(), StoreError::Refused(_)));
}
