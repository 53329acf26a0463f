//! What operators look at: child jobs with their progress, tasks, the fleet. Each is one snapshot.

use domesday_model::{JobId, MasterJobId, ProcessId, TaskId};
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::{Result, templates};
use crate::decide::fleet::{SHOWN_AFTER_END, fleet_groups, owner};
use crate::queries::statement;
use crate::types::*;
use crate::values::{self, from_json, millis};

pub(super) const FILE: &str = queries_of!("operations");

pub(super) fn child_jobs(c: &Connection, master: MasterJobId) -> Result<Vec<ChildJobState>> {
    const CHILDREN: &str = statement(FILE, "child_jobs");
    let mut jobs: Vec<ChildJobState> = {
        let mut statement = c.prepare_cached(CHILDREN)?;
        let rows = statement.query_map([master.0], |row| Ok(child_job(row)))?;
        rows.map(|row| row?).collect::<Result<_>>()?
    };
    for job in &mut jobs {
        job.progress = progress(c, job.job)?;
    }
    Ok(jobs)
}

fn child_job(row: &Row<'_>) -> Result<ChildJobState> {
    let (status, pending): (String, String) = (row.get(2)?, row.get(3)?);
    let status = values::job_status(&status)?;
    Ok(ChildJobState {
        job: JobId(row.get(0)?),
        node_group: row.get(1)?,
        status,
        pending: values::commands(&pending)?,
        failure_reason: row.get(4)?,
        owner: owner(status, process(row, 5)?, row.get(6)?),
        workers: unsigned(row, 7)?,
        created_at_ms: row.get(8)?,
        started_at_ms: row.get(9)?,
        finished_at_ms: row.get(10)?,
        progress: JobProgress::default(),
    })
}

fn progress(c: &Connection, job: JobId) -> Result<JobProgress> {
    const UNITS: &str = statement(FILE, "units_progress");
    const TASKS: &str = statement(FILE, "tasks_progress");
    const WAITING: &str = statement(FILE, "waiting_until");
    let (objects_listed, bytes_listed, objects_unchanged) = c
        .prepare_cached(UNITS)?
        .query_row([job.0], |row| Ok((unsigned(row, 0)?, unsigned(row, 1)?, unsigned(row, 2)?)))?;
    let waiting_until_ms = c.prepare_cached(WAITING)?.query_row([job.0], |row| row.get(0))?;
    Ok(c.prepare_cached(TASKS)?.query_row([job.0], |row| {
        Ok(JobProgress {
            objects_listed,
            bytes_listed,
            objects_unchanged,
            objects_done: unsigned(row, 0)?,
            bytes_done: unsigned(row, 1)?,
            tasks_pending: unsigned(row, 2)?,
            tasks_running: unsigned(row, 3)?,
            tasks_done: unsigned(row, 4)?,
            tasks_failed: unsigned(row, 5)?,
            listing_done: row.get(6)?,
            waiting_until_ms,
        })
    })?)
}

pub(super) fn tasks(c: &Connection, filter: &TaskFilter, max: u32) -> Result<Vec<TaskInfo>> {
    const TASKS: &str = statement(FILE, "tasks");
    let mut statement = c.prepare_cached(TASKS)?;
    let parameters = params![
        filter.master.map(|master| master.0),
        filter.status.map(|status| status.as_str()),
        filter.task_type.map(|task_type| task_type.as_str()),
        max,
        filter.session.map(|session| session.0),
        filter.after.map_or(0, |task| task.0),
    ];
    let rows = statement.query_map(parameters, |row| Ok(task_info(row)))?;
    rows.map(|row| row?).collect()
}

pub(super) fn task(c: &Connection, id: TaskId) -> Result<Option<TaskInfo>> {
    const TASK: &str = statement(FILE, "task");
    c.prepare_cached(TASK)?.query_row([id.0], |row| Ok(task_info(row))).optional()?.transpose()
}

