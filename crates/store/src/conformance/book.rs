//! What cases are written with: a book under test, jobs brought to where a case begins, and builders of
//! what goes into verbs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use domesday_model::{
    Category, Command, DatasourceSpec, FindingDraft, Fingerprint, FoundInPart, JobConfiguration, JobStatus,
    KeptOccurrence, Location, MasterJobId, ObjectCheckpoint, ObjectKey, ObjectReport, ObjectStatus, Origin,
    Position, ProcessId, Reason, RecordKind, Retries, RuleSetHash, ScanOptions, ScannedVersion, Score, Span,
    TableObservation, TaskType, UnitRecord, VersionMarks,
};

use super::Harness;
use crate::error::StoreError;
use crate::roles::Store;
use crate::types::*;

/// The node group of cases that need only one.
pub(super) const GROUP: &str = "main";
/// How long the processes of a case live without renewal.
pub(super) const LEASE: Duration = Duration::from_secs(30);
/// How long a task may go without progress.
pub(super) const DEADLINE: Duration = Duration::from_secs(600);
/// Cuts packs whether they are full or not.
pub(super) const FLUSH: FanOutPolicy = FanOutPolicy { ready_low: u32::MAX };
/// Cuts full packs only.
pub(super) const FULL_ONLY: FanOutPolicy = FanOutPolicy { ready_low: 0 };
/// Which fingerprint key jobs and processes of cases have.
pub(super) const KEY: &str = "0a1b2c3d";
pub(super) const RULES: RuleSetHash = RuleSetHash([7; 16]);

/// A process that may do everything.
pub(super) fn profile() -> Profile {
    Profile {
        host: "host:1".to_owned(),
        version: "0.0.0".to_owned(),
        slots: 2,
        labels: Vec::new(),
        fingerprint_key: Some(KEY.to_owned()),
    }
}

/// The book under test.
#[derive(Clone)]
pub struct Book {
    harness: Arc<dyn Harness>,
    ids: Arc<AtomicU64>,
}

impl Book {
    pub fn new(harness: Arc<dyn Harness>) -> Book {
        Book { harness, ids: Arc::new(AtomicU64::new(1)) }
    }

    pub(super) fn store(&self) -> Arc<dyn Store> {
        self.harness.store()
    }

    pub(super) async fn reopen(&self) {
        self.harness.reopen().await;
    }

    pub(super) fn advance(&self, by: Duration) {
        self.harness.advance(by);
    }

    pub(super) fn lose_answer(&self, verb: &'static str, committed: bool) {
        self.harness.lose_answer(verb, committed);
    }

    /// An id that this case has not used.
    pub(super) fn id(&self) -> [u8; 16] {
        u128::from(self.ids.fetch_add(1, Ordering::Relaxed)).to_be_bytes()
    }

    pub(super) async fn process(&self, role: Role, group: &str) -> ProcessId {
        self.process_with(role, group, profile()).await
    }

    pub(super) async fn process_with(&self, role: Role, group: &str, profile: Profile) -> ProcessId {
        let process = Process { profile, ..Process::new(ProcessId(self.id()), role, group) };
        self.store().register(&process, LEASE).await.unwrap();
        process.id
    }

    pub(super) async fn orchestrator(&self) -> ProcessId {
        self.process(Role::Orchestrator, GROUP).await
    }

    pub(super) async fn worker(&self) -> ProcessId {
        self.process(Role::Worker, GROUP).await
    }

    pub(super) async fn submit(&self, job: JobBuilder) -> MasterJobId {
        let job = job.build(MasterJobId(self.id()));
        let id = job.id;
        self.store().submit(job).await.unwrap();
        id
    }

    /// The next job of the main group, if there is one to claim.
    pub(super) async fn claim_job(&self, orchestrator: ProcessId) -> Option<OwnedJob> {
        self.store().claim_job(orchestrator, GROUP, LEASE).await.unwrap()
    }

    /// The next task of the main group, if there is one to claim.
    pub(super) async fn claim(&self, worker: ProcessId, task_type: TaskType) -> Option<WorkPacket> {
        self.store().claim_tasks(worker, GROUP, task_type, 1).await.unwrap().pop()
    }

    pub(super) async fn status(&self, master: MasterJobId) -> JobStatus {
        self.store().master_job(master).await.unwrap().unwrap().status
    }

