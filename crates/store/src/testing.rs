//! What the backends' own tests begin with: one request, a running job, its root task.

use std::sync::Arc;
use std::time::Duration;

use domesday_model::{
    Category, DatasourceSpec, FindingDraft, Fingerprint, JobConfiguration, Location, MasterJobId, ObjectKey,
    ObjectReport, ObjectStatus, Position, ProcessId, Reason, RecordKind, RuleSetHash, ScanOptions, Score,
    Span, TableObservation, TableShape, TaskType, UnitRecord, VersionMarks,
};

use crate::queries::statements;
use crate::roles::Store;
use crate::types::*;

pub(crate) const GROUP: &str = "main";
pub(crate) const LEASE: Duration = Duration::from_secs(30);
pub(crate) const KEY: &str = "0a1b2c3d";
pub(crate) const MASTER: MasterJobId = MasterJobId([1; 16]);

/// What every test submits: one source, one job.
pub(crate) fn request(id: MasterJobId) -> NewMasterJob {
    let source = DatasourceSpec {
        name: "a".to_owned(),
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
        fingerprint_key: KEY.to_owned(),
        engine_version: 1,
        incremental: false,
        configuration: None,
    };
    NewMasterJob {
        id,
        request_key: [0; 16],
        description: "a job".to_owned(),
        template: None,
        priority: 0,
        configuration,
    }
}

/// A process with the key of [`request`]'s jobs.
pub(crate) fn process(id: ProcessId, role: Role) -> Process {
    let profile = Profile { fingerprint_key: Some(KEY.to_owned()), ..Profile::default() };
    Process { profile, ..Process::new(id, role, GROUP) }
}

pub(crate) fn files(prefix: &str, count: usize) -> Vec<UnitRecord> {
    let file = |i| UnitRecord {
        kind: RecordKind::File,
        name: format!("{prefix}{i}").into_bytes(),
        size: 1,
        marks: VersionMarks::default(),
        reason: None,
        metadata: None,
    };
    (0..count).map(file).collect()
}

pub(crate) fn listed(key: &str, records: Vec<UnitRecord>) -> UnitListing {
    UnitListing::whole(ObjectKey::new(key.as_bytes()), records)
}

/// Submits a job, claims it, and claims its root task.
pub(crate) async fn root(store: &dyn Store) -> (JobLease, ProcessId, Claim) {
    let (orchestrator, worker) = (ProcessId([2; 16]), ProcessId([3; 16]));
    for (id, role) in [(orchestrator, Role::Orchestrator), (worker, Role::Worker)] {
        store.register(&process(id, role), LEASE).await.unwrap();
    }
    store.submit(request(MASTER)).await.unwrap();
    let lease = store.claim_job(orchestrator, GROUP, LEASE).await.unwrap().unwrap().lease;
    store.start_sessions(&lease).await.unwrap();
    (lease, worker, claim(store, worker, TaskType::DiscoveryEnumerate).await)
}

pub(crate) async fn claim(store: &dyn Store, worker: ProcessId, task_type: TaskType) -> Claim {
    store.claim_tasks(worker, GROUP, task_type, 1).await.unwrap()[0].claim
}

/// The task of this claim, done without a result.
pub(crate) fn completion(claim: Claim) -> Completion {
    Completion {
        claim,
        first_sequence: 0,
        batch: ResultBatch::default(),
        totals: TaskTotals::default(),
        untraced: Vec::new(),
        replaces: Vec::new(),
    }
}

/// A secret at the beginning of this object.
pub(crate) fn finding(key: &str) -> FindingDraft {
    FindingDraft {
        location: Arc::new(Location { key: ObjectKey::new(key.as_bytes()), nested: Vec::new() }),
        rule: "rule".into(),
        category: Category::Secret,
        score: Score(90),
        reasons: String::new(),
        fingerprint: Fingerprint([5; 16]),
        preview: "****".to_owned(),
        span: Span { start: 0, end: 9 },
        position: Position { line: 1, column: 1 },
        decoding: Arc::from([]),
        row: None,
        suppressed: None,
    }
}

/// One finding, what became of its object, and what was observed of a table.
pub(crate) fn results(key: &str, status: ObjectStatus, reason: Reason) -> ResultBatch {
    let finding = finding(key);
    let location = (*finding.location).clone();
    let table = TableObservation {
        table: location.clone(),
        part: location.key.clone(),
        shape: TableShape::default(),
        rows: 1,
        is_sample: true,
        sketches: vec![vec![1, 2, 3]],
    };
    let object = ObjectReport { location, status, reason: Some(reason), detail: String::new(), overflow: 0 };
    ResultBatch {
        findings: vec![finding],
        objects: vec![object],
        tables: vec![table],
        ..ResultBatch::default()
    }
}

/// Each statement of the files is named once, and named in a source.
pub(crate) fn check_names(files: &[&'static str], sources: &[&str]) {
    let mut names: Vec<_> = files.iter().flat_map(|file| statements(file)).map(|(name, _)| name).collect();
    let used = |name: &str| sources.iter().any(|source| source.contains(&format!("\"{name}\")")));
    let unused: Vec<_> = names.iter().filter(|name| !used(name)).collect();
    assert_eq!(unused, Vec::<&&str>::new());
    let all = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all, "a name twice would hide a statement");
}
