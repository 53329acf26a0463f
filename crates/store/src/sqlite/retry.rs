//! Trying failed tasks again.
//!
//! What they were named with goes in the same transaction, so that a retry that succeeds leaves no trace of
//! the failure.

use domesday_model::{Command, JobId, JobStatus, ObjectKey, Takes, TaskId};
use rusqlite::{Connection, params};

use super::operations::FILE;
use super::{Result, jobs, tasks};
use crate::decide;
use crate::decide::configuring::missing;
use crate::decide::retry::{Again, FailedTask};
use crate::queries::statement;
use crate::types::*;
use crate::values;

pub(super) fn retry(c: &Connection, which: Retry) -> Result<u64> {
    const JOBS: &str = statement(FILE, "jobs_to_retry");
    const OF_TASK: &str = statement(FILE, "job_of_task");
    const REPORTED: &str = statement(FILE, "clear_reported");
    let read = |mut rows: rusqlite::Rows<'_>| -> Result<Vec<OwnedJob>> {
        let mut jobs = Vec::new();
        while let Some(row) = rows.next()? {
            jobs.push(jobs::owned_job(row)?);
        }
        Ok(jobs)
    };
    let (jobs, task, unknown) = match which {
        Retry::AllOf(master) => {
            let jobs = read(c.prepare_cached(JOBS)?.query([master.0])?)?;
            (jobs, None, missing("job", &master.to_string()))
        }
        Retry::Task(task) => {
            let jobs = read(c.prepare_cached(OF_TASK)?.query([task.0])?)?;
            (jobs, Some(task), missing("task", &task.to_string()))
        }
    };
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
        _ if retried > 0 => c.prepare_cached(REPORTED)?.execute([master.0])?,
        _ => 0,
    };
    Ok(retried)
}

/// Makes the failed tasks of a job pending again, or one of them.
fn retry_job(c: &Connection, job: JobId, task: Option<TaskId>) -> Result<u64> {
    const FAILED: &str = statement(FILE, "failed_tasks");
    const OBJECTS: &str = statement(FILE, "forget_objects");
    const RETRY: &str = statement(FILE, "retry_failed_task");
    const SESSION: &str = statement(FILE, "reopen_session");
    let failed: Vec<FailedTask> = {
        let mut statement = c.prepare_cached(FAILED)?;
        let rows = statement.query_map(params![job.0, task.map(|task| task.0)], |row| {
            let task_type: String = row.get(3)?;
            let task_type = values::task_type(&task_type);
            Ok((row.get(0)?, row.get(1)?, row.get(2)?, task_type))
        })?;
        let failed = rows.map(|row| {
            let (id, session, origin, task_type) = row?;
            Ok(FailedTask { id, session, origin, task_type: task_type? })
        });
        failed.collect::<Result<_>>()?
    };
    for task in &failed {
        if task.task_type.facts().takes == Takes::Containers {
            forget_units(c, task)?;
            c.prepare_cached(SESSION)?.execute([task.session])?;
        }
        c.prepare_cached(OBJECTS)?.execute([job.0, task.id])?;
        c.prepare_cached(RETRY)?.execute([task.id])?;
    }
    Ok(failed.len() as u64)
}

/// Units of a task that was never split are all its own; of the origin's, a half has those that it was about.
fn forget_units(c: &Connection, task: &FailedTask) -> Result<()> {
    const UNITS: &str = statement(FILE, "failed_units");
    const RECORDS: &str = statement(jobs::ENUMERATION, "clear_unit_records");
    const SKIPS: &str = statement(jobs::ENUMERATION, "clear_unit_skips");
    const UNIT: &str = statement(FILE, "forget_unit");
    let own = match task.origin {
        None => None,
        Some(_) => Some(tasks::containers(c, TaskId(task.id))?),
    };
    let units: Vec<(i64, ObjectKey)> = {
        let mut statement = c.prepare_cached(UNITS)?;
        let rows = statement
            .query_map([task.origin.unwrap_or(task.id)], |row| Ok((row.get(0)?, ObjectKey(row.get(1)?))))?;
        rows.collect::<rusqlite::Result<_>>()?
    };
    for (unit, key) in units {
        if own.as_ref().is_none_or(|own| own.contains(&key)) {
            for sql in [RECORDS, SKIPS, UNIT] {
                c.prepare_cached(sql)?.execute([unit])?;
            }
        }
    }
    Ok(())
}