    /// Submits a job of one group and brings it to RUNNING with its root tasks, and a worker ready.
    pub(super) async fn running(&self, job: JobBuilder) -> Running {
        let group = job.sources[0].node_group.clone();
        let master = self.submit(job).await;
        let orchestrator = self.process(Role::Orchestrator, &group).await;
        let owned = self.store().claim_job(orchestrator, &group, LEASE).await.unwrap().unwrap();
        assert_eq!((owned.master_job, owned.status), (master, JobStatus::Running));
        self.store().start_sessions(&owned.lease).await.unwrap();
        let worker = self.process(Role::Worker, &group).await;
        Running { book: self.clone(), group, master, orchestrator, lease: owned.lease, worker }
    }

    /// Completes one classification task.
    pub(super) async fn complete(
        &self,
        claim: &Claim,
        first_sequence: u64,
        batch: ResultBatch,
    ) -> Result<(), StoreError> {
        let completion = completion(claim, first_sequence, batch);
        let answers = self.store().complete_classifications(vec![completion]).await?;
        let [answer] = answers.try_into().expect("as many answers as tasks");
        answer
    }

    pub(super) async fn is_done(&self, claim: &Claim) -> bool {
        self.store().are_done(&[*claim]).await.unwrap() == [true]
    }

    /// All occurrences of a job.
    pub(super) async fn occurrences(&self, master: MasterJobId, filter: OccurrenceFilter) -> Vec<Occurrence> {
        let mut stream = self.store().occurrences(master, filter).await.unwrap();
        let mut all = Vec::new();
        while let Some(occurrence) = stream.recv().await {
            all.push(occurrence.unwrap());
        }
        all
    }

    /// What a job observed of tables.
    pub(super) async fn tables(&self, master: MasterJobId) -> Vec<TableObservation> {
        let mut all = Vec::new();
        for source in self.store().catalog_sources(Some(master)).await.unwrap() {
            let page = self.store().table_observations(&source, None, 1_000).await.unwrap();
            assert_eq!(page.next, None);
            all.extend(page.tables);
        }
        all
    }

    /// Everything that readers see of a job and its task.
    pub(super) async fn view(&self, master: MasterJobId, claim: &Claim) -> View {
        let store = self.store();
        View {
            status: self.status(master).await,
            summary: store.summary(master).await.unwrap(),
            problems: store.problems(master, 1_000).await.unwrap(),
            occurrences: self.occurrences(master, OccurrenceFilter::default()).await,
            tables: self.tables(master).await,
            units: store.task_units(claim).await.unwrap(),
            done: self.is_done(claim).await,
        }
    }
}

/// A classification task that is done, with the last of its results.
pub(super) fn completion(claim: &Claim, first_sequence: u64, batch: ResultBatch) -> Completion {
    let totals = TaskTotals::default();
    Completion { claim: *claim, first_sequence, batch, totals, untraced: Vec::new(), replaces: Vec::new() }
}

#[derive(PartialEq, Debug)]
pub(super) struct View {
    status: JobStatus,
    summary: JobSummary,
    problems: Vec<Problem>,
    occurrences: Vec<Occurrence>,
    tables: Vec<TableObservation>,
    units: Vec<UnitState>,
    done: bool,
}

/// A running job, its owner, and a worker.
pub(super) struct Running {
    pub book: Book,
    pub group: String,
    pub master: MasterJobId,
    pub orchestrator: ProcessId,
    pub lease: JobLease,
    pub worker: ProcessId,
}

impl Running {
    pub fn store(&self) -> Arc<dyn Store> {
        self.book.store()
    }

    pub async fn claim_by(&self, worker: ProcessId, task_type: TaskType) -> Option<WorkPacket> {
        self.store().claim_tasks(worker, &self.group, task_type, 1).await.unwrap().pop()
    }

    pub async fn enumeration(&self) -> WorkPacket {
        self.claim_by(self.worker, TaskType::DiscoveryEnumerate)
            .await
            .expect("an enumeration task is pending")
    }

    pub async fn classification(&self) -> WorkPacket {
        self.claim_by(self.worker, TaskType::Classification).await.expect("a classification task is pending")
    }

    /// Claims an enumeration task, commits these units under it, and completes it.
    pub async fn list(&self, units: Vec<UnitListing>) {
        let claim = self.enumeration().await.claim;
        self.store().commit_units(&claim, units).await.unwrap();
        self.store().complete_enumeration(&claim, Vec::new()).await.unwrap();
    }

    pub async fn fan_out(&self) -> FanOutReport {
        self.store().fan_out(&self.lease, FLUSH).await.unwrap()
    }

