//! What goes into the verbs and comes out of them: jobs, tasks, units and results here, what people set up and
//! look at in files of their own.

mod base;
mod configuring;
mod operating;
mod sessions;
mod tables;
mod targets;

use std::collections::BTreeMap;
use std::time::Duration;

use domesday_model::{
    ByTaskType, Category, ClaimId, Command, DatasourceId, EnumerationSessionId, FindingDraft, FindingId,
    Fingerprint, JobConfiguration, JobId, JobStatus, Location, MasterJobId, ObjectKey, ObjectReport,
    ObjectStatus, Origin, Position, ProcessId, Reason, RuleSetHash, ScanOptions, Score, Span, Suppressed,
    SuppressedBy, TableObservation, TargetDraft, TaskId, TaskPayload, TaskType, UnitId, UnitRecord,
    UnitStatus, VersionMarks,
};

use crate::error::StoreError;
pub use base::*;
pub use configuring::*;
pub use operating::*;
pub use sessions::*;
pub use tables::*;
pub use targets::*;

/// The right to write a task's results. Lost when the task is reaped, cancelled or done.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Claim {
    pub task: TaskId,
    pub claim: ClaimId,
}

/// The right to change a job. Lost with every change of its owner or status by someone else.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct JobLease {
    pub job: JobId,
    pub version: i64,
}

/// Which role a process plays; each has its own lease table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    Orchestrator,
    Worker,
}

/// A process start, as it announces itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Process {
    pub id: ProcessId,
    pub role: Role,
    pub node_group: String,
    pub profile: Profile,
}

/// What a process says of itself, beside who it is.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Profile {
    /// Where it runs, for people: host name and process id.
    pub host: String,
    /// Which version it is.
    pub version: String,
    /// Tasks it scans at once.
    pub slots: u32,
    /// `key=value`; data sources may ask for one.
    pub labels: Vec<String>,
    /// Id of the fingerprint key it has. A worker gets tasks of jobs with this very key, and without one none.
    pub fingerprint_key: Option<String>,
}

impl Process {
    pub fn new(id: ProcessId, role: Role, node_group: impl Into<String>) -> Process {
        Process { id, role, node_group: node_group.into(), profile: Profile::default() }
    }
}

/// What a process does at the moment, told with each renewal of its lease.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Load {
    /// Tasks it holds.
    pub running: u32,
    /// Since its start.
    pub objects: u64,
    pub bytes: u64,
    pub findings: u64,
    /// Since the last renewal.
    pub objects_per_second: u64,
    pub bytes_per_second: u64,
}

/// The user's request. Submitting it again under the same id changes nothing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewMasterJob {
    pub id: MasterJobId,
    /// Hash of targets, rules and options.
    pub request_key: [u8; 16],
    /// One line for people, such as the targets.
    pub description: String,
    /// The template it was composed from.
    pub template: Option<String>,
    /// Jobs of a higher priority are claimed first.
    pub priority: i64,
    pub configuration: JobConfiguration,
}

/// A child job this orchestrator owns.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OwnedJob {
    pub lease: JobLease,
    pub master_job: MasterJobId,
    pub status: JobStatus,
    pub pending: Vec<Command>,
}

/// A claimed task with all that is needed to run it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WorkPacket {
    pub claim: Claim,
    pub job: JobId,
    pub session: EnumerationSessionId,
    pub task_type: TaskType,
    pub payload: TaskPayload,
    pub datasource: PacketDatasource,
    pub rule_set: RuleSetHash,
    pub options: ScanOptions,
    /// How often this task failed before, for back-off.
    pub failures: u32,
    /// What unchanged objects are known from; `None`: everything is to be read.
    pub base: Option<Base>,
    /// Its objects were read before in this job: what came of them then is to be replaced.
    pub reads_again: bool,
}

