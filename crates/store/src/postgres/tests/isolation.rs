//! A worker with SQL of its own, under a login of one node group, against a fleet that works for two. It can neither
//! read, nor forge, nor lose what is not of its group.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use domesday_model::{DatasourceId, JobStatus, ProcessId, Retries, RuleSetHash};
use tokio_postgres::Client;

use super::roles::ROLES;
use super::*;
use crate::values::staged::{Staged, staged};

const OWN: &str = "eu";
const OTHER: &str = "us";
/// Units of each source that are listed one by one, and files of each.
const UNITS: usize = 12;
const FILES: usize = 9;

/// A book with two bound logins of workers, two of orchestrators, and a job with a source in each group.
struct Fleet {
    database: Database,
    operator: PostgresStore,
}

impl Fleet {
    async fn new() -> Fleet {
        let database = Database::new();
        let operator = database.open().await;
        database.psql(ROLES);
        let fleet = Fleet { database, operator };
        for (role, groups) in [("worker", [OWN, OTHER]), ("orchestrator", [OWN, OTHER])] {
            for group in groups {
                let login = fleet.login(role, group);
                fleet
                    .database
                    .psql(&format!("SELECT grant_login('{login}', 'domesday_{role}', ARRAY['{group}'])"));
            }
        }
        // As a fleet of before has it whose logins were these roles themselves. Every other login is a member of one.
        for role in ["domesday_worker", "domesday_orchestrator"] {
            fleet
                .database
                .psql(&format!("SELECT grant_login('{role}', '{role}', ARRAY['{OWN}', '{OTHER}'])"));
        }
        fleet.operator.put_rule_set(RuleSetHash([0; 16]), "allow = ['a value']").await.unwrap();
        fleet
    }

    /// Roles are the server's, and other tests have some of their own.
    fn login(&self, role: &str, group: &str) -> String {
        format!("{}_{role}_{group}", self.database.name)
    }

    fn url(&self, role: &str, group: &str) -> String {
        self.database.url.replace("postgres@", &format!("{}@", self.login(role, group)))
    }

    async fn open(&self, role: &str, group: &str) -> PostgresStore {
        let options = Options { migrate: false, ..Options::default() };
        PostgresStore::connect(&self.url(role, group), options).await.unwrap()
    }

    async fn sql(&self, role: &str, group: &str) -> Client {
        let url = self.url(role, group);
        let (client, driver) = config::Target::parse(&url).unwrap().connect().await.unwrap();
        tokio::spawn(driver);
        client
    }

    async fn submit(&self) {
        let mut job = request(MASTER);
        let one = job.configuration.datasources.remove(0);
        for group in [OWN, OTHER] {
            job.configuration.datasources.push(domesday_model::DatasourceSpec {
                name: format!("source-{group}"),
                node_group: group.to_owned(),
                credential: Some(format!("env:SECRET_{group}")),
                ..one.clone()
            });
        }
        self.operator.submit(job).await.unwrap();
    }

    /// All that the book has of the other group, as its owner sees it.
    fn others(&self) -> String {
        let of_job = format!("job_id IN (SELECT id FROM jobs WHERE node_group = '{OTHER}')");
        let of_source = format!("datasource_id IN (SELECT id FROM datasources WHERE node_group = '{OTHER}')");
        let of_task = format!("task_id IN (SELECT id FROM tasks WHERE {of_job})");
        let of_session = format!("session_id IN (SELECT id FROM enumeration_sessions WHERE {of_job})");
        let of_unit = format!("unit_id IN (SELECT id FROM task_units WHERE {of_job})");
        let of_group = format!("node_group = '{OTHER}'");
        let tables = [
            ("jobs", &of_group),
            ("datasources", &of_group),
            ("worker_sessions", &of_group),
            ("orchestrators", &of_group),
            ("github_repos", &of_group),
            ("url_targets", &of_group),
            ("scan_targets", &of_group),
            ("tasks", &of_job),
            ("enumeration_sessions", &of_job),
            ("enumeration_batches", &of_session),
            ("task_units", &of_job),
            ("task_output_records", &of_unit),
            ("task_unit_skips", &of_unit),
            ("staged_findings", &of_task),
            ("staged_objects", &of_task),
            ("staged_tables", &of_task),
            ("object_checkpoints", &of_task),
            ("findings", &of_source),
            ("finding_occurrences", &of_job),
            ("object_scans", &of_job),
            ("table_observations", &of_job),
            ("object_origins", &of_source),
            ("untraced_objects", &of_session),
            ("job_scan_targets", &of_job),
            ("events", &of_job),
        ];
        let of = tables.map(|(table, which)| {
            format!("(SELECT '{table}', array_agg(r::text ORDER BY r::text) FROM {table} r WHERE {which})")
        });
        self.database.psql(&of.join(" UNION ALL "))
    }
}

