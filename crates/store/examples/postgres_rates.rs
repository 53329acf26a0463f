//! How fast the PostgreSQL book takes records and gives out tasks, and what it writes for each object.
//!
//! `cargo run --release -p domesday-store --example postgres_rates -- postgresql://… [ingest|claims|footprint …]`,
//! on an empty database of a server that is set up as in production. Prints one line a measurement: `name value
//! unit`. A machine is as fast as it is at the moment, so each rate is beside the one it is to be compared with,
//! and each ratio is of one run.
#![allow(clippy::unwrap_used, reason = "a measurement fails by panicking")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use domesday_model::{
    DatasourceSpec, JobConfiguration, MasterJobId, ObjectKey, ProcessId, RecordKind, Retries, RuleSetHash,
    ScanOptions, TaskType, UnitRecord, VersionMarks,
};
use domesday_store::postgres::{Options, PostgresStore};
use domesday_store::{
    Claim, Completion, ComposerStore, FanOutPolicy, JobLease, LeaseStore, NewMasterJob, OrchestratorStore,
    Process, ResultBatch, Role, StageBatch, TaskTotals, UnitListing, WorkerStore,
};
use tokio_postgres::binary_copy::BinaryCopyInWriter;
use tokio_postgres::types::{ToSql, Type};

const GROUP: &str = "main";
const LEASE: Duration = Duration::from_secs(3_600);
const FLUSH: FanOutPolicy = FanOutPolicy { ready_low: u32::MAX };

/// How often each way of writing records is measured; the best of each counts.
const INGEST_ROUNDS: usize = 3;
/// Records that each way writes in a round.
const INGEST_RECORDS: usize = 409_600;
/// Records of one container, and of one batch of a large one.
const RECORDS_PER_UNIT: usize = 1_024;
const RECORDS_PER_BATCH: usize = 8_192;

/// Tasks claimed and completed at once, how many there are of them, and the workers that do so.
const CLAIMS: [(u32, usize, u8); 5] =
    [(1, 1_500, 1), (1, 3_000, 4), (64, 20_000, 1), (64, 20_000, 4), (256, 20_000, 4)];

/// The job whose rows and bytes are counted.
const FOLDERS: usize = 2_000;
const FILES_PER_FOLDER: usize = 100;
/// Containers listed before they are committed together.
const FOLDERS_PER_COMMIT: usize = 64;
/// Packets a worker claims, and completes, at once.
const PACKETS_AT_ONCE: u32 = 16;

#[tokio::main]
async fn main() {
    let url = std::env::args().nth(1).expect("the URL of an empty database");
    let only: Vec<String> = std::env::args().skip(2).collect();
    let wanted = |name: &str| only.is_empty() || only.iter().any(|one| one == name);
    if wanted("ingest") {
        ingest(&url).await;
    }
    if wanted("claims") {
        claims(&url).await;
    }
    if wanted("footprint") {
        footprint(&url).await;
    }
}

fn print(name: &str, value: f64, unit: &str) {
    let decimals = if value >= 100.0 { 0 } else { 3 };
    println!("{name} {value:.decimals$} {unit}");
}

async fn open(url: &str) -> Arc<PostgresStore> {
    Arc::new(PostgresStore::connect(url, Options::default()).await.unwrap())
}