    /// Lists a root with these files, and claims the classification task they become.
    pub async fn classify(&self, files: &[&str]) -> WorkPacket {
        self.list(vec![listed("", files.iter().copied().map(file).collect())]).await;
        self.fan_out().await;
        self.classification().await
    }

    /// Finds something in each of these files, whose origin is to be looked up, and claims the task that does it.
    pub async fn trace(&self, files: &[&str]) -> WorkPacket {
        self.find_untraced(files).await;
        assert_eq!(self.fan_out().await.tasks[TaskType::Tracing], 1);
        self.claim_by(self.worker, TaskType::Tracing).await.expect("a tracing task is pending")
    }

    /// The same, without the task.
    pub async fn find_untraced(&self, files: &[&str]) {
        let packet = self.classify(files).await;
        let found = findings(files.iter().map(|file| finding(file, "r")).collect());
        let untraced = files.iter().map(|file| key(file)).collect();
        let done = Completion { untraced, ..completion(&packet.claim, 0, found) };
        let answers = self.store().complete_classifications(vec![done]).await.unwrap();
        assert!(matches!(answers[..], [Ok(())]), "{answers:?}");
    }

    /// Completes a classification task that found nothing.
    pub async fn complete(&self, packet: &WorkPacket) {
        self.book.complete(&packet.claim, 0, ResultBatch::default()).await.unwrap();
    }

    pub async fn complete_job(&self) -> Option<JobStatus> {
        self.store().complete_job(&self.lease, Retries::NONE).await.unwrap()
    }

    pub async fn command(&self, command: Command) {
        self.store().append_command(self.master, command).await.unwrap();
    }

    /// Appends a command and executes it; the lease follows.
    pub async fn execute(&mut self, command: Command) -> JobStatus {
        self.command(command).await;
        let job =
            self.store().execute_commands(&self.lease).await.unwrap().expect("the command changes the job");
        self.lease = job.lease;
        job.status
    }

    /// Lets every lease run out and the reaper pass; a new worker takes this one's place.
    pub async fn abandon(&mut self) -> ReapReport {
        self.book.advance(LEASE);
        self.worker = self.book.process(Role::Worker, &self.group).await;
        self.store().reap_tasks(&self.group, DEADLINE).await.unwrap()
    }
}

/// A request; one source in the main group unless said otherwise.
#[derive(Clone)]
pub(super) struct JobBuilder {
    pub sources: Vec<DatasourceSpec>,
    pub request_key: [u8; 16],
    pub description: String,
    pub rules: RuleSetHash,
    pub options: ScanOptions,
    pub engine_version: u32,
    pub incremental: bool,
}

/// A job with one data source of this name.
pub(super) fn job(source: &str) -> JobBuilder {
    let builder = JobBuilder {
        sources: Vec::new(),
        request_key: [1; 16],
        description: "a job".to_owned(),
        rules: RULES,
        options: ScanOptions::default(),
        engine_version: 1,
        incremental: false,
    };
    builder.source(source)
}

impl JobBuilder {
    pub fn source(mut self, name: &str) -> Self {
        self.sources.push(DatasourceSpec {
            name: name.to_owned(),
            kind: "filesystem".to_owned(),
            node_group: GROUP.to_owned(),
            configuration: serde_json::json!({ "path": name }),
            concurrency_limit: None,
            worker_label: None,
            credential: None,
        });
        self
    }

    /// Changes the source added last.
    pub fn with(mut self, change: impl FnOnce(&mut DatasourceSpec)) -> Self {
        change(self.sources.last_mut().expect("a builder has a source"));
        self
    }

    pub fn group(self, group: &str) -> Self {
        self.with(|source| source.node_group = group.to_owned())
    }

    pub fn limit(self, tasks: u32) -> Self {
        self.with(|source| source.concurrency_limit = Some(tasks))
    }

    pub fn request(mut self, key: u8) -> Self {
        self.request_key = [key; 16];
        self
    }

    pub fn build(self, id: MasterJobId) -> NewMasterJob {
        NewMasterJob {
            id,
            request_key: self.request_key,
            description: self.description,
            template: None,
            priority: 0,
            configuration: JobConfiguration {
                datasources: self.sources,
                rule_set: self.rules.to_string(),
                options: self.options,
                fingerprint_key: KEY.into(),
                engine_version: self.engine_version,
                incremental: self.incremental,
                configuration: None,
            },
        }
    }
}

pub(super) fn key(text: &str) -> ObjectKey {
    ObjectKey::new(text.as_bytes())
}

