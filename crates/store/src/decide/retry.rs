//! Trying again what failed: of which jobs that is possible, and which tasks do it.
//!
//! A failed task is made pending again. A completed one stays as it is: what it could not list or read is the work of a
//! new task, whose origin it is.

use std::collections::HashSet;
use std::time::Duration;

use domesday_model::{
    DatasourceId, EnumerationSessionId, JobId, JobStatus, ObjectKey, Reason, Retries, TaskId, TaskPayload,
    TaskType, UnitId, UnitRange,
};

use super::fan_out::ENUMERATION_PRIORITY;
use super::tasks::NewTask;
use crate::error::StoreError;
use crate::types::RetryScope;
use crate::values::millis;

/// Containers of one task, at most: their keys are in the task.
pub(crate) const CONTAINERS_MAX: usize = 100;
/// Objects that the end of a job has read again at once, at most; the others come after them.
pub(crate) const OBJECTS_MAX: i64 = 1_000;

/// What becomes of a job whose failures are tried again.
pub(crate) enum Again {
    /// It goes on as it is. What its completed tasks could not do is tried again when it has ended.
    Open,
    /// It had ended, and is queued again.
    Queued,
    /// Nothing of it can be tried again.
    Refused,
}

pub(crate) fn again(status: JobStatus) -> Again {
    match status {
        JobStatus::Cancelling | JobStatus::Cancelled | JobStatus::Completed => Again::Refused,
        ended if ended.is_final() => Again::Queued,
        _ => Again::Open,
    }
}

/// Why none of a master job's jobs can be tried again.
pub(crate) fn refusal(status: JobStatus) -> StoreError {
    let why = match status {
        JobStatus::Completed => "it was completed: nothing of it failed",
        _ => "it was cancelled: start a new one",
    };
    StoreError::Refused(format!("the job cannot be tried again, {why}"))
}

/// The reasons that are tried again; `None`: all.
pub(crate) fn reasons(scope: RetryScope) -> Option<Vec<&'static str>> {
    match scope {
        RetryScope::Passing => Some(Reason::passing()),
        RetryScope::All => None,
    }
}

/// A failed task that is tried again.
pub(crate) struct FailedTask {
    pub id: i64,
    pub session: i64,
    /// The task that it is a half of.
    pub origin: Option<i64>,
    pub task_type: TaskType,
}

/// A container that could not be listed, or not to its end.
pub(crate) struct FailedUnit {
    pub unit: UnitId,
    /// Whose unit it is.
    pub task: TaskId,
    pub session: EnumerationSessionId,
    pub datasource: DatasourceId,
    pub key: ObjectKey,
}

/// Tasks that list these containers again, from where each is. Those of one task come together.
pub(crate) fn listings(job: JobId, units: &[FailedUnit]) -> Vec<NewTask> {
    let of_each = units.chunk_by(|one, next| one.task == next.task);
    let parts = of_each.flat_map(|units| units.chunks(CONTAINERS_MAX));
    let listing = |units: &[FailedUnit]| NewTask {
        origin: Some(units[0].task),
        task_type: TaskType::DiscoveryEnumerate,
        priority: ENUMERATION_PRIORITY,
        payload: TaskPayload::PathsToScan(units.iter().map(|unit| unit.key.clone()).collect()),
        ..NewTask::root(job, units[0].datasource, units[0].session)
    };
    parts.map(listing).collect()
}

/// An object that was not read, or not whole.
pub(crate) struct FailedObject {
    /// What read it.
    pub task: TaskId,
    pub session: EnumerationSessionId,
    pub datasource: DatasourceId,
    /// Attempts that had failed when that task began.
    pub failures: i64,
    pub key: ObjectKey,
    pub detail: String,
}

/// A record with its place.
pub(crate) struct RecordAt {
    pub key: ObjectKey,
    pub unit: UnitId,
    pub sequence: i64,
}

/// A task that reads these objects of one task again, if their records are still there, and how many they are.
pub(crate) fn reading(
    job: JobId,
    objects: &[FailedObject],
    records: impl IntoIterator<Item = RecordAt>,
) -> Option<(NewTask, i64)> {
    let wanted: HashSet<&ObjectKey> = objects.iter().map(|object| &object.key).collect();
    let (mut ranges, mut count) = (Vec::<UnitRange>::new(), 0);
    for record in records.into_iter().filter(|record| wanted.contains(&record.key)) {
        count += 1;
        match ranges.last_mut() {
            Some(last) if last.unit == record.unit && last.to == record.sequence => last.to += 1,
            _ => ranges.push(UnitRange { unit: record.unit, from: record.sequence, to: record.sequence + 1 }),
        }
    }
    let first = objects.first().filter(|_| count > 0)?;
    let task = NewTask {
        origin: Some(first.task),
        task_type: TaskType::Classification,
        payload: TaskPayload::UnitRanges(ranges),
        ..NewTask::root(job, first.datasource, first.session)
    };
    Some((task, count))
}

/// The same as a further attempt, after a wait.
pub(crate) fn later(task: NewTask, object: &FailedObject, retries: Retries) -> (Duration, NewTask) {
    let failures = object.failures + 1;
    let wait = retries.wait.longest_after(u32::try_from(failures).unwrap_or(u32::MAX));
    (wait, NewTask { failures, wait_ms: millis(wait), why: Some(object.detail.clone()), ..task })
}
