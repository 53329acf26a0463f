//! What operators look at: child jobs with their progress, tasks, the fleet. Each is one snapshot.

use domesday_model::{JobId, MasterJobId, ProcessId, TaskId};
use tokio_postgres::Row;

use super::pool::{Call, Param};
use super::rows::{get, only, unsigned, wide};
use super::transaction::{Tx, params};
use super::{Result, templates};
use crate::decide::fleet::{SHOWN_AFTER_END, fleet_groups, owner};
use crate::queries::statement;
use crate::types::*;
use crate::values::{self, damaged, millis};

pub(super) const FILE: &str = queries_of!("operations");

pub(super) const TASKS: &str = statement(FILE, "tasks");

pub(super) async fn child_jobs(tx: &mut Tx<'_>, master: MasterJobId) -> Result<Vec<ChildJobState>> {
    const CHILDREN: &str = statement(FILE, "child_jobs");
    let call = Call { sql: CHILDREN, params: params![master.0.to_vec()] };
    let [rows] = tx.query_last([call]).await?;
    rows.iter().map(child_job).collect()
}

fn child_job(row: &Row) -> Result<ChildJobState> {
    let status = values::job_status(get(row, 2)?)?;
    Ok(ChildJobState {
        job: JobId(get(row, 0)?),
        node_group: get(row, 1)?,
        status,
        pending: values::commands(get(row, 3)?)?,
        failure_reason: get(row, 4)?,
        owner: owner(status, process(row, 5)?, get(row, 6)?),
        workers: unsigned(row, 7)?,
        created_at_ms: get(row, 8)?,
        started_at_ms: get(row, 9)?,
        finished_at_ms: get(row, 10)?,
        progress: JobProgress {
            objects_listed: unsigned(row, 11)?,
            bytes_listed: unsigned(row, 12)?,
            objects_done: unsigned(row, 13)?,
            bytes_done: unsigned(row, 14)?,
            tasks_pending: unsigned(row, 15)?,
            tasks_running: unsigned(row, 16)?,
            tasks_done: unsigned(row, 17)?,
            tasks_failed: unsigned(row, 18)?,
            listing_done: get(row, 19)?,
            objects_unchanged: unsigned(row, 20)?,
            waiting_until_ms: get(row, 21)?,
        },
    })
}

/// Parameters of [`TASKS`].
pub(super) fn tasks_params(id: Option<TaskId>, filter: &TaskFilter, max: u32) -> Vec<Param> {
    params![
        id.map(|id| id.0),
        filter.master.map(|master| master.0.to_vec()),
        filter.status.map(|status| status.as_str()),
        filter.task_type.map(|task_type| task_type.as_str()),
        i64::from(max),
        filter.session.map(|session| session.0),
        filter.after.map_or(0, |task| task.0),
    ]
}

/// Columns as in the statement `tasks`.
pub(super) fn task_info(row: &Row) -> Result<TaskInfo> {
    Ok(TaskInfo {
        id: TaskId(get(row, 0)?),
        job: JobId(get(row, 1)?),
        master: MasterJobId(wide(row, 2)?),
        node_group: get(row, 3)?,
        datasource: get(row, 4)?,
        task_type: values::task_type(get(row, 5)?)?,
        status: values::task_status(get(row, 6)?)?,
        payload: values::payload(get(row, 7)?)?,
        worker: process(row, 8)?,
        failures: small(row, 9)?,
        abandonments: small(row, 10)?,
        last_error: get(row, 11)?,
        not_before_ms: get(row, 12)?,
        progress_at_ms: get(row, 13)?,
        created_at_ms: get(row, 14)?,
        finished_at_ms: get(row, 15)?,
        totals: TaskTotals {
            objects: unsigned(row, 16)?,
            nested: unsigned(row, 17)?,
            bytes: unsigned(row, 18)?,
        },
    })
}

pub(super) async fn fleet(tx: &mut Tx<'_>) -> Result<Fleet> {
    const WORKERS: &str = statement(FILE, "fleet_workers");
    const ORCHESTRATORS: &str = statement(FILE, "fleet_orchestrators");
    const GROUPS: &str = statement(FILE, "fleet_groups");
    let since = || params![millis(SHOWN_AFTER_END)];
    let calls = [
        Call { sql: templates::NOW, params: Vec::new() },
        Call { sql: ORCHESTRATORS, params: since() },
        Call { sql: WORKERS, params: since() },
        Call { sql: GROUPS, params: Vec::new() },
    ];
    let [now, orchestrators, workers, groups] = tx.query_last(calls).await?;
    let orchestrators = orchestrators.iter().map(process_state).collect::<Result<Vec<_>>>()?;
    let workers = workers.iter().map(process_state).collect::<Result<Vec<_>>>()?;
    let groups = fleet_groups(groups.iter().map(group_state), [&orchestrators, &workers])?;
    Ok(Fleet { now_ms: get(only(&now)?, 0)?, orchestrators, workers, groups })
}

fn process_state(row: &Row) -> Result<ProcessState> {
    Ok(ProcessState {
        id: ProcessId(wide(row, 0)?),
        node_group: get(row, 1)?,
        profile: Profile {
            host: get(row, 2)?,
            version: get(row, 3)?,
            slots: small(row, 4)?,
            labels: get(row, 5)?,
            fingerprint_key: get(row, 6)?,
        },
        load: Load {
            running: small(row, 7)?,
            objects: unsigned(row, 8)?,
            bytes: unsigned(row, 9)?,
            findings: unsigned(row, 10)?,
            objects_per_second: unsigned(row, 11)?,
            bytes_per_second: unsigned(row, 12)?,
        },
        started_at_ms: get(row, 13)?,
        lease_ms: get(row, 14)?,
        jobs: unsigned(row, 15)?,
    })
}

fn group_state(row: &Row) -> Result<GroupState> {
    Ok(GroupState {
        node_group: get(row, 0)?,
        jobs_queued: unsigned(row, 1)?,
        jobs_running: unsigned(row, 2)?,
        jobs_paused: unsigned(row, 3)?,
        jobs_commanded: unsigned(row, 4)?,
        tasks_pending: unsigned(row, 5)?,
        tasks_running: unsigned(row, 6)?,
        tasks_failed: unsigned(row, 7)?,
        oldest_pending_ms: get(row, 8)?,
        tasks_orphaned: unsigned(row, 9)?,
    })
}

fn process(row: &Row, column: usize) -> Result<Option<ProcessId>> {
    let id: Option<Vec<u8>> = get(row, column)?;
    id.map(|id| id.try_into().map(ProcessId)).transpose().map_err(|_| damaged("id"))
}

fn small(row: &Row, column: usize) -> Result<u32> {
    u32::try_from(get::<i64>(row, column)?).map_err(|_| damaged("count"))
}