/// Columns as in the statement `tasks`.
fn task_info(row: &Row<'_>) -> Result<TaskInfo> {
    let (task_type, status, payload): (String, String, String) = (row.get(5)?, row.get(6)?, row.get(7)?);
    Ok(TaskInfo {
        id: TaskId(row.get(0)?),
        job: JobId(row.get(1)?),
        master: MasterJobId(row.get(2)?),
        node_group: row.get(3)?,
        datasource: row.get(4)?,
        task_type: values::task_type(&task_type)?,
        status: values::task_status(&status)?,
        payload: values::payload(&payload)?,
        worker: process(row, 8)?,
        failures: row.get(9)?,
        abandonments: row.get(10)?,
        last_error: row.get(11)?,
        not_before_ms: row.get(12)?,
        progress_at_ms: row.get(13)?,
        created_at_ms: row.get(14)?,
        finished_at_ms: row.get(15)?,
        totals: TaskTotals {
            objects: unsigned(row, 16)?,
            nested: unsigned(row, 17)?,
            bytes: unsigned(row, 18)?,
        },
    })
}

pub(super) fn fleet(c: &Connection) -> Result<Fleet> {
    const WORKERS: &str = statement(FILE, "fleet_workers");
    const ORCHESTRATORS: &str = statement(FILE, "fleet_orchestrators");
    const GROUPS: &str = statement(FILE, "fleet_groups");
    let processes = |sql| -> Result<Vec<ProcessState>> {
        let mut statement = c.prepare_cached(sql)?;
        let rows = statement.query_map([millis(SHOWN_AFTER_END)], |row| Ok(process_state(row)))?;
        rows.map(|row| row?).collect()
    };
    let (orchestrators, workers) = (processes(ORCHESTRATORS)?, processes(WORKERS)?);
    let mut statement = c.prepare_cached(GROUPS)?;
    let busy = statement.query_map([], group_state)?;
    let groups = fleet_groups(busy.map(|group| Ok(group?)), [&orchestrators, &workers])?;
    Ok(Fleet { now_ms: templates::now(c)?, orchestrators, workers, groups })
}

fn process_state(row: &Row<'_>) -> Result<ProcessState> {
    let labels: String = row.get(5)?;
    Ok(ProcessState {
        id: ProcessId(row.get(0)?),
        node_group: row.get(1)?,
        profile: Profile {
            host: row.get(2)?,
            version: row.get(3)?,
            slots: row.get(4)?,
            labels: from_json(&labels, "labels")?,
            fingerprint_key: row.get(6)?,
        },
        load: Load {
            running: row.get(7)?,
            objects: unsigned(row, 8)?,
            bytes: unsigned(row, 9)?,
            findings: unsigned(row, 10)?,
            objects_per_second: unsigned(row, 11)?,
            bytes_per_second: unsigned(row, 12)?,
        },
        started_at_ms: row.get(13)?,
        lease_ms: row.get(14)?,
        jobs: unsigned(row, 15)?,
    })
}

fn group_state(row: &Row<'_>) -> rusqlite::Result<GroupState> {
    Ok(GroupState {
        node_group: row.get(0)?,
        jobs_queued: unsigned(row, 1)?,
        jobs_running: unsigned(row, 2)?,
        jobs_paused: unsigned(row, 3)?,
        jobs_commanded: unsigned(row, 4)?,
        tasks_pending: unsigned(row, 5)?,
        tasks_running: unsigned(row, 6)?,
        tasks_failed: unsigned(row, 7)?,
        oldest_pending_ms: row.get(8)?,
        tasks_orphaned: unsigned(row, 9)?,
    })
}

fn process(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<ProcessId>> {
    Ok(row.get::<_, Option<[u8; 16]>>(column)?.map(ProcessId))
}

fn unsigned(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    row.get::<_, i64>(column).map(i64::cast_unsigned)
}
