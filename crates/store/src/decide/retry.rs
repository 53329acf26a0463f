//! Trying failed tasks again: of which jobs that is possible.

use domesday_model::{JobStatus, TaskType};

use crate::error::StoreError;

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
