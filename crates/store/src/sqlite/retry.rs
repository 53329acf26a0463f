//! Trying again what failed: by an operator, or before a job ends.
//!
//! What failed tasks and containers were named with goes in the same transaction, so that a retry that succeeds leaves
//! no trace of the failure. What is known of an object stays until its next reading is complete.

use domesday_model::{Command, JobId, JobStatus, Reason, RecordKind, Retries, Takes, TaskId, TaskPayload};
use rusqlite::{Connection, params};

use super::rows::Statements;
use super::{Result, jobs, queries, tasks};
use crate::decide;
use crate::decide::configuring::missing;
use crate::decide::retry::{Again, FailedObject, FailedTask, FailedUnit, RecordAt};
use crate::decide::tasks::{NewTask, OBJECTS};
use crate::queries::statement;
use crate::types::*;
use crate::values::to_json;

pub(super) fn retry(c: &Connection, which: Retry, scope: RetryScope) -> Result<Retried> {
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
    let (mut retried, mut possible) = (Retried::default(), false);
    for job in jobs {
        let again = decide::retry::again(job.status);
        if let Again::Refused = again {
            refused = refused.or(Some(job.status));
            continue;
        }
        possible = true;
        let id = job.lease.job;
        let mut of_job = Retried { tasks: retry_tasks(c, id, task)?, ..Retried::default() };
        if let Again::Queued = again {
            of_job.containers = list_again(c, id, task, scope)?;
            of_job.objects = read_again_by_hand(c, id, task, scope)?;
            if !of_job.is_empty() {
                jobs::set_status(
                    c,
                    &job.lease,
                    job.status,
                    JobStatus::Queued,
                    Some(&[Command::Start]),
                    None,
                )?;
            }
        }
        retried += of_job;
    }
    match refused {
        Some(status) if !possible => return Err(decide::retry::refusal(status)),
        _ if !retried.is_empty() => c.change(REPORTED, [master.0])?,
        _ => 0,
    };
    Ok(retried)
}

/// Makes the failed tasks of a job pending again, or one of them.
fn retry_tasks(c: &Connection, job: JobId, task: Option<TaskId>) -> Result<u64> {
    const FAILED: &str = statement(queries::OPERATIONS, "failed_tasks");
    const OBJECTS: &str = statement(queries::OPERATIONS, "forget_objects");
    const RETRY: &str = statement(queries::OPERATIONS, "retry_failed_task");
    let failed: Vec<FailedTask> = c.all(FAILED, params![job.0, task.map(|task| task.0)])?;
    for task in &failed {
        if task.task_type.facts().takes == Takes::Containers {
            forget_units(c, task)?;
            reopen_session(c, task.session)?;
        }
        c.change(OBJECTS, [job.0, task.id])?;
        c.change(RETRY, [task.id])?;
    }
    Ok(failed.len() as u64)
}

/// Units of a task that was never split are all its own; of the origin's, a half has those that it was about.
fn forget_units(c: &Connection, task: &FailedTask) -> Result<()> {
    const UNITS: &str = statement(queries::OPERATIONS, "failed_units");
    let own = match task.origin {
        None => None,
        Some(_) => Some(tasks::containers(c, TaskId(task.id))?),
    };
    let units: Vec<(i64, Vec<u8>)> = c.all(UNITS, [task.origin.unwrap_or(task.id)])?;
    for (unit, key) in units {
        if own.as_ref().is_none_or(|own| own.iter().any(|own| own.0 == key)) {
            forget_unit(c, unit)?;
        }
    }
    Ok(())
}

fn forget_unit(c: &Connection, unit: i64) -> Result<()> {
    const RECORDS: &str = statement(queries::ENUMERATION, "clear_unit_records");
    const SKIPS: &str = statement(queries::ENUMERATION, "clear_unit_skips");
    const UNIT: &str = statement(queries::OPERATIONS, "forget_unit");
    [RECORDS, SKIPS, UNIT].iter().try_for_each(|sql| c.change(sql, [unit]).map(drop))
}

