//! Trying failed tasks again.
//!
//! What they were named with goes in the same transaction, so that a retry that succeeds leaves no trace of
//! the failure. The master job's row is locked first: whoever prunes it comes before or after, and then each
//! job's, so that no job ends in between.

use domesday_model::{Command, JobId, JobStatus, MasterJobId, Takes, TaskId};

use super::rows::{all_of, get, wide};
use super::transaction::{Tx, params};
use super::{Result, jobs, queries, tasks};
use crate::decide;
use crate::decide::configuring::missing;
use crate::decide::retry::{Again, FailedTask};
use crate::queries::statement;
use crate::types::*;

pub(super) async fn retry(tx: &mut Tx<'_>, which: Retry) -> Result<u64> {
    const OF_TASK: &str = statement(queries::OPERATIONS, "job_of_task");
    const MASTER: &str = statement(queries::OPERATIONS, "lock_master");
    const JOBS: &str = statement(queries::OPERATIONS, "lock_jobs");
    const REPORTED: &str = statement(queries::OPERATIONS, "clear_reported");
    let unknown = || match which {
        Retry::Task(task) => missing("task", &task.to_string()),
        Retry::AllOf(master) => missing("job", &master.to_string()),
    };
    let (master, job, task) = match which {
        Retry::AllOf(master) => (master, None, None),
        Retry::Task(task) => {
            let rows = tx.query(OF_TASK, params![task.0]).await?;
            let row = rows.first().ok_or_else(unknown)?;
            (MasterJobId(wide(row, 1)?), Some(get::<i64>(row, 0)?), Some(task))
        }
    };
    if tx.query(MASTER, params![master.0.to_vec()]).await?.is_empty() {
        return Err(unknown());
    }
    let rows = tx.query(JOBS, params![master.0.to_vec(), job]).await?;
    let jobs: Vec<OwnedJob> = all_of(&rows)?;
    let mut refused = None;
    let (mut retried, mut possible) = (0, false);
    for job in jobs {
        let again = decide::retry::again(job.status);
        if let Again::Refused = again {
            refused = refused.or(Some(job.status));
            continue;
        }
        possible = true;
        let count = retry_job(tx, job.lease.job, task).await?;
        if let (Again::Queued, true) = (again, count > 0) {
            let start = [Command::Start];
            jobs::set_status(tx, &job.lease, job.status, JobStatus::Queued, Some(&start), None).await?;
        }
        retried += count;
    }
    match refused {
        Some(status) if !possible => return Err(decide::retry::refusal(status)),
        _ if retried > 0 => tx.run(REPORTED, params![master.0.to_vec()]),
        _ => {}
    }
    tx.wakes_before_it_returns();
    Ok(retried)
}

/// Makes the failed tasks of a job pending again, or one of them.
async fn retry_job(tx: &mut Tx<'_>, job: JobId, task: Option<TaskId>) -> Result<u64> {
    const FAILED: &str = statement(queries::OPERATIONS, "failed_tasks");
    const OBJECTS: &str = statement(queries::OPERATIONS, "forget_objects");
    const UNITS: &str = statement(queries::OPERATIONS, "forget_units");
    const UNITS_OF_HALF: &str = statement(queries::OPERATIONS, "forget_units_of_half");
    const RETRY: &str = statement(queries::OPERATIONS, "retry_failed_tasks");
    const SESSIONS: &str = statement(queries::OPERATIONS, "reopen_sessions");
    let rows = tx.query(FAILED, params![job.0, task.map(|task| task.0)]).await?;
    let failed: Vec<FailedTask> = all_of(&rows)?;
    if failed.is_empty() {
        return Ok(0);
    }
    let (mut ids, mut whole, mut sessions) = (Vec::new(), Vec::new(), Vec::new());
    for task in &failed {
        ids.push(task.id);
        if task.task_type.facts().takes != Takes::Containers {
            continue;
        }
        sessions.push(task.session);
        match task.origin {
            None => whole.push(task.id),
            Some(origin) => {
                let keys = tasks::containers(tx, TaskId(task.id)).await?;
                let keys: Vec<Vec<u8>> = keys.into_iter().map(|key| key.0).collect();
                tx.run(UNITS_OF_HALF, params![origin, keys]);
            }
        }
    }
    tx.run(RETRY, params![ids.clone()]);
    tx.run(UNITS, params![whole]);
    tx.run(SESSIONS, params![sessions]);
    tx.run(OBJECTS, params![job.0, ids]);
    Ok(failed.len() as u64)
}
