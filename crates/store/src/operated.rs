//! What operators see and ask for, as far as it is the same for every backend. Pure.

use std::collections::BTreeMap;
use std::time::Duration;

use domesday_model::{EnumerationSessionId, JobStatus, TaskStatus, TaskType};

use crate::error::StoreError;
use crate::types::*;
use crate::values::damaged;

type Result<T> = std::result::Result<T, StoreError>;

/// How long a process is shown that has ended.
pub(crate) const SHOWN_AFTER_END: Duration = Duration::from_secs(3_600);

/// Master jobs that one step of pruning takes up, at most: each costs some round trips, whatever its size.
pub(crate) const PRUNED_JOBS_MAX: u32 = 64;

/// What becomes of a job whose failed tasks are tried again.
pub(crate) enum Again {
    /// It goes on as it is.
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

/// A failed task that is tried again.
pub(crate) struct FailedTask {
    pub id: i64,
    pub session: i64,
    /// The task that it is a half of.
    pub origin: Option<i64>,
    pub task_type: TaskType,
}

/// The groups of a fleet: those with open jobs, and those that only have processes.
pub(crate) fn groups(
    busy: impl IntoIterator<Item = Result<GroupState>>,
    processes: [&[ProcessState]; 2],
) -> Result<Vec<GroupState>> {
    let mut groups = BTreeMap::new();
    for process in processes.into_iter().flatten() {
        let node_group = process.node_group.clone();
        groups.insert(node_group.clone(), GroupState { node_group, ..GroupState::default() });
    }
    for group in busy {
        let mut group = group?;
        // What waits for its next attempt has not waited yet.
        group.oldest_pending_ms = group.oldest_pending_ms.map(|waited| waited.max(0));
        groups.insert(group.node_group.clone(), group);
    }
    Ok(groups.into_values().collect())
}

pub(crate) fn task_status(text: &str) -> Result<TaskStatus> {
    TaskStatus::parse(text).ok_or_else(|| damaged("task status"))
}

/// Who owns a child job, if anyone does.
pub(crate) fn owner<T>(status: JobStatus, owner: Option<T>, lease_ms: i64) -> Option<(T, i64)> {
    let owned = matches!(status, JobStatus::Running | JobStatus::Pausing | JobStatus::Cancelling);
    owner.filter(|_| owned).map(|owner| (owner, lease_ms))
}

/// What the checkpoints of sessions are for.
const SESSION_CHECKPOINT: &str = "session:";

/// The target of a session's checkpoint.
pub(crate) fn session_checkpoint(session: EnumerationSessionId) -> String {
    format!("{SESSION_CHECKPOINT}{session}")
}

/// The session that a checkpoint's target names.
pub(crate) fn checkpoint_session(target: &str) -> Option<EnumerationSessionId> {
    target.strip_prefix(SESSION_CHECKPOINT)?.parse().ok().map(EnumerationSessionId)
}

/// Refuses to write the checkpoint of a session, which follows from its batches.
pub(crate) fn check_own_checkpoint(target: &str) -> Result<()> {
    match target.starts_with(SESSION_CHECKPOINT) {
        true => Err(StoreError::Refused(format!("the checkpoint of {target} follows from its batches"))),
        false => Ok(()),
    }
}