fn id_of(worker: bool, group: &str) -> ProcessId {
    ProcessId([if worker { 3 } else { 2 }, group.as_bytes()[0], 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])
}

async fn register(store: &PostgresStore, role: Role, group: &str) -> ProcessId {
    let id = id_of(role == Role::Worker, group);
    let process = Process { node_group: group.to_owned(), ..process(id, role) };
    store.register(&process, LEASE).await.unwrap();
    id
}

/// An orchestrator of a group, until the group's job has ended.
async fn orchestrate(store: PostgresStore, group: &'static str) -> JobStatus {
    let id = id_of(false, group);
    let lease = match store.renew_jobs(id, LEASE).await.unwrap().pop() {
        Some(owned) => owned.lease,
        None => store.claim_job(id, group, LEASE).await.unwrap().unwrap().lease,
    };
    store.start_sessions(&lease).await.unwrap();
    loop {
        store.fan_out(&lease, FanOutPolicy { ready_low: u32::MAX }).await.unwrap();
        store.reap_tasks(group, LEASE).await.unwrap();
        store.sweep(100).await.unwrap();
        if let Some(status) = store.complete_job(&lease, Retries::NONE).await.unwrap() {
            return status;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// A worker of a group: lists some directories, and finds something in each file.
async fn work(store: PostgresStore, group: &'static str, done: &AtomicBool) {
    let worker = id_of(true, group);
    while !done.load(Ordering::Relaxed) {
        for packet in store.claim_tasks(worker, group, TaskType::DiscoveryEnumerate, 1).await.unwrap() {
            for unit in 0..UNITS {
                let unit = listed(&format!("{group}/{unit}"), files("f", FILES));
                store.commit_units(&packet.claim, vec![unit]).await.unwrap();
            }
            store.complete_enumeration(&packet.claim, Vec::new()).await.unwrap();
        }
        for packet in store.claim_tasks(worker, group, TaskType::Classification, 2).await.unwrap() {
            let objects = store.packet_objects(&packet).await.unwrap();
            let findings =
                objects.iter().map(|object| finding(str::from_utf8(&object.key.0).unwrap())).collect();
            let batch = ResultBatch { findings, ..ResultBatch::default() };
            let totals = TaskTotals { objects: objects.len() as u64, ..TaskTotals::default() };
            let completion = Completion { batch, totals, ..completion(packet.claim) };
            store.complete_classifications(vec![completion]).await.unwrap().remove(0).unwrap();
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// What the attacker knows: more than it can read.
struct Ids {
    own: [i64; 4],
    other: [i64; 4],
    unit: i64,
    claim: i64,
}

impl Ids {
    fn put_into(&self, sql: &str) -> String {
        let mut sql = sql.to_owned();
        for (prefix, ids) in [("own_", &self.own), ("", &self.other)] {
            for (name, id) in ["job", "source", "session", "task"].iter().zip(ids) {
                sql = sql.replace(&format!("{{{prefix}{name}}}"), &id.to_string());
            }
        }
        sql.replace("{unit}", &self.unit.to_string()).replace("{claim}", &self.claim.to_string())
    }
}

/// Each is refused, or has no row to show or to change.
const ATTEMPTS: &[&str] = &[
    // Reading.
    "SELECT claim_id FROM tasks WHERE id = {task}",
    "SELECT 1 FROM tasks WHERE job_id <> {own_job}",
    "SELECT 1 FROM tasks WHERE 1 / (id - {task}) = 7",
    "SELECT CASE WHEN job_id = {job} THEN configuration::int END FROM jobs WHERE id <> {own_job}",
    "SELECT 1 FROM datasources WHERE id = {source}",
    "SELECT configuration FROM datasources",
    "SELECT credential FROM datasources",
    "SELECT 1 FROM enumeration_sessions WHERE id = {session}",
    "SELECT 1 FROM enumeration_batches",
    "SELECT 1 FROM task_units WHERE job_id = {job}",
    "SELECT 1 FROM task_output_records WHERE unit_id = {unit}",
    "SELECT 1 FROM task_unit_skips WHERE unit_id = {unit}",
    "SELECT 1 FROM worker_sessions WHERE node_group = 'us'",
    "SELECT 1 FROM orchestrators",
    "SELECT 1 FROM staged_findings WHERE task_id = {task}",
    "SELECT 1 FROM staged_objects WHERE task_id = {task}",
    "SELECT 1 FROM object_checkpoints WHERE task_id = {task}",
    "SELECT 1 FROM findings WHERE datasource_id = {source}",
    "SELECT 1 FROM finding_occurrences WHERE job_id = {job}",
    "SELECT 1 FROM object_scans WHERE job_id = {job}",
    "SELECT 1 FROM table_observations WHERE job_id = {job}",
    "SELECT 1 FROM url_targets WHERE node_group = 'us'",
    "SELECT 1 FROM scan_targets WHERE node_group = 'us'",
    "SELECT 1 FROM job_scan_targets WHERE job_id = {job}",
    "SELECT description FROM master_jobs",
    "SELECT 1 FROM rule_sets",
    "SELECT 1 FROM events",
    "SELECT 1 FROM scan_templates",
    "SELECT 1 FROM node_group_logins WHERE node_group = 'us'",
    "SELECT 1 WHERE unit_at({task}, 'staged', 0) IS NOT NULL",
    "SELECT 1 WHERE last_unit({task}, 'staged') IS NOT NULL",
    "SELECT 1 FROM units_of_session({job}, {session}, '{staged}')",
    "SELECT 1 FROM scans_of_objects({job}, '{us/0/f0}')",
    "SELECT 1 WHERE has_scan({job}, {task}, 'us/0/f0')",
    "SELECT 1 WHERE has_origin({own_job}, {source}, 'us/0/f0')",
    "SELECT 1 WHERE running_tasks_of_job({job}) IS NOT NULL",
    "SELECT 1 WHERE running_tasks_of_datasource({own_job}, {source}) IS NOT NULL",
    "SELECT 1 FROM pg_stats WHERE tablename IN ('tasks', 'findings', 'datasources')",
    "SET row_security = off; SELECT claim_id FROM tasks",
    "SELECT pg_read_file('postgresql.conf')",
    // Tasks of others: their end, their claim, their lease.
    "UPDATE tasks SET status = 'COMPLETED' WHERE id = {task} RETURNING 1",
    "UPDATE tasks SET status = 'FAILED', last_error = 'x' WHERE id = {task} AND claim_id = {claim} RETURNING 1",
    "UPDATE tasks SET status = 'RUNNING', claim_id = 1, worker_id = '\\x03650000000000000000000000000000'
     WHERE id = {task} RETURNING 1",
    "UPDATE tasks SET status = 'RUNNING', claim_id = 1, worker_id = '\\x03750000000000000000000000000000'
     WHERE id = {own_task} RETURNING 1",
    "UPDATE tasks SET job_id = {job} WHERE id = {own_task} RETURNING 1",
    "UPDATE tasks SET session_id = {session} WHERE id = {own_task} RETURNING 1",
    "DELETE FROM tasks RETURNING 1",
    "INSERT INTO tasks (job_id, datasource_id, session_id, type, status, payload, created_at)
     VALUES ({job}, {source}, {session}, 'CLASSIFICATION', 'PENDING', '{}', 0)",
    "UPDATE worker_sessions SET lease_expiry = 0 WHERE id = '\\x03750000000000000000000000000000' RETURNING 1",
    "UPDATE worker_sessions SET node_group = 'us' RETURNING 1",
    "UPDATE worker_sessions SET login = 'postgres' RETURNING 1",
    "INSERT INTO worker_sessions (id, node_group, started_at, lease_expiry) VALUES ('\\x09', 'us', 0, 9e15)",
    "INSERT INTO worker_sessions (id, node_group, started_at, lease_expiry, login) VALUES ('\\x09', 'eu', 0, 0, 'x')",
    "SELECT 1 FROM jobs WHERE id = {job} FOR UPDATE",
    "UPDATE jobs SET row_lock = true WHERE id = {job} RETURNING 1",
    "UPDATE jobs SET status = 'CANCELLED' RETURNING 1",
    "UPDATE datasources SET row_lock = true WHERE id = {source} RETURNING 1",
    "UPDATE enumeration_sessions SET status = 'FAILED' WHERE id = {session} RETURNING 1",
    "INSERT INTO enumeration_batches (session_id, status, expected_items, items_processed, started_at)
     VALUES ({session}, 'FAILED', 0, 0, 0)",
    // Units and records, with ids of its own group pointing at others'.
    "INSERT INTO task_units (task_id, job_id, session_id, key, status) VALUES ({task}, {job}, {session}, 'x', 'FAILED')",
    "INSERT INTO task_units (task_id, job_id, session_id, key, status)
     VALUES ({task}, {own_job}, {own_session}, 'us/0', 'COMMITTED')",
    "INSERT INTO task_units (task_id, job_id, session_id, key, status)
     VALUES ({own_task}, {job}, {session}, 'us/0', 'COMMITTED')",
    "INSERT INTO task_units (task_id, job_id, session_id, key, status)
     VALUES ({own_task}, {own_job}, {session}, 'us/0', 'COMMITTED')",
    "INSERT INTO task_units (id, task_id, job_id, session_id, key, status) OVERRIDING SYSTEM VALUE
     VALUES ({unit} + 1, {own_task}, {own_job}, {own_session}, 'x', 'COMMITTED')",
    "UPDATE task_units SET status = 'COMMITTED' WHERE id = {unit} RETURNING 1",
    "UPDATE task_units SET job_id = {job} RETURNING 1",
    "DELETE FROM task_units RETURNING 1",
    "DELETE FROM task_output_records WHERE unit_id = {unit} RETURNING 1",
    "INSERT INTO task_output_records VALUES ({unit}, 99, 0, 'x', 'x', 1, 0, 0, 0)",
    "INSERT INTO task_output_records VALUES ({unit} + 1, 0, 0, 'x', 'x', 1, 0, 0, 0)",
    "SELECT insert_records('{{unit}}', '{99}', '{0}', '{x}', '{x}', '{1}', '{0}', '{0}', '{0}', '{NULL}', '{NULL}', '{NULL}')",
    "SELECT insert_records(array_append(array(SELECT id FROM task_units WHERE job_id = {own_job}), {unit} + 1), '{98, 99}',
         '{0}', '{x}', '{x}', '{1}', '{0}', '{0}', '{0}', '{NULL}', '{NULL}', '{NULL}')",
    "UPDATE task_output_records SET name = 'x' RETURNING 1",
    "INSERT INTO task_unit_skips VALUES ({unit}, 'read_error', 5)",
    "DELETE FROM task_unit_skips WHERE unit_id = {unit} RETURNING 1",
    // Results.
    "INSERT INTO staged_objects VALUES ({task}, {claim}, 0, 'x', '', 'failed', NULL, '', 0)",
    "DELETE FROM staged_objects WHERE task_id = {task} RETURNING 1",
    "INSERT INTO findings VALUES ('\\x07', {source}, 'x', '', 'r', 'f', 'SECRET', 1, '', 'OPEN', 0, 0)",
    "UPDATE findings SET score = 0 WHERE datasource_id = {source} RETURNING 1",
    "DELETE FROM findings RETURNING 1",
    "INSERT INTO finding_occurrences VALUES ({job}, {task}, 99, '\\x07', 1, '', 0, 1, 1, 1, '')",
    "INSERT INTO finding_occurrences VALUES ({own_job}, {task}, 99, '\\x07', 1, '', 0, 1, 1, 1, '')",
    "INSERT INTO finding_occurrences VALUES ({job}, {own_task}, 99, '\\x07', 1, '', 0, 1, 1, 1, '')",
    "DELETE FROM finding_occurrences RETURNING 1",
    "INSERT INTO object_scans VALUES ({job}, {own_task}, 99, 'us/0/f0', '', 'failed', NULL, '', 0)",
    "INSERT INTO object_scans VALUES ({own_job}, {task}, 99, 'us/0/f0', '', 'failed', NULL, '', 0)",
    "INSERT INTO table_observations VALUES ({own_job}, {own_task}, 99, {source}, 'x', '', 'x', '{}', 1, false, '')",
    "INSERT INTO object_origins VALUES ({source}, 'us/0/f0', NULL, 'c', 'a', 0, false)",
    "INSERT INTO untraced_objects VALUES ({session}, 'x')",
    "INSERT INTO events (job_id, kind, payload, created_at) VALUES ({job}, 'JobStatusChanged', '{}', 0)",
    "INSERT INTO events (job_id, kind, payload, created_at, position) VALUES ({own_job}, 'x', '{}', 0, 9e15)",
    "INSERT INTO url_targets (url, node_group, metadata, created_at, updated_at) VALUES ('u', 'us', '{}', 0, 0)",
    "INSERT INTO scan_targets (id, name, target_type, target_id, node_group, metadata, created_at)
     VALUES ('\\x01', 'x', 'datasource', {source}, 'eu', '{}', 0)",
    "INSERT INTO scan_targets (id, name, target_type, target_id, node_group, metadata, created_at)
     VALUES ('\\x01', 'x', 'url', 99, 'eu', '{}', 0)",
    "UPDATE scan_targets SET name = 'x' WHERE node_group = 'us' RETURNING 1",
    "INSERT INTO job_scan_targets VALUES ({own_job}, '\\x01', {session})",
    "INSERT INTO job_scan_targets VALUES ({job}, '\\x01', {session})",
    // The walls themselves.
    "TRUNCATE task_output_records",
    "ALTER TABLE tasks DISABLE ROW LEVEL SECURITY",
    "ALTER TABLE tasks NO FORCE ROW LEVEL SECURITY",
    "CREATE POLICY mine ON tasks USING (true)",
    "DROP POLICY domesday_worker ON tasks",
    "INSERT INTO node_group_logins (login, node_group) VALUES (current_user, 'us')",
    "UPDATE node_group_logins SET node_group = 'us' RETURNING 1",
    "SELECT grant_login(current_user, 'domesday_worker', '{us}')",
    "SELECT revoke_login('postgres', NULL)",
    "SET ROLE postgres",
    "SET ROLE domesday_operator",
    "SET ROLE domesday_worker; SELECT 1 FROM jobs WHERE id = {job}",
    "SET ROLE domesday_worker; SELECT claim_id FROM tasks WHERE id = {task}",
    "SET ROLE domesday_worker; UPDATE tasks SET status = 'COMPLETED' WHERE id = {task} RETURNING 1",
    "SET ROLE domesday_worker; SELECT 1 WHERE unit_at({task}, 'staged', 0) IS NOT NULL",
    "SET ROLE domesday_orchestrator; SELECT 1 FROM jobs WHERE id = {job}",
    "SET ROLE domesday_orchestrator; UPDATE jobs SET status = 'CANCELLED' WHERE id = {job} RETURNING 1",
    "SET SESSION AUTHORIZATION postgres",
    "SELECT set_config('role', 'domesday_operator', false)",
    "SET session_replication_role = replica",
    "CREATE TEMP TABLE tasks (id bigint)",
    "CREATE TABLE public.jobs_too (id bigint)",
    "CREATE FUNCTION public.now_ms(text) RETURNS bigint LANGUAGE sql AS 'SELECT 1::bigint'",
    "CREATE FUNCTION pg_temp.leak(bigint) RETURNS boolean LANGUAGE plpgsql COST 0.0001
     AS 'BEGIN RAISE NOTICE ''%'', $1; RETURN true; END'",
    "CREATE SCHEMA evil",
    "CREATE EXTENSION dblink",
    "SELECT nextval('task_units_id_seq')",
    "SELECT setval('task_units_id_seq', 1)",
    "LOCK TABLE jobs IN ACCESS EXCLUSIVE MODE",
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename <> current_user AND usename IS NOT NULL",
    "COPY task_output_records FROM '/etc/passwd'",
    "COPY tasks TO PROGRAM 'cat'",
];

/// Of those above, what an orchestrator may do in its own group.
const OWN_TO_ORCHESTRATORS: &[&str] = &[
    "SELECT 1 FROM enumeration_batches",
    "SELECT 1 FROM orchestrators",
    "UPDATE tasks SET status = 'RUNNING', claim_id = 1, worker_id = '\\x03750000000000000000000000000000'
     WHERE id = {own_task} RETURNING 1",
    "UPDATE jobs SET status = 'CANCELLED' RETURNING 1",
];

/// What an orchestrator has more rights for than a worker.
const OF_ORCHESTRATORS: &[&str] = &[
    "SELECT 1 FROM orchestrators WHERE node_group = 'us'",
    "UPDATE jobs SET status = 'CANCELLED' WHERE id = {job} RETURNING 1",
    "UPDATE jobs SET master_pending_commands = '[\"CANCEL\"]' WHERE id = {job} RETURNING 1",
    "UPDATE jobs SET orchestrator_lease_expiry = 0 WHERE node_group = 'us' RETURNING 1",
    "UPDATE jobs SET node_group = 'us' RETURNING 1",
    "UPDATE jobs SET configuration = '{}' RETURNING 1",
    "INSERT INTO jobs (master_job_id, node_group, status, master_pending_commands, configuration, created_at)
     SELECT master_job_id, 'eu2', 'QUEUED', '[]', '{}', 0 FROM jobs",
    "INSERT INTO master_jobs (id, request_key, description, created_at) VALUES ('\\x01', '', '', 0)",
    "INSERT INTO datasources (name, kind, node_group, configuration, created_at) VALUES ('x', 'x', 'us', '{}', 0)",
    "UPDATE datasources SET configuration = '{}' RETURNING 1",
    "INSERT INTO tasks (job_id, datasource_id, session_id, type, status, payload, created_at)
     VALUES ({own_job}, {source}, {own_session}, 'CLASSIFICATION', 'PENDING', '{}', 0)",
    "INSERT INTO tasks (job_id, datasource_id, session_id, type, status, payload, created_at)
     VALUES ({own_job}, {own_source}, {session}, 'CLASSIFICATION', 'PENDING', '{}', 0)",
    "INSERT INTO enumeration_sessions
         (job_id, datasource_id, source_type, status, configuration, started_at, last_update)
     VALUES ({own_job}, {source}, '', 'INITIALIZED', '{}', 0, 0)",
    "UPDATE enumeration_sessions SET status = 'COMPLETED' WHERE id = {session} RETURNING 1",
    "UPDATE orchestrators SET lease_expiry = 0 WHERE node_group = 'us' RETURNING 1",
    "INSERT INTO orchestrators (id, node_group, started_at, lease_expiry) VALUES ('\\x09', 'us', 0, 9e15)",
    "DELETE FROM untraced_objects WHERE session_id = {session} RETURNING 1",
    "UPDATE events SET position = 1 RETURNING 1",
    "DELETE FROM events",
    "INSERT INTO event_consumers VALUES ('log', 9000000000000000)",
    "SELECT nextval('event_positions')",
    "SELECT 1 FROM findings",
    "SELECT 1 FROM schedule_firings",
    "INSERT INTO schedule_firings VALUES ('nightly', 0, NULL, 0)",
];

/// Runs one attempt in a transaction that would stay; what it achieved, if anything.
async fn attempt(sql: &Client, attempt: &str) -> Option<String> {
    let begun = format!("BEGIN; {attempt}");
    let achieved = match sql.simple_query(&begun).await {
        Err(error) => match error.as_db_error() {
            Some(_) => None,
            None => Some(error.to_string()),
        },
        Ok(messages) => messages.iter().find_map(|message| match message {
            tokio_postgres::SimpleQueryMessage::Row(row) => Some(format!("a row: {row:?}")),
            _ => None,
        }),
    };
    // What has no row to return has to fail.
    let is_silent = achieved.is_none() && !attempt.contains("RETURNING") && !attempt.contains("SELECT ");
    let state = if is_silent { sql.simple_query("SELECT 1").await.is_ok() } else { false };
    let _ = sql.batch_execute("COMMIT").await;
    achieved.or_else(|| state.then(|| "it was done".to_owned()))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_with_sql_of_its_own_stays_in_its_node_group() {
    let fleet = Fleet::new().await;
    fleet.submit().await;
    let mut stores = Vec::new();
    let mut claims = Vec::new();
    for group in [OWN, OTHER] {
        let orchestrator = fleet.open("orchestrator", group).await;
        register(&orchestrator, Role::Orchestrator, group).await;
        let id = id_of(false, group);
        let lease = orchestrator.claim_job(id, group, LEASE).await.unwrap().unwrap().lease;
        assert_eq!(orchestrator.claim_job(id, group, LEASE).await.unwrap().map(|job| job.lease), None);
        orchestrator.start_sessions(&lease).await.unwrap();
        let worker = fleet.open("worker", group).await;
        register(&worker, Role::Worker, group).await;
        // Nobody claims for another group.
        for other in [OWN, OTHER].into_iter().filter(|other| *other != group) {
            let wrong = worker.claim_tasks(id_of(true, group), other, TaskType::DiscoveryEnumerate, 8).await;
            assert_eq!(wrong.unwrap().len(), 0);
        }
        let packet = worker
            .claim_tasks(id_of(true, group), group, TaskType::DiscoveryEnumerate, 1)
            .await
            .unwrap()
            .remove(0);
        let target = domesday_model::TargetDraft::Url {
            url: "https://host/".to_owned(),
            metadata: serde_json::json!({ "of": group }),
        };
        let batch = StageBatch {
            key: ObjectKey::new(*b"staged"),
            first_sequence: 0,
            records: files("f", 3),
            targets: vec![target],
        };
        let unit = worker.stage_unit(&packet.claim, batch).await.unwrap();
        let ids = [packet.job.0, packet.datasource.id.0, packet.session.0, packet.claim.task.0];
        claims.push((packet.claim, unit, ids));
        stores.push((orchestrator, worker));
    }
    let (claim, unit, other) = claims[1];
    let ids = Ids { own: claims[0].2, other, unit: unit.0, claim: claim.claim.0 };
    let before = fleet.others();
    let evil = fleet.sql("worker", OWN).await;
    let mut achieved = Vec::new();
    for sql in ATTEMPTS.iter().map(|sql| ids.put_into(sql)) {
        if let Some(what) = attempt(&evil, &sql).await {
            achieved.push(format!("{sql}: {what}"));
        }
    }
    let evil_orchestrator = fleet.sql("orchestrator", OWN).await;
    let of_both = ATTEMPTS.iter().filter(|sql| !OWN_TO_ORCHESTRATORS.contains(sql));
    for sql in of_both.chain(OF_ORCHESTRATORS).map(|sql| ids.put_into(sql)) {
        if let Some(what) = attempt(&evil_orchestrator, &sql).await {
            achieved.push(format!("{sql}: {what} as an orchestrator"));
        }
    }
    assert_eq!(achieved, Vec::<String>::new());
    assert_eq!(fleet.others(), before);
    // Its own it does see: the attempts above did not fail for another reason.
    let own = format!("SELECT 1 FROM tasks t JOIN jobs j ON j.id = t.job_id WHERE t.id = {}", ids.own[3]);
    assert_eq!(evil.query(&own, &[]).await.unwrap().len(), 1);

    // Findings under the ids that the other group's will have.
    let batch = ResultBatch { findings: vec![finding("us/0/f0")], ..ResultBatch::default() };
    let Some(Staged::Finding(squatted)) = staged(&batch).next() else { panic!("no finding") };
    let id = squatted.id(DatasourceId(ids.other[1]));
    let squat = "INSERT INTO findings VALUES ($1, $2, 'forged', '', 'r', 'f', 'SECRET', 1, '', 'OPEN', 0, 0)";
    assert_eq!(evil.execute(squat, &[&id.0.to_vec(), &ids.own[1]]).await.unwrap(), 1);

    // The fleet goes on, the attacker, too; what was staged is listed again.
    let done = AtomicBool::new(false);
    let mut ended = Vec::new();
    let mut working = Vec::new();
    for ((orchestrator, worker), (claim, unit, _)) in stores.into_iter().zip(&claims) {
        worker.clear_unit(claim, *unit).await.unwrap();
        worker.commit_staged(claim, *unit).await.unwrap();
        worker.give_back(claim, GiveBack::Returned).await.unwrap();
        let group = if ended.is_empty() { OWN } else { OTHER };
        ended.push(tokio::spawn(orchestrate(orchestrator, group)));
        working.push(work(worker, group, &done));
    }
    let attacking = async {
        while !done.load(Ordering::Relaxed) {
            for sql in ATTEMPTS.iter().map(|sql| ids.put_into(sql)) {
                let achieved = attempt(&evil, &sql).await;
                assert_eq!(achieved, None, "{sql}");
                // A storm that nobody has to hear.
                evil.batch_execute("NOTIFY domesday").await.unwrap();
            }
        }
    };
    let ending = async {
        for status in ended {
            assert_eq!(status.await.unwrap(), JobStatus::Completed);
        }
        done.store(true, Ordering::Relaxed);
    };
    let mut working = working.into_iter();
    let (own, other) = (working.next().unwrap(), working.next().unwrap());
    tokio::join!(own, other, attacking, ending);

    // Everything of both groups is there, once, and as its own worker found it.
    let mut found = fleet.operator.occurrences(MASTER, OccurrenceFilter::default()).await.unwrap();
    let mut keys = Vec::new();
    while let Some(occurrence) = found.recv().await {
        keys.push(String::from_utf8(occurrence.unwrap().location.key.0.to_vec()).unwrap());
    }
    let mut expected = Vec::new();
    for group in [OWN, OTHER] {
        for unit in 0..UNITS {
            expected.extend((0..FILES).map(|file| format!("{group}/{unit}/f{file}")));
        }
    }
    keys.sort_unstable();
    expected.sort_unstable();
    assert_eq!(keys, expected);
    assert_eq!(fleet.operator.problems(MASTER, 10).await.unwrap(), []);
    let targets = fleet.operator.targets_by_url("https://host/").await.unwrap();
    assert_eq!(targets.len(), 2, "each group has its own word for one address");
}

/// A worker of the same group under another login: it does not see claims, and cannot end what runs.
#[tokio::test]
async fn claims_of_other_logins_are_not_readable() {
    let fleet = Fleet::new().await;
    let second = fleet.login("worker", "second");
    fleet.database.psql(&format!("SELECT grant_login('{second}', 'domesday_worker', ARRAY['{OTHER}'])"));
    fleet.submit().await;
    let orchestrator = fleet.open("orchestrator", OTHER).await;
    let owner = register(&orchestrator, Role::Orchestrator, OTHER).await;
    let lease = orchestrator.claim_job(owner, OTHER, LEASE).await.unwrap().unwrap().lease;
    orchestrator.start_sessions(&lease).await.unwrap();
    let worker = fleet.open("worker", OTHER).await;
    let id = register(&worker, Role::Worker, OTHER).await;
    let packet = worker.claim_tasks(id, OTHER, TaskType::DiscoveryEnumerate, 1).await.unwrap().remove(0);
    worker
        .stage_results(
            &packet.claim,
            0,
            results("f", domesday_model::ObjectStatus::Skipped, domesday_model::Reason::ReadError),
        )
        .await
        .unwrap();
    let evil = fleet.sql("worker", "second").await;
    for sql in [
        "SELECT claim_id FROM tasks",
        "SELECT claim_id FROM staged_findings",
        "SELECT claim_id FROM staged_objects",
        "SELECT id FROM worker_sessions",
        "UPDATE tasks SET status = 'COMPLETED' RETURNING 1",
    ] {
        assert_eq!(evil.query(sql, &[]).await.unwrap().len(), 0, "{sql}");
    }
    assert_eq!(evil.query("SELECT 1 FROM jobs", &[]).await.unwrap().len(), 1);
    // Revoked, it has nothing left, and its connections end.
    fleet.database.psql(&format!("SELECT revoke_login('{second}', NULL)"));
    assert!(evil.query("SELECT 1 FROM jobs", &[]).await.is_err());
    let evil = fleet.sql("worker", "second").await;
    assert_eq!(evil.query("SELECT 1 FROM jobs", &[]).await.unwrap().len(), 0);
    worker.complete_task(&packet.claim).await.unwrap();
}
