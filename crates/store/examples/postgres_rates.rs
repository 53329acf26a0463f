//! How fast the PostgreSQL book takes records and gives out tasks, beside a bare COPY of the same rows.
//!
//! `cargo run --release -p domesday-store --example postgres_rates [postgresql://…]`; without a URL on a
//! server of its own, whose fsync is off. The database should be empty.
#![allow(clippy::unwrap_used, reason = "a measurement fails by panicking")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use domesday_model::{
    DatasourceSpec, JobConfiguration, MasterJobId, ObjectKey, ProcessId, RecordKind, RuleSetHash,
    ScanOptions, TaskType, UnitRecord, VersionMarks,
};
use domesday_store::postgres::{Options, PostgresStore};
use domesday_store::{
    FanOutPolicy, NewMasterJob, PACK_OBJECTS_MAX, Process, ResultBatch, Role, Store, TaskTotals, UnitListing,
    UnitOutcome,
};
use domesday_testkit::postgres::Server;
use tokio_postgres::binary_copy::BinaryCopyInWriter;
use tokio_postgres::types::Type;

const GROUP: &str = "main";
const LEASE: Duration = Duration::from_secs(3_600);
const UNITS: usize = 1_000;
const RECORDS_PER_UNIT: usize = PACK_OBJECTS_MAX as usize;
/// Units that share a commit.
const UNITS_PER_COMMIT: usize = 8;
const WORKERS: [u8; 3] = [1, 4, 8];
const CLAIMED_AT_ONCE: u32 = 16;

#[tokio::main]
async fn main() {
    let server = std::env::args().nth(1).is_none().then(|| Server::start(None));
    let url = match &server {
        Some(server) => server.create_database(),
        None => std::env::args().nth(1).unwrap(),
    };
    let store = Arc::new(PostgresStore::connect(&url, Options::default()).await.unwrap());
    copy(&url).await;
    for (number, workers) in (1..).zip(WORKERS) {
        scan(&store, number, workers).await;
    }
}

fn record(at: usize) -> UnitRecord {
    UnitRecord {
        kind: RecordKind::File,
        name: format!("a file name of usual length {at}.txt").into_bytes(),
        size: 4_096,
        marks: VersionMarks { mtime_ns: 1, ctime_ns: 2, inode: at as u64 },
        reason: None,
    }
}

fn report(what: &str, count: usize, begun: Instant) {
    let seconds = begun.elapsed().as_secs_f64();
    println!("{what}: {count} in {seconds:.2} s, {:.0} a second", count as f64 / seconds);
}

/// The floor: the same rows, by COPY and nothing else.
async fn copy(url: &str) {
    let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    client.batch_execute("CREATE TABLE copied (LIKE task_output_records INCLUDING ALL)").await.unwrap();
    let types = [
        Type::INT8,
        Type::INT8,
        Type::INT2,
        Type::BYTEA,
        Type::BYTEA,
        Type::INT8,
        Type::INT8,
        Type::INT8,
        Type::INT8,
        Type::TEXT,
    ];
    let begun = Instant::now();
    let sink = client.copy_in("COPY copied FROM STDIN (FORMAT binary)").await.unwrap();
    let mut writer = std::pin::pin!(BinaryCopyInWriter::new(sink, &types));
    for at in 0..UNITS * RECORDS_PER_UNIT {
        let record = record(at);
        let hash = ObjectKey::hash128(&record.name).to_vec();
        let (unit, sequence) = ((at / RECORDS_PER_UNIT) as i64, (at % RECORDS_PER_UNIT) as i64);
        let none: Option<&str> = None;
        let row: [&(dyn tokio_postgres::types::ToSql + Sync); 10] =
            [&unit, &sequence, &0_i16, &record.name, &hash, &4_096_i64, &1_i64, &2_i64, &sequence, &none];
        writer.as_mut().write(&row).await.unwrap();
    }
    writer.finish().await.unwrap();
    report("records by bare COPY", UNITS * RECORDS_PER_UNIT, begun);
    client.batch_execute("DROP TABLE copied").await.unwrap();
}

async fn register(store: &PostgresStore, id: [u8; 16], role: Role) -> ProcessId {
    let process = Process { id: ProcessId(id), role, node_group: GROUP.to_owned() };
    store.register(&process, LEASE).await.unwrap();
    process.id
}

/// A job of many units: how fast they are committed, and how fast workers claim and complete what they
/// become.
async fn scan(store: &Arc<PostgresStore>, number: u8, workers: u8) {
    let source = DatasourceSpec {
        name: format!("source {number}"),
        kind: "filesystem".to_owned(),
        node_group: GROUP.to_owned(),
        configuration: serde_json::json!({}),
        concurrency_limit: None,
    };
    let configuration = JobConfiguration {
        datasources: vec![source],
        rule_set: RuleSetHash([0; 16]).to_string(),
        options: ScanOptions::default(),
        fingerprint_key: String::new(),
    };
    let id = MasterJobId([number; 16]);
    let job = NewMasterJob { id, request_key: [number; 16], description: String::new(), configuration };
    store.submit(job).await.unwrap();
    let orchestrator = register(store, [number; 16], Role::Orchestrator).await;
    let lease = store.claim_job(orchestrator, GROUP, LEASE).await.unwrap().unwrap().lease;
    store.start_sessions(&lease).await.unwrap();
    let lister = register(store, [100 + number; 16], Role::Worker).await;
    let root = store.claim_tasks(lister, GROUP, TaskType::DiscoveryEnumerate, 1).await.unwrap()[0].claim;
    let listing = |unit: usize| UnitListing {
        key: ObjectKey::new(format!("folder {unit}").into_bytes()),
        outcome: UnitOutcome::Listed((0..RECORDS_PER_UNIT).map(record).collect()),
    };
    let begun = Instant::now();
    for first in (0..UNITS).step_by(UNITS_PER_COMMIT) {
        let units = (first..UNITS.min(first + UNITS_PER_COMMIT)).map(listing).collect();
        store.commit_units(&root, units).await.unwrap();
    }
    report("records by commit_units", UNITS * RECORDS_PER_UNIT, begun);
    store.complete_enumeration(&root).await.unwrap();
    let begun = Instant::now();
    store.fan_out(&lease, FanOutPolicy { ready_low: u32::MAX }).await.unwrap();
    report("units fanned out", UNITS, begun);
    let begun = Instant::now();
    let mut running = Vec::new();
    for worker in 0..workers {
        let id =
            register(store, [number, worker, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9], Role::Worker).await;
        running.push(tokio::spawn(work(Arc::clone(store), id)));
    }
    let mut done = 0;
    for worker in running {
        done += worker.await.unwrap();
    }
    report(&format!("empty tasks claimed and completed by {workers}"), done, begun);
    store.complete_job(&lease).await.unwrap().unwrap();
}

async fn work(store: Arc<PostgresStore>, worker: ProcessId) -> usize {
    let mut done = 0;
    loop {
        let packets =
            store.claim_tasks(worker, GROUP, TaskType::Classification, CLAIMED_AT_ONCE).await.unwrap();
        if packets.is_empty() {
            return done;
        }
        for packet in packets {
            let (none, totals) = (ResultBatch::default(), TaskTotals::default());
            store.complete_classification(&packet.claim, 0, none, totals).await.unwrap();
            done += 1;
        }
    }
}
