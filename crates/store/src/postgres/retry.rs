//! Trying again what failed: by an operator, or before a job ends.
//!
//! What failed tasks and containers were named with goes in the same transaction, so that a retry that succeeds leaves
//! no trace of the failure. What is known of an object stays until its next reading is complete. The master job's row is
//! locked first: whoever prunes it comes before or after, and then each job's, so that no job ends in between.

use domesday_model::{Command, JobId, JobStatus, MasterJobId, Reason, Retries, Takes, TaskId};
use tokio_postgres::Row;

use super::pool::Call;
use super::rows::{all_of, column, get, text, wide};
use super::transaction::{Tx, params};
use super::{Result, jobs, queries, tasks};
use crate::decide;
use crate::decide::configuring::missing;
use crate::decide::retry::{Again, FailedObject, FailedTask, FailedUnit};
use crate::decide::tasks::NewTask;
use crate::queries::statement;
use crate::types::*;
use crate::values::millis;

const FAILED_OBJECTS: &str = statement(queries::OPERATIONS, "failed_objects");
const REOPEN_SESSIONS: &str = statement(queries::OPERATIONS, "reopen_sessions");

pub(super) async fn retry(tx: &mut Tx<'_>, which: Retry, scope: RetryScope) -> Result<Retried> {
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
    let (mut retried, mut possible) = (Retried::default(), false);
    for job in jobs {
        let again = decide::retry::again(job.status);
        if let Again::Refused = again {
            refused = refused.or(Some(job.status));
            continue;
        }
        possible = true;
        let id = job.lease.job;
        let mut of_job = Retried { tasks: retry_tasks(tx, id, task).await?, ..Retried::default() };
        if let Again::Queued = again {
            of_job.containers = list_again(tx, id, task, scope).await?;
            of_job.objects = read_again_by_hand(tx, id, task, scope).await?;
            if !of_job.is_empty() {
                let start = [Command::Start];
                jobs::set_status(tx, &job.lease, job.status, JobStatus::Queued, Some(&start), None).await?;
            }
        }
        retried += of_job;
    }
    match refused {
        Some(status) if !possible => return Err(decide::retry::refusal(status)),
        _ if !retried.is_empty() => tx.run(REPORTED, params![master.0.to_vec()]),
        _ => {}
    }
    tx.wakes_before_it_returns();
    Ok(retried)
}

/// Makes the failed tasks of a job pending again, or one of them.
async fn retry_tasks(tx: &mut Tx<'_>, job: JobId, task: Option<TaskId>) -> Result<u64> {
    const FAILED: &str = statement(queries::OPERATIONS, "failed_tasks");
    const OBJECTS: &str = statement(queries::OPERATIONS, "forget_objects");
    const UNITS: &str = statement(queries::OPERATIONS, "forget_units");
    const UNITS_OF_HALF: &str = statement(queries::OPERATIONS, "forget_units_of_half");
    const RETRY: &str = statement(queries::OPERATIONS, "retry_failed_tasks");
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
    tx.run(REOPEN_SESSIONS, params![sessions]);
    tx.run(OBJECTS, params![job.0, ids]);
    Ok(failed.len() as u64)
}

/// Makes tasks that list what completed tasks of an ended job could not; how many containers.
async fn list_again(tx: &mut Tx<'_>, job: JobId, task: Option<TaskId>, scope: RetryScope) -> Result<u64> {
    const UNITS: &str = statement(queries::OPERATIONS, "failed_units_of_job");
    const FORGET: &str = statement(queries::OPERATIONS, "forget_units_by_id");
    let params = params![job.0, task.map(|task| task.0), decide::retry::reasons(scope)];
    let mut units: Vec<FailedUnit> = all_of(&tx.query(UNITS, params).await?)?;
    // Units are the origin's: of these, a part of it has those that it was about.
    if let Some(task) = task.filter(|task| units.first().is_some_and(|unit| unit.task != *task)) {
        let own = tasks::containers(tx, task).await?;
        units.retain(|unit| own.contains(&unit.key));
    }
    if units.is_empty() {
        return Ok(0);
    }
    tx.run(FORGET, params![column(&units, |unit| unit.unit.0)]);
    tasks::insert(tx, &decide::retry::listings(job, &units))?;
    tx.run(REOPEN_SESSIONS, params![column(&units, |unit| unit.session.0)]);
    Ok(units.len() as u64)
}

/// Makes tasks that read what completed tasks of an ended job could not; how many objects.
async fn read_again_by_hand(
    tx: &mut Tx<'_>,
    job: JobId,
    task: Option<TaskId>,
    scope: RetryScope,
) -> Result<u64> {
    let reasons = decide::retry::reasons(scope);
    let params = params![job.0, task.map(|task| task.0), reasons, i64::MAX, i64::MAX];
    let failed: Vec<FailedObject> = all_of(&tx.query(FAILED_OBJECTS, params).await?)?;
    let mut objects = 0;
    for of_task in failed.chunk_by(|one, next| one.task == next.task) {
        let Some((task, count)) = reading(tx, job, of_task).await? else { continue };
        tasks::insert(tx, &[task])?;
        objects += count.cast_unsigned();
    }
    Ok(objects)
}

/// Asks for the objects of a job that may be had the next time.
pub(super) fn passing_call(job: JobId, retries: Retries) -> Call {
    let below = i64::from(retries.attempts) - 1;
    let params = params![job.0, None::<i64>, Some(Reason::passing()), below, decide::retry::OBJECTS_MAX];
    Call { sql: FAILED_OBJECTS, params }
}

/// Makes tasks that read these, before the job ends; whether there are any.
pub(super) async fn read_again(
    tx: &mut Tx<'_>,
    job: JobId,
    passing: &[Row],
    retries: Retries,
) -> Result<bool> {
    const NOTE_WAITING: &str = statement(queries::ENUMERATION, "note_waiting");
    let failed: Vec<FailedObject> = all_of(passing)?;
    let mut is_any = false;
    for of_task in failed.chunk_by(|one, next| one.task == next.task) {
        let Some((task, _)) = reading(tx, job, of_task).await? else { continue };
        let (wait, task) = decide::retry::later(task, &of_task[0], retries);
        tx.run(NOTE_WAITING, params![task.session.0, millis(wait), text(&of_task[0].detail)]);
        tasks::insert(tx, &[task])?;
        is_any = true;
    }
    Ok(is_any)
}

/// The task that reads these objects of one task again, which are that one's no more; and how many they are.
async fn reading(tx: &mut Tx<'_>, job: JobId, objects: &[FailedObject]) -> Result<Option<(NewTask, i64)>> {
    const HAND_ON: &str = statement(queries::TASKS, "hand_on_objects");
    let task = objects[0].task;
    let reading = decide::retry::reading(job, objects, tasks::object_places(tx, task).await?);
    if let Some((_, count)) = &reading {
        tx.run(HAND_ON, params![task.0, *count]);
    }
    Ok(reading)
}
