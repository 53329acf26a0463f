//! Tasks: what a new one is, what a claimed one is handed out with, and what becomes of one whose worker is gone.

use std::collections::{BTreeMap, HashSet};

use domesday_model::{
    ClaimId, DatasourceId, EnumerationSessionId, JobConfiguration, JobId, Leaves, ListedObject, Location,
    ObjectKey, ObjectReport, ObjectStatus, Reason, RecordKind, Takes, TaskId, TaskPayload, TaskType,
};

use crate::error::StoreError;
use crate::types::*;
use crate::values::damaged;

type Result<T> = std::result::Result<T, StoreError>;

/// A task abandoned this often is split in half, if it has two halves.
const SPLIT_AFTER_ABANDONMENTS: i64 = 2;
/// A task of one object or container abandoned this often is given up as a named failure.
const POISON_AFTER_ABANDONMENTS: i64 = 5;
/// And this often if its worker never held it alone.
const POISON_IN_COMPANY_AFTER_ABANDONMENTS: i64 = 12;
/// What the halves of a split task start with: the next time their worker ends, they are split again.
const ABANDONMENTS_AFTER_SPLIT: i64 = SPLIT_AFTER_ABANDONMENTS - 1;

/// Between the times at which tasks that a worker left behind together are given out again; doubled with each
/// further time.
const APART_MS: i64 = 500;
/// Doublings of it, at most.
const APART_DOUBLINGS_MAX: i64 = 8;

/// What the holder of a claim may write to.
#[derive(Clone, Copy)]
pub(crate) struct FencedTask {
    pub job: JobId,
    pub session: EnumerationSessionId,
    pub datasource: DatasourceId,
    /// Whose units these are: the task itself, or the one it was split from.
    pub origin: TaskId,
}

/// A task to be inserted.
pub(crate) struct NewTask {
    pub job: JobId,
    pub datasource: DatasourceId,
    pub session: EnumerationSessionId,
    pub origin: Option<TaskId>,
    pub task_type: TaskType,
    pub priority: i64,
    pub payload: TaskPayload,
    pub abandonments: i64,
    /// Attempts at what it covers that failed before.
    pub failures: i64,
    /// Before which nobody claims it, from now; with what it waits for.
    pub wait_ms: i64,
    pub why: Option<String>,
}

impl NewTask {
    /// The task a session begins with: the root of its source.
    pub fn root(job: JobId, datasource: DatasourceId, session: EnumerationSessionId) -> NewTask {
        NewTask {
            job,
            datasource,
            session,
            origin: None,
            task_type: TaskType::ROOT,
            priority: 0,
            payload: TaskPayload::PathsToScan(vec![ObjectKey::default()]),
            abandonments: 0,
            failures: 0,
            wait_ms: 0,
            why: None,
        }
    }

    /// The task a session ends with, where there is something to trace.
    pub fn tracing(job: JobId, datasource: DatasourceId, session: EnumerationSessionId) -> NewTask {
        NewTask {
            task_type: TaskType::Tracing,
            payload: TaskPayload::UntracedObjects,
            ..NewTask::root(job, datasource, session)
        }
    }
}

/// A row of a task that was just claimed.
pub(crate) struct Claimed {
    pub claim: Claim,
    pub job: JobId,
    pub session: EnumerationSessionId,
    pub task_type: TaskType,
    pub payload: TaskPayload,
    pub failures: u32,
    pub datasource: DatasourceId,
    pub base: Option<Base>,
    /// It is a part of another task, or reads again what another could not.
    pub has_origin: bool,
}

impl Claimed {
    /// With the job's own copy of how to read the source: a later job may have changed the source's row.
    pub fn packet(self, source: &str, job: &JobConfiguration) -> Result<WorkPacket> {
        let spec = job.datasources.iter().find(|spec| spec.name == source);
        let spec = spec.ok_or_else(|| damaged("job configuration"))?;
        Ok(WorkPacket {
            claim: self.claim,
            job: self.job,
            session: self.session,
            task_type: self.task_type,
            payload: self.payload,
            datasource: PacketDatasource {
                id: self.datasource,
                name: spec.name.clone(),
                kind: spec.kind.clone(),
                configuration: spec.configuration.clone(),
                credential: spec.credential.clone(),
            },
            rule_set: job.rule_set.parse().map_err(|_| damaged("rule set hash"))?,
            options: job.options.clone(),
            failures: self.failures,
            base: self.base,
            reads_again: self.has_origin && self.task_type.facts().takes == Takes::Objects,
        })
    }
}

/// Completions with their places, without those whose claim came before: a claim completes its task once.
pub(crate) fn first_of_claims(completions: &[Completion]) -> Vec<(usize, &Completion)> {
    let mut seen = HashSet::with_capacity(completions.len());
    completions.iter().enumerate().filter(|(_, completion)| seen.insert(completion.claim)).collect()
}

/// The records that a task of this type works through; of one that takes none, the payload has no ranges either.
pub(crate) fn record_kinds(task_type: TaskType) -> RecordKinds {
    match task_type.facts().takes {
        Takes::Objects | Takes::Nothing => OBJECTS,
        Takes::Containers => CONTAINERS,
    }
}

/// Of what a task is given up with, how much counts as objects of the job.
pub(crate) fn objects_given_up(task_type: TaskType, given_up: &[ListedObject]) -> i64 {
    if task_type.facts().takes == Takes::Objects { given_up.len() as i64 } else { 0 }
}