/// The data source of a work packet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PacketDatasource {
    pub id: DatasourceId,
    pub name: String,
    pub kind: String,
    pub configuration: serde_json::Value,
    /// Where the secret is that opens it.
    pub credential: Option<String>,
}

/// A container that a task has already begun or finished: its last page.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnitState {
    pub unit: UnitId,
    pub key: ObjectKey,
    /// From 0 on; the next one to list is the one behind it.
    pub page: i64,
    pub status: UnitStatus,
    /// Records of this page.
    pub records: i64,
    /// Where the next page begins; `None` of a container that has ended, or that is staged.
    pub resume_point: Option<String>,
}

impl UnitState {
    /// Whether nothing of the container is left to list.
    pub fn is_ended(&self) -> bool {
        self.status != UnitStatus::Staging && self.resume_point.is_none()
    }
}

/// A container listed whole, a page of one, or the failure of either.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnitListing {
    pub key: ObjectKey,
    /// Which page of the container this is, from 0 on. The page before it is committed, and was not the last.
    pub page: i64,
    pub outcome: UnitOutcome,
    /// Where the next page begins; `None` ends the container.
    pub resume_point: Option<String>,
    /// Real things that the listing came upon.
    pub targets: Vec<TargetDraft>,
}

impl UnitListing {
    /// A container that came whole.
    pub fn whole(key: ObjectKey, records: Vec<UnitRecord>) -> UnitListing {
        let outcome = UnitOutcome::Listed(records);
        UnitListing { key, page: 0, outcome, resume_point: None, targets: Vec::new() }
    }

    /// A container that cannot be listed, from this page on.
    pub fn failed(key: ObjectKey, page: i64, reason: Reason, detail: impl Into<String>) -> UnitListing {
        let outcome = UnitOutcome::Failed { reason, detail: detail.into() };
        UnitListing { key, page, outcome, resume_point: None, targets: Vec::new() }
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum UnitOutcome {
    Listed(Vec<UnitRecord>),
    Failed { reason: Reason, detail: String },
}

/// Part of a container too large for one batch. `first_sequence` makes a repeated batch harmless.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StageBatch {
    pub key: ObjectKey,
    pub first_sequence: i64,
    pub records: Vec<UnitRecord>,
    /// Real things that the listing came upon.
    pub targets: Vec<TargetDraft>,
}

/// Results of classification, staged under (task, claim).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ResultBatch {
    pub findings: Vec<FindingDraft>,
    pub objects: Vec<ObjectReport>,
    pub tables: Vec<TableObservation>,
    /// Which version of each object with findings was read, by its key.
    pub versions: BTreeMap<ObjectKey, VersionMarks>,
}

impl ResultBatch {
    pub fn len(&self) -> usize {
        self.findings.len() + self.objects.len() + self.tables.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// What a completed classification task read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TaskTotals {
    /// Objects of the packet, whatever became of them.
    pub objects: u64,
    /// Objects found inside them.
    pub nested: u64,
    pub bytes: u64,
}

/// A classification task that is done, with the last of its results.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Completion {
    pub claim: Claim,
    /// Refused with [`StoreError::Gap`] unless exactly so many results are staged before these.
    pub first_sequence: u64,
    pub batch: ResultBatch,
    pub totals: TaskTotals,
    /// Objects with findings whose origin is to be looked up, for kinds of source that trace it. What is known
    /// already is not looked up again.
    pub untraced: Vec<ObjectKey>,
    /// Objects that an earlier task of the job read: these results take the place of that task's, unless it had got
    /// farther.
    pub replaces: Vec<ObjectKey>,
}

/// What to do with a task that could not be finished.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum GiveBack {
    /// The worker stops; the task is as good as never claimed.
    Returned,
    /// It failed, and may succeed later.
    Retry { error: String, after: Duration },
    /// The source asks to be left alone for a while: nothing failed, and the session waits until then.
    Wait { after: Duration, why: String },
    /// The source does not answer: an attempt has failed, and the session waits until the next one. What was
    /// committed stays.
    Unavailable { error: String, after: Duration },
    /// It failed for good; what it left undone is named as failed.
    Failed { error: String },
}