fn reopen_session(c: &Connection, session: i64) -> Result<()> {
    const SESSION: &str = statement(queries::OPERATIONS, "reopen_session");
    c.change(SESSION, [session]).map(drop)
}

/// Makes tasks that list what completed tasks of an ended job could not; how many containers.
fn list_again(c: &Connection, job: JobId, task: Option<TaskId>, scope: RetryScope) -> Result<u64> {
    const UNITS: &str = statement(queries::OPERATIONS, "failed_units_of_job");
    let reasons = decide::retry::reasons(scope).map(|reasons| to_json(&reasons)).transpose()?;
    let mut units: Vec<FailedUnit> = c.all(UNITS, params![job.0, task.map(|task| task.0), reasons])?;
    // Units are the origin's: of these, a part of it has those that it was about.
    if let Some(task) = task.filter(|task| units.first().is_some_and(|unit| unit.task != *task)) {
        let own = tasks::containers(c, task)?;
        units.retain(|unit| own.contains(&unit.key));
    }
    for unit in &units {
        forget_unit(c, unit.unit.0)?;
    }
    for task in decide::retry::listings(job, &units) {
        tasks::insert(c, &task)?;
        reopen_session(c, task.session.0)?;
    }
    Ok(units.len() as u64)
}

/// Makes tasks that read what completed tasks of an ended job could not; how many objects.
fn read_again_by_hand(c: &Connection, job: JobId, task: Option<TaskId>, scope: RetryScope) -> Result<u64> {
    const FAILED: &str = statement(queries::OPERATIONS, "failed_objects");
    let reasons = decide::retry::reasons(scope).map(|reasons| to_json(&reasons)).transpose()?;
    let parameters = params![job.0, task.map(|task| task.0), reasons, i64::MAX, i64::MAX];
    let failed: Vec<FailedObject> = c.all(FAILED, parameters)?;
    let mut objects = 0;
    for of_task in failed.chunk_by(|one, next| one.task == next.task) {
        let Some((task, count)) = reading(c, job, of_task)? else { continue };
        tasks::insert(c, &task)?;
        objects += count.cast_unsigned();
    }
    Ok(objects)
}

/// Makes tasks that read what may be had the next time, before the job ends; whether there are any.
pub(super) fn read_again(c: &Connection, job: JobId, retries: Retries) -> Result<bool> {
    const FAILED: &str = statement(queries::OPERATIONS, "failed_objects");
    let reasons = to_json(&Reason::passing())?;
    let below = i64::from(retries.attempts) - 1;
    let failed: Vec<FailedObject> =
        c.all(FAILED, params![job.0, None::<i64>, reasons, below, decide::retry::OBJECTS_MAX])?;
    let mut is_any = false;
    for of_task in failed.chunk_by(|one, next| one.task == next.task) {
        let Some((task, _)) = reading(c, job, of_task)? else { continue };
        let (wait, task) = decide::retry::later(task, &of_task[0], retries);
        tasks::insert(c, &task)?;
        tasks::wait(c, job, task.session, wait, &of_task[0].detail)?;
        is_any = true;
    }
    Ok(is_any)
}

/// The task that reads these objects of one task again, which are that one's no more; and how many they are.
fn reading(c: &Connection, job: JobId, objects: &[FailedObject]) -> Result<Option<(NewTask, i64)>> {
    const RECORDS: &str = statement(queries::TASKS, "packet_sequences");
    const HAND_ON: &str = statement(queries::TASKS, "hand_on_objects");
    let (_, payload) = tasks::payload(c, objects[0].task)?;
    let TaskPayload::UnitRanges(ranges) = payload else { return Ok(None) };
    let [file, carried, table, rows] = OBJECTS.map(RecordKind::code);
    let mut records: Vec<RecordAt> = Vec::new();
    for range in ranges {
        records.extend(c.all::<RecordAt>(
            RECORDS,
            params![range.unit.0, range.from, range.to, file, carried, table, rows],
        )?);
    }
    let task = decide::retry::reading(job, objects, records);
    if let Some((_, count)) = &task {
        c.change(HAND_ON, [objects[0].task.0, *count])?;
    }
    Ok(task)
}