/// Kinds of records that a task takes.
pub(crate) type RecordKinds = [RecordKind; 4];
pub(crate) const OBJECTS: RecordKinds =
    [RecordKind::File, RecordKind::Carried, RecordKind::Table, RecordKind::Rows];
pub(crate) const CONTAINERS: RecordKinds =
    [RecordKind::Directory, RecordKind::Database, RecordKind::Schema, RecordKind::PartedTable];

/// A running task whose worker is gone, or that makes no progress.
pub(crate) struct Abandoned {
    pub id: TaskId,
    pub claim: ClaimId,
    pub job: JobId,
    pub datasource: DatasourceId,
    pub session: EnumerationSessionId,
    pub origin: Option<TaskId>,
    pub task_type: TaskType,
    pub priority: i64,
    pub payload: TaskPayload,
    pub abandonments: i64,
    /// The bytes of its worker's id; none when it had none.
    pub worker: Vec<u8>,
}

/// What becomes of an abandoned task.
pub(crate) enum Fate {
    /// To be claimed again, so many milliseconds from now.
    Returned { wait_ms: i64 },
    /// Two tasks take its place.
    Split(Box<[NewTask; 2]>),
    /// Its one object or container becomes a named failure, and the task is done.
    Poisoned,
}

/// What becomes of abandoned tasks, in their order. Of several that one worker left behind together, nobody
/// knows which one ended it: those that cannot be split are not given up, and each is given out at a time of its
/// own, the later, the more often it happened, until the one that does it is alone with a worker, and again after
/// the others had their turn. A task that was there every time, however far apart, is the one.
pub(crate) fn fates(abandoned: &[Abandoned]) -> Vec<Fate> {
    // Of each worker: the tasks it left behind, and how many of them are to wait.
    let mut left: BTreeMap<&[u8], (i64, i64)> = BTreeMap::new();
    for task in abandoned {
        left.entry(&task.worker).or_default().0 += 1;
    }
    let fate = |task: &Abandoned| match left.get_mut(task.worker.as_slice()) {
        Some((together, waiting)) if task.is_suspect(*together == 1) => {
            let doublings = (task.abandonments + 1 - SPLIT_AFTER_ABANDONMENTS).min(APART_DOUBLINGS_MAX);
            *waiting += 1;
            Fate::Returned { wait_ms: *waiting * (APART_MS << doublings) }
        }
        _ => task.fate(),
    };
    abandoned.iter().map(fate).collect()
}

impl Abandoned {
    /// Whether it may be what ended its worker, no half of it can be ruled out, and it is not certain either.
    fn is_suspect(&self, was_alone: bool) -> bool {
        let certain =
            if was_alone { POISON_AFTER_ABANDONMENTS } else { POISON_IN_COMPANY_AFTER_ABANDONMENTS };
        (SPLIT_AFTER_ABANDONMENTS..certain).contains(&(self.abandonments + 1))
            && self.payload.split().is_none()
    }

    /// For a task that is no suspect.
    fn fate(&self) -> Fate {
        if self.abandonments + 1 < SPLIT_AFTER_ABANDONMENTS {
            return Fate::Returned { wait_ms: 0 };
        }
        match self.payload.split() {
            Some((first, second)) => Fate::Split(Box::new([first, second].map(|payload| self.half(payload)))),
            None => Fate::Poisoned,
        }
    }

    fn half(&self, payload: TaskPayload) -> NewTask {
        NewTask {
            origin: Some(self.origin.unwrap_or(self.id)),
            task_type: self.task_type,
            priority: self.priority,
            payload,
            abandonments: ABANDONMENTS_AFTER_SPLIT,
            ..NewTask::root(self.job, self.datasource, self.session)
        }
    }

    pub fn fenced(&self) -> FencedTask {
        let origin = self.origin.unwrap_or(self.id);
        FencedTask { job: self.job, session: self.session, datasource: self.datasource, origin }
    }

    /// What a poisoned task's failure says.
    pub fn poisoned_detail(&self) -> String {
        format!("given up after it ended its worker {} times", self.abandonments + 1)
    }
}

/// What a task leaves undone, as failures by name.
pub(crate) enum Failures {
    Objects(Vec<ObjectReport>),
    /// From wherever the listing of each is.
    Containers(Vec<UnitListing>),
}

pub(crate) fn failures(
    task_type: TaskType,
    given_up: Vec<ListedObject>,
    reason: Reason,
    detail: &str,
) -> Failures {
    let facts = task_type.facts();
    let keys = given_up.into_iter().map(|object| object.key);
    match (facts.leaves, facts.takes) {
        (Leaves::Source(what), _) => {
            let detail = format!("{what}: {detail}");
            Failures::Objects(vec![failed_object(ObjectKey::default(), reason, detail)])
        }
        (Leaves::Records, Takes::Containers) => {
            Failures::Containers(keys.map(|key| UnitListing::failed(key, 0, reason, detail)).collect())
        }
        (Leaves::Records, Takes::Objects | Takes::Nothing) => {
            Failures::Objects(keys.map(|key| failed_object(key, reason, detail.to_owned())).collect())
        }
    }
}

fn failed_object(key: ObjectKey, reason: Reason, detail: String) -> ObjectReport {
    let location = Location { key, nested: Vec::new() };
    ObjectReport { location, status: ObjectStatus::Failed, reason: Some(reason), detail, overflow: 0 }
}