/// How eagerly the pipeliner cuts packs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FanOutPolicy {
    /// A pack that is not full is cut, too, while fewer tasks of its type than this are pending.
    pub ready_low: u32,
}

/// What one fan-out did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FanOutReport {
    pub units: u64,
    /// Tasks made.
    pub tasks: ByTaskType<u64>,
}

/// What one pass of the task reaper did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ReapReport {
    pub returned: u64,
    pub split: u64,
    /// Single objects or containers given up as a named failure.
    pub poisoned: u64,
}

/// A domain event.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Event {
    pub id: i64,
    pub job: JobId,
    pub kind: String,
    pub payload: serde_json::Value,
}

/// A master job with what can be said of it at a glance.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MasterJob {
    pub id: MasterJobId,
    pub description: String,
    /// Derived from the child jobs.
    pub status: JobStatus,
    pub failure_reason: Option<String>,
    pub created_at_ms: i64,
    pub finished_at_ms: Option<i64>,
}

/// Everything a report's summary says, folded from the book.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct JobSummary {
    /// Objects listed and to be read.
    pub objects_listed: u64,
    /// Bytes of these, by their listed size.
    pub bytes_listed: u64,
    /// Objects that are as they were when they were last scanned, and clean: not read again.
    pub objects_unchanged: u64,
    /// Containers listed; of those that come in pages, their pages.
    pub units: u64,
    /// Objects of completed classification tasks.
    pub objects_done: u64,
    /// Objects found inside those.
    pub nested_done: u64,
    pub bytes_done: u64,
    /// Left out at listing or at reading: (reason, how many).
    pub skipped: Vec<(Reason, u64)>,
    /// Recognised and not read: (format, how many), by the name of the format.
    pub unsupported: Vec<(String, u64)>,
    /// Read in part.
    pub partial: Vec<(Reason, u64)>,
    /// Not read, containers included.
    pub failed: Vec<(Reason, u64)>,
    /// Occurrences beyond the cap.
    pub overflow: u64,
    /// Occurrences that would be reported without it, by control.
    pub suppressed: Vec<(SuppressedBy, u64)>,
    pub tasks_failed: u64,
    pub tasks_open: u64,
}

/// One reported occurrence of a finding.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Occurrence {
    pub finding: FindingId,
    pub datasource: DatasourceId,
    pub location: Location,
    pub rule: String,
    pub category: Category,
    pub score: Score,
    pub reasons: String,
    pub fingerprint: Fingerprint,
    pub preview: String,
    pub span: Span,
    pub position: Position,
    pub decoding: Vec<String>,
    /// The row it is in, for a table: its primary key, or its number.
    pub row: Option<Box<str>>,
    /// Where the object came from, if that was looked up.
    pub origin: Option<Origin>,
    /// Present exactly if a control keeps it out of reports.
    pub suppressed: Option<Suppressed>,
}

/// Which occurrences to read.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct OccurrenceFilter {
    pub min_score: Option<Score>,
    pub rule: Option<String>,
    pub category: Option<Category>,
    /// Also those that a control keeps out of reports.
    pub with_suppressed: bool,
}

/// Occurrences as they are read, a bounded number ahead of the reader.
pub type OccurrenceStream = tokio::sync::mpsc::Receiver<Result<Occurrence, StoreError>>;

/// An object or container that was not scanned whole, by name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Problem {
    pub datasource: DatasourceId,
    pub location: Location,
    pub status: ObjectStatus,
    pub reason: Option<Reason>,
    pub detail: String,
    /// Where the object came from, for kinds of source whose keys do not tell.
    pub origin: Option<Origin>,
}

/// A data source as the book has it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Datasource {
    pub id: DatasourceId,
    pub name: String,
    pub kind: String,
    pub configuration: serde_json::Value,
}