/// A session beside the store.
async fn session(url: &str) -> tokio_postgres::Client {
    let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

// ── a job ──────────────────────────────────────────────────────────────────────────────────────────

struct Job {
    store: Arc<PostgresStore>,
    lease: JobLease,
    number: u8,
}

impl Job {
    /// A running job with its root task.
    async fn start(store: &Arc<PostgresStore>, number: u8) -> Job {
        let source = DatasourceSpec {
            name: format!("source {number}"),
            kind: "filesystem".to_owned(),
            node_group: GROUP.to_owned(),
            configuration: serde_json::json!({}),
            concurrency_limit: None,
            worker_label: None,
            credential: None,
        };
        let configuration = JobConfiguration {
            datasources: vec![source],
            rule_set: RuleSetHash([0; 16]).to_string(),
            options: ScanOptions::default(),
            fingerprint_key: String::new(),
            engine_version: 0,
            incremental: false,
            configuration: None,
        };
        let request = NewMasterJob {
            id: MasterJobId([number; 16]),
            request_key: [number; 16],
            description: String::new(),
            template: None,
            priority: 0,
            configuration,
        };
        store.submit(request).await.unwrap();
        let orchestrator = register(store, number, 0, Role::Orchestrator).await;
        let lease = store.claim_job(orchestrator, GROUP, LEASE).await.unwrap().unwrap().lease;
        store.start_sessions(&lease).await.unwrap();
        Job { store: Arc::clone(store), lease, number }
    }

    async fn worker(&self, worker: u8) -> ProcessId {
        register(&self.store, self.number, worker, Role::Worker).await
    }

    async fn root(&self) -> Claim {
        let lister = self.worker(u8::MAX).await;
        self.store.claim_tasks(lister, GROUP, TaskType::DiscoveryEnumerate, 1).await.unwrap()[0].claim
    }

    async fn end(self) {
        self.store
            .complete_job(&self.lease, Retries::NONE)
            .await
            .unwrap()
            .expect("nothing is left of the job");
    }
}

async fn register(store: &PostgresStore, job: u8, number: u8, role: Role) -> ProcessId {
    let mut id = [0; 16];
    (id[0], id[1], id[2]) = (job, number, role as u8);
    let mut process = Process::new(ProcessId(id), role, GROUP);
    process.profile.fingerprint_key = Some(String::new());
    store.register(&process, LEASE).await.unwrap();
    process.id
}

fn file(at: usize, size: u64) -> UnitRecord {
    UnitRecord {
        kind: RecordKind::File,
        name: format!("a file name of usual length {at}.txt").into_bytes(),
        size,
        marks: VersionMarks { mtime_ns: 1, ctime_ns: 2, inode: at as u64, tag: None },
        reason: None,
        metadata: None,
    }
}

fn files(count: usize) -> Vec<UnitRecord> {
    (0..count).map(|at| file(at, 4_096)).collect()
}

fn listed(key: String, records: Vec<UnitRecord>) -> UnitListing {
    UnitListing::whole(ObjectKey::new(key.into_bytes()), records)
}

// ── ingest ─────────────────────────────────────────────────────────────────────────────────────────

/// Records a second through the verbs, beside a bare COPY of as many into the same table.
async fn ingest(url: &str) {
    let (store, client) = (open(url).await, session(url).await);
    let job = Job::start(&store, 1).await;
    let root = job.root().await;
    let [mut copy, mut units, mut staged] = [Duration::MAX; 3];
    for round in 0..INGEST_ROUNDS {
        copy = copy.min(bare_copy(&client, round).await);
        units = units.min(commit_units(&job, &root, round).await);
        staged = staged.min(stage_unit(&job, &root, round).await);
    }
    let rate = |time: Duration| INGEST_RECORDS as f64 / time.as_secs_f64();
    print("ingest_bare_copy", rate(copy), "records/s");
    for (name, time) in [("commit_units", units), ("stage_unit", staged)] {
        print(&format!("ingest_{name}"), rate(time), "records/s");
        print(&format!("ingest_{name}_of_bare_copy"), rate(time) / rate(copy), "ratio");
    }
    store.append_command(MasterJobId([1; 16]), domesday_model::Command::Cancel).await.unwrap();
    let cancelled = store.execute_commands(&job.lease).await.unwrap().unwrap();
    store.settle_job(&cancelled.lease).await.unwrap();
    for statement in ["TRUNCATE task_output_records", "VACUUM ANALYZE"] {
        client.batch_execute(statement).await.unwrap();
    }
}

/// The floor: the same rows, by COPY and nothing else.
async fn bare_copy(client: &tokio_postgres::Client, round: usize) -> Duration {
    const COPY: &str = "COPY task_output_records
            (unit_id, sequence, kind, name, object_key_hash, size, mtime_ns, ctime_ns, inode, reason)
        FROM STDIN (FORMAT binary)";
    let (long, short, bytes, text) = (Type::INT8, Type::INT2, Type::BYTEA, Type::TEXT);
    let types =
        [&long, &long, &short, &bytes, &bytes, &long, &long, &long, &long, &text].map(|kind| kind.clone());
    let begun = Instant::now();
    let records = files(RECORDS_PER_UNIT);
    let sink = client.copy_in(COPY).await.unwrap();
    let mut writer = std::pin::pin!(BinaryCopyInWriter::new(sink, &types));
    for unit in 0..INGEST_RECORDS / RECORDS_PER_UNIT {
        // Of no unit, so that nobody meets them.
        let unit = -1 - (round * INGEST_RECORDS + unit) as i64;
        for (sequence, record) in (0_i64..).zip(&records) {
            let hash = &ObjectKey::hash128(&record.name)[..];
            let (size, none) = (record.size.cast_signed(), None::<&str>);
            let row: [&(dyn ToSql + Sync); 10] =
                [&unit, &sequence, &0_i16, &record.name, &hash, &size, &1_i64, &2_i64, &sequence, &none];
            writer.as_mut().write(&row).await.unwrap();
        }
    }
    writer.finish().await.unwrap();
    begun.elapsed()
}

/// Containers that fit a batch, several a commit.
async fn commit_units(job: &Job, root: &Claim, round: usize) -> Duration {
    let listings: Vec<_> = (0..INGEST_RECORDS / RECORDS_PER_UNIT)
        .map(|unit| listed(format!("{round}/{unit}"), files(RECORDS_PER_UNIT)))
        .collect();
    let begun = Instant::now();
    for units in listings.chunks(RECORDS_PER_BATCH / RECORDS_PER_UNIT) {
        job.store.commit_units(root, units.to_vec()).await.unwrap();
    }
    begun.elapsed()
}

/// One container of many batches.
async fn stage_unit(job: &Job, root: &Claim, round: usize) -> Duration {
    let key = ObjectKey::new(format!("{round}/large").into_bytes());
    let begun = Instant::now();
    let mut unit = None;
    for first in (0..INGEST_RECORDS).step_by(RECORDS_PER_BATCH) {
        let batch = StageBatch {
            key: key.clone(),
            first_sequence: first as i64,
            records: files(RECORDS_PER_BATCH),
            targets: Vec::new(),
        };
        unit = Some(job.store.stage_unit(root, batch).await.unwrap());
    }
    job.store.commit_staged(root, unit.expect("there was a batch")).await.unwrap();
    begun.elapsed()
}

// ── claims ─────────────────────────────────────────────────────────────────────────────────────────

/// Empty tasks claimed and completed a second, in batches and one by one.
async fn claims(url: &str) {
    let store = open(url).await;
    let mut rates: Vec<(u32, f64)> = Vec::new();
    for (number, (batch, tasks, workers)) in (10..).zip(CLAIMS) {
        let rate = claim_rate(&store, number, batch, tasks, workers).await;
        print(&format!("claim_and_complete_batch_{batch}_workers_{workers}"), rate, "tasks/s");
        rates.push((batch, rate));
    }
    let best = |one: bool| rates.iter().filter(move |(batch, _)| (*batch == 1) == one).map(|(_, rate)| *rate);
    let (one, many) = (best(true).fold(0.0, f64::max), best(false).fold(0.0, f64::max));
    print("claim_and_complete_batches_of_single", many / one, "ratio");
}

async fn claim_rate(store: &Arc<PostgresStore>, number: u8, batch: u32, tasks: usize, workers: u8) -> f64 {
    let job = Job::start(store, number).await;
    let root = job.root().await;
    // Objects so large that each is a task.
    let objects = (0..tasks).map(|at| file(at, 1 << 30)).collect();
    store.complete_enumeration(&root, vec![listed(String::new(), objects)]).await.unwrap();
    store.fan_out(&job.lease, FLUSH).await.unwrap();
    let mut ready = Vec::new();
    for worker in 0..workers {
        ready.push(job.worker(worker).await);
    }
    let begun = Instant::now();
    let running: Vec<_> =
        ready.into_iter().map(|worker| tokio::spawn(work(Arc::clone(store), worker, batch))).collect();
    let mut done = 0;
    for worker in running {
        done += worker.await.unwrap();
    }
    let rate = done as f64 / begun.elapsed().as_secs_f64();
    assert_eq!(done, tasks);
    job.end().await;
    rate
}

/// Claims and completes until nothing is left; how many tasks.
async fn work(store: Arc<PostgresStore>, worker: ProcessId, batch: u32) -> usize {
    let mut done = 0;
    loop {
        let packets = store.claim_tasks(worker, GROUP, TaskType::Classification, batch).await.unwrap();
        if packets.is_empty() {
            return done;
        }
        let completions: Vec<_> = packets.iter().map(|packet| completion(packet.claim)).collect();
        for answer in store.complete_classifications(completions).await.unwrap() {
            answer.unwrap();
            done += 1;
        }
    }
}

fn completion(claim: Claim) -> Completion {
    Completion {
        claim,
        first_sequence: 0,
        batch: ResultBatch::default(),
        totals: TaskTotals::default(),
        untraced: Vec::new(),
        replaces: Vec::new(),
    }
}

// ── footprint ──────────────────────────────────────────────────────────────────────────────────────

/// What the server has written so far.
struct Written {
    inserted: i64,
    updated: i64,
    deleted: i64,
    wal: i64,
    stored: i64,
}

impl Written {
    /// Once every session of a store has ended, and with it has told what it did.
    async fn read(client: &tokio_postgres::Client) -> Written {
        const OTHERS: &str = "SELECT count(*) FROM pg_stat_activity
            WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()";
        const WRITTEN: &str = "SELECT sum(n_tup_ins)::bigint, sum(n_tup_upd)::bigint, sum(n_tup_del)::bigint,
            pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint, pg_database_size(current_database())
            FROM pg_stat_user_tables";
        while client.query_one(OTHERS, &[]).await.unwrap().get::<_, i64>(0) > 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let row = client.query_one(WRITTEN, &[]).await.unwrap();
        let [inserted, updated, deleted, wal, stored] = [0, 1, 2, 3, 4].map(|column| row.get(column));
        Written { inserted, updated, deleted, wal, stored }
    }
}

/// Rows and bytes that a job writes for each of its objects, none of which has findings.
async fn footprint(url: &str) {
    let client = session(url).await;
    let before = Written::read(&client).await;
    let begun = Instant::now();
    let store = open(url).await;
    let objects = whole_job(&store).await;
    let seconds = begun.elapsed().as_secs_f64();
    drop(store);
    let after = Written::read(&client).await;
    let each = |of: fn(&Written) -> i64| (of(&after) - of(&before)) as f64 / objects as f64;
    print("job_objects", objects as f64, "objects");
    print("job_objects_per_second", objects as f64 / seconds, "objects/s");
    print("rows_inserted_per_object", each(|written| written.inserted), "rows");
    print("rows_updated_per_object", each(|written| written.updated), "rows");
    print("rows_deleted_per_object", each(|written| written.deleted), "rows");
    print("wal_bytes_per_object", each(|written| written.wal), "bytes");
    print("stored_bytes_per_object", each(|written| written.stored), "bytes");
}

/// A job of many folders from its submission to its end; how many objects it had.
async fn whole_job(store: &Arc<PostgresStore>) -> usize {
    let job = Job::start(store, 100).await;
    let worker = job.worker(0).await;
    let folder = |at: usize| UnitRecord { kind: RecordKind::Directory, size: 0, ..file(at, 0) };
    let root = job.root().await;
    let folders = (0..FOLDERS).map(folder).collect();
    store.complete_enumeration(&root, vec![listed(String::new(), folders)]).await.unwrap();
    store.fan_out(&job.lease, FLUSH).await.unwrap();
    loop {
        let packets = store.claim_tasks(worker, GROUP, TaskType::DiscoveryEnumerate, 1).await.unwrap();
        let Some(packet) = packets.first() else { break };
        let keys = store.packet_containers(packet).await.unwrap();
        let listing = |key: ObjectKey| UnitListing::whole(key, files(FILES_PER_FOLDER));
        let mut units: Vec<_> = keys.into_iter().map(listing).collect();
        while units.len() > FOLDERS_PER_COMMIT {
            let rest = units.split_off(FOLDERS_PER_COMMIT);
            store.commit_units(&packet.claim, std::mem::replace(&mut units, rest)).await.unwrap();
        }
        store.complete_enumeration(&packet.claim, units).await.unwrap();
        store.fan_out(&job.lease, FanOutPolicy { ready_low: 0 }).await.unwrap();
    }
    store.fan_out(&job.lease, FLUSH).await.unwrap();
    let mut objects = 0;
    loop {
        let claimed = store.claim_tasks(worker, GROUP, TaskType::Classification, PACKETS_AT_ONCE).await;
        let packets = claimed.unwrap();
        if packets.is_empty() {
            break;
        }
        for packet in &packets {
            objects += store.packet_objects(packet).await.unwrap().len();
        }
        let completions = packets.iter().map(|packet| completion(packet.claim)).collect();
        for answer in store.complete_classifications(completions).await.unwrap() {
            answer.unwrap();
        }
    }
    job.end().await;
    objects
}
