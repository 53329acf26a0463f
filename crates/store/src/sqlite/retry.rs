//! Trying failed tasks again.
//!
//! What they were named with goes in the same transaction, so that a retry that succeeds leaves no trace of
//! the failure.

use domesday_model::{Command, JobId, JobStatus, Takes, TaskId};
use rusqlite::{Connection, params};

use super::rows::Statements;
use super::{Result, jobs, queries, tasks};
use crate::decide;
use crate::decide::configuring::missing;
use crate::decide::retry::{Again, FailedTask};
use crate::queries::statement;
use crate::types::*;

pub(super) fn retry(c: &Connection, which: Retry) -> Result<u64> {
    const JOBS: &str = statement(queries::OPERATIONS, "jobs_to_retry");
    const OF_TASK: &str = statement(queries::OPERATIONS, "job_of_task");
    const REPORTED: &str = statement(queries::OPERATIONS, "clear_reported");
    let (jobs, task, unknown) = match which {
        Retry::AllOf(master) => (c.all(JOBS, [master.0])?, None, missing("job", &master.to_string())),
        Retry::Task(task) => (c.all(OF_TASK, [task.0])?, Some(task), missing("task", &task.to_string())),
    };
    let jobs: Vec<OwnedJob> = jobs;
    let Some(master) = jobs.first().map(|job| job.master_job) else { return Err(unknown) };
    let mut refused = None;
    let (mut retried, mut possible) = (0, false);
    for job in jobs {
        let again = decide::retry::again(job.status);
        if let Again::Refused = again {
            refused = refused.or(Some(job.status));
            continue;
        }
        possible = true;
        let count = retry_job(c, job.lease.job, task)?;
        if let (Again::Queued, true) = (again, count > 0) {
            jobs::set_status(c, &job.lease, job.status, JobStatus::Queued, Some(&[Command::Start]), None)?;
        }
        retried += count;
    }
    match refused {
        Some(status) if !possible => return Err(decide::retry::refusal(status)),
        _ if retried > 0 => c.change(REPORTED, [master.0])?,
        _ => 0,
    };
    Ok(retried)
}

/// Makes the failed tasks of a job pending again, or one of them.
fn retry_job(c: &Connection, job: JobId, task: Option<TaskId>) -> Result<u64> {
    const FAILED: &str = statement(queries::OPERATIONS, "failed_tasks");
    const OBJECTS: &str = statement(queries::OPERATIONS, "forget_objects");
    const RETRY: &str = statement(queries::OPERATIONS, "retry_failed_task");
    const SESSION: &str = statement(queries::OPERATIONS, "reopen_session");
    let failed: Vec<FailedTask> = c.all(FAILED, params![job.0, task.map(|task| task.0)])?;
    for task in &failed {
        if task.task_type.facts().takes == Takes::Containers {
            forget_units(c, task)?;
            c.change(SESSION, [task.session])?;
        }
        c.change(OBJECTS, [job.0, task.id])?;
        c.change(RETRY, [task.id])?;
    }
    Ok(failed.len() as u64)
}

/// Units of a task that was never split are all its own; of the origin's, a half has those that it was about.
fn forget_units(c: &Connection, task: &FailedTask) -> Result<()> {
    const UNITS: &str = statement(queries::OPERATIONS, "failed_units");
    const RECORDS: &str = statement(queries::ENUMERATION, "clear_unit_records");
    const SKIPS: &str = statement(queries::ENUMERATION, "clear_unit_skips");
    const UNIT: &str = statement(queries::OPERATIONS, "forget_unit");
    let own = match task.origin {
        None => None,
        Some(_) => Some(tasks::containers(c, TaskId(task.id))?),
    };
    let units: Vec<(i64, Vec<u8>)> = c.all(UNITS, [task.origin.unwrap_or(task.id)])?;
    for (unit, key) in units {
        if own.as_ref().is_none_or(|own| own.iter().any(|own| own.0 == key)) {
            for sql in [RECORDS, SKIPS, UNIT] {
                c.change(sql, [unit])?;
            }
        }
    }
    Ok(())
}