fn record(kind: RecordKind, name: &str, size: u64, reason: Option<Reason>) -> UnitRecord {
    let marks = VersionMarks { mtime_ns: 1, ctime_ns: 2, inode: u64::MAX, tag: None };
    UnitRecord { kind, name: name.as_bytes().to_vec(), size, marks, reason, metadata: None }
}

/// Bytes of a [`file`].
pub(super) const FILE_SIZE: u64 = 10;

pub(super) fn file(name: &str) -> UnitRecord {
    sized(name, FILE_SIZE)
}

pub(super) fn sized(name: &str, size: u64) -> UnitRecord {
    record(RecordKind::File, name, size, None)
}

pub(super) fn dir(name: &str) -> UnitRecord {
    record(RecordKind::Directory, name, 0, None)
}

pub(super) fn skipped(name: &str, reason: Reason) -> UnitRecord {
    record(RecordKind::Skipped, name, 0, Some(reason))
}

/// Files named `prefix0`, `prefix1` and so on.
pub(super) fn files(prefix: &str, count: usize) -> Vec<UnitRecord> {
    (0..count).map(|i| file(&format!("{prefix}{i}"))).collect()
}

pub(super) fn listed(container: &str, records: Vec<UnitRecord>) -> UnitListing {
    UnitListing::whole(key(container), records)
}

pub(super) fn failed(container: &str, reason: Reason, detail: &str) -> UnitListing {
    UnitListing::failed(key(container), 0, reason, detail)
}

pub(super) fn batch(container: &str, first_sequence: i64, records: Vec<UnitRecord>) -> StageBatch {
    StageBatch { key: key(container), first_sequence, records, targets: Vec::new() }
}

/// A finding of rule `rule` in `object`; the value is told by both.
pub(super) fn finding(object: &str, rule: &str) -> FindingDraft {
    FindingDraft {
        location: Arc::new(Location { key: key(object), nested: Vec::new() }),
        rule: rule.into(),
        category: Category::Secret,
        score: Score(90),
        reasons: "checksum; context".to_owned(),
        fingerprint: Fingerprint(ObjectKey::hash128(rule.as_bytes())),
        preview: "ab****z".to_owned(),
        span: Span { start: 4, end: 24 },
        position: Position { line: 2, column: 3 },
        decoding: Arc::from(["gzip".into(), "utf-16le".into()]),
        row: None,
        suppressed: None,
    }
}

/// The checkpoint of an object with this number.
pub(super) fn checkpoint(number: u32) -> ObjectCheckpoint {
    let kept = KeptOccurrence {
        score: Score(90),
        reasons: "checksum; \0 context".to_owned(),
        fingerprint: [0xff; 16],
        preview: "ab****\u{fffd}".to_owned(),
        span: (4, u64::MAX),
        position: (u64::from(number) + 1, 3),
        decoding: vec!["utf-16le".to_owned()],
    };
    ObjectCheckpoint {
        number,
        of: ScannedVersion {
            engine: 1,
            size: u64::MAX,
            marks: VersionMarks { mtime_ns: -1, ctime_ns: i64::MAX, inode: u64::MAX, tag: Some([7; 16]) },
        },
        offset: 1_000 * (u64::from(number) + 1),
        line: 7,
        column: 1,
        scanned: 1_000,
        found: vec![FoundInPart {
            rule: "r".to_owned(),
            suppressed: Some("mark".to_owned()),
            count: 3,
            kept: vec![kept],
        }],
    }
}

pub(super) fn report(object: &str, status: ObjectStatus, reason: Option<Reason>) -> ObjectReport {
    let location = Location { key: key(object), nested: Vec::new() };
    ObjectReport { location, status, reason, detail: format!("about {object}"), overflow: 0 }
}

/// An object of a format that is not read.
pub(super) fn unsupported(object: &str, format: &str) -> ObjectReport {
    let detail = format.to_owned();
    ObjectReport { detail, ..report(object, ObjectStatus::Unsupported, Some(Reason::UnsupportedFormat)) }
}

/// Where something came from; `commit` tells one from another.
pub(super) fn origin(commit: &str) -> Origin {
    Origin {
        path: Some(ObjectKey::new(*b"src/\xff\0")),
        commit: commit.to_owned(),
        author: "A <a@host>".to_owned(),
        time_ms: -5,
        is_abandoned: true,
    }
}

pub(super) fn findings(findings: Vec<FindingDraft>) -> ResultBatch {
    ResultBatch { findings, ..ResultBatch::default() }
}

pub(super) fn objects(objects: Vec<ObjectReport>) -> ResultBatch {
    ResultBatch { objects, ..ResultBatch::default() }
}
