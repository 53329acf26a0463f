//! What is SQLite's own: its statements, migrations, the state folder, the writer, and crashes.

mod crash;
mod folder;
mod migrations;
mod rows;
mod statements;
mod writer;

use std::process::Command;

use domesday_model::{
    DatasourceSpec, JobConfiguration, MasterJobId, ObjectKey, ProcessId, RecordKind, RuleSetHash,
    ScanOptions, TaskType, UnitRecord, VersionMarks,
};

use super::*;
use crate::clock::ManualClock;
use crate::types::*;
use crate::verbs::Store;

const GROUP: &str = "main";
const LEASE: std::time::Duration = std::time::Duration::from_secs(30);
const MASTER: MasterJobId = MasterJobId([1; 16]);

fn options() -> Options {
    Options { clock: Arc::new(ManualClock::new(1_700_000_000_000)), ..Options::default() }
}

fn open(folder: &Path) -> SqliteStore {
    SqliteStore::open(folder, options()).unwrap()
}

/// What every test submits: one source, one job.
fn request(id: MasterJobId) -> NewMasterJob {
    let source = DatasourceSpec {
        name: "a".to_owned(),
        kind: "filesystem".to_owned(),
        node_group: GROUP.to_owned(),
        configuration: serde_json::json!({}),
        concurrency_limit: None,
    };
    let configuration = JobConfiguration {
        datasources: vec![source],
        rule_set: RuleSetHash([0; 16]).to_string(),
        options: ScanOptions::default(),
        fingerprint_key: "0a1b2c3d".to_owned(),
    };
    NewMasterJob { id, request_key: [0; 16], description: "a job".to_owned(), configuration }
}

fn files(prefix: &str, count: usize) -> Vec<UnitRecord> {
    let file = |i| UnitRecord {
        kind: RecordKind::File,
        name: format!("{prefix}{i}").into_bytes(),
        size: 1,
        marks: VersionMarks::default(),
        reason: None,
    };
    (0..count).map(file).collect()
}

fn listed(key: &str, records: Vec<UnitRecord>) -> UnitListing {
    UnitListing { key: ObjectKey::new(key.as_bytes()), outcome: UnitOutcome::Listed(records) }
}

/// Submits a job, claims it, and claims its root task.
async fn root(store: &SqliteStore) -> (JobLease, ProcessId, Claim) {
    let (orchestrator, worker) = (ProcessId([2; 16]), ProcessId([3; 16]));
    for (id, role) in [(orchestrator, Role::Orchestrator), (worker, Role::Worker)] {
        store.register(&Process { id, role, node_group: GROUP.to_owned() }, LEASE).await.unwrap();
    }
    store.submit(request(MASTER)).await.unwrap();
    let lease = store.claim_job(orchestrator, GROUP, LEASE).await.unwrap().unwrap().lease;
    store.start_sessions(&lease).await.unwrap();
    (lease, worker, claim(store, worker, TaskType::DiscoveryEnumerate).await)
}

async fn claim(store: &SqliteStore, worker: ProcessId, task_type: TaskType) -> Claim {
    store.claim_tasks(worker, GROUP, task_type, 1).await.unwrap()[0].claim
}

/// This test binary again, to run one of its ignored tests in a process of its own.
fn child(program: &Path, test: &str, folder: &Path) -> Command {
    let mut command = Command::new(program);
    command.args(["--ignored", "--exact", test]).env(FOLDER, folder);
    command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
    command
}

/// Tells a child which state folder to use.
const FOLDER: &str = "STORE_TEST_FOLDER";

/// The folder a child was told to use.
fn childs_folder() -> std::path::PathBuf {
    std::env::var_os(FOLDER).expect("the parent names the folder").into()
}
