//! Jobs, tasks as people look at them, the fleet.

use domesday_model::{JobId, MasterJobId, ProcessId, TaskId};

use super::{Columns, FromRow, Result};
use crate::decide::fleet::owner;
use crate::decide::jobs::{ChildJob, FencedJob};
use crate::types::*;
use crate::values::{self, from_json};

/// Columns: id, version, master_job_id, status, master_pending_commands.
impl FromRow for OwnedJob {
    fn from_row(row: &impl Columns) -> Result<OwnedJob> {
        Ok(OwnedJob {
            lease: JobLease { job: JobId(row.value(0)?), version: row.value(1)? },
            master_job: MasterJobId(row.wide(2)?),
            status: row.parsed(3, values::job_status)?,
            pending: row.parsed(4, values::commands)?,
        })
    }
}

/// Columns as of an [`OwnedJob`], and configuration.
impl FromRow for FencedJob {
    fn from_row(row: &impl Columns) -> Result<FencedJob> {
        Ok(FencedJob {
            owned: OwnedJob::from_row(row)?,
            configuration: row.parsed(5, values::configuration)?,
        })
    }
}

/// Columns: id of the master job, description, created_at, status, failure_reason, finished_at.
impl FromRow for ChildJob {
    fn from_row(row: &impl Columns) -> Result<ChildJob> {
        Ok(ChildJob {
            master: MasterJobId(row.wide(0)?),
            description: row.value(1)?,
            created_at_ms: row.value(2)?,
            status: row.parsed(3, values::job_status)?,
            failure_reason: row.value(4)?,
            finished_at_ms: row.value(5)?,
        })
    }
}

/// Columns as in the statement `child_jobs`, up to why it waits.
pub(crate) fn child_job_state(row: &impl Columns, progress: JobProgress) -> Result<ChildJobState> {
    let status = row.parsed(2, values::job_status)?;
    Ok(ChildJobState {
        job: JobId(row.value(0)?),
        node_group: row.value(1)?,
        status,
        pending: row.parsed(3, values::commands)?,
        failure_reason: row.value(4)?,
        owner: owner(status, row.optional_wide(5)?.map(ProcessId), row.value(6)?),
        workers: row.unsigned(7)?,
        created_at_ms: row.value(8)?,
        started_at_ms: row.value(9)?,
        finished_at_ms: row.value(10)?,
        waiting_why: row.value(11)?,
        progress,
    })
}

/// Columns as in the statement `tasks`.
impl FromRow for TaskInfo {
    fn from_row(row: &impl Columns) -> Result<TaskInfo> {
        Ok(TaskInfo {
            id: TaskId(row.value(0)?),
            job: JobId(row.value(1)?),
            master: MasterJobId(row.wide(2)?),
            node_group: row.value(3)?,
            datasource: row.value(4)?,
            task_type: row.parsed(5, values::task_type)?,
            status: row.parsed(6, values::task_status)?,
            payload: row.parsed(7, values::payload)?,
            worker: row.optional_wide(8)?.map(ProcessId),
            failures: row.small(9)?,
            abandonments: row.small(10)?,
            last_error: row.value(11)?,
            not_before_ms: row.value(12)?,
            progress_at_ms: row.value(13)?,
            created_at_ms: row.value(14)?,
            finished_at_ms: row.value(15)?,
            totals: TaskTotals {
                objects: row.unsigned(16)?,
                nested: row.unsigned(17)?,
                bytes: row.unsigned(18)?,
            },
        })
    }
}

/// Columns as in the statements `fleet_workers` and `fleet_orchestrators`.
impl FromRow for ProcessState {
    fn from_row(row: &impl Columns) -> Result<ProcessState> {
        Ok(ProcessState {
            id: ProcessId(row.wide(0)?),
            node_group: row.value(1)?,
            profile: Profile {
                host: row.value(2)?,
                version: row.value(3)?,
                slots: row.small(4)?,
                labels: row.parsed(5, |text| from_json(text, "labels"))?,
                fingerprint_key: row.value(6)?,
            },
            load: Load {
                running: row.small(7)?,
                objects: row.unsigned(8)?,
                bytes: row.unsigned(9)?,
                findings: row.unsigned(10)?,
                objects_per_second: row.unsigned(11)?,
                bytes_per_second: row.unsigned(12)?,
            },
            started_at_ms: row.value(13)?,
            lease_ms: row.value(14)?,
            jobs: row.unsigned(15)?,
        })
    }
}

/// Columns as in the statement `fleet_groups`.
impl FromRow for GroupState {
    fn from_row(row: &impl Columns) -> Result<GroupState> {
        Ok(GroupState {
            node_group: row.value(0)?,
            jobs_queued: row.unsigned(1)?,
            jobs_running: row.unsigned(2)?,
            jobs_paused: row.unsigned(3)?,
            jobs_commanded: row.unsigned(4)?,
            tasks_pending: row.unsigned(5)?,
            tasks_running: row.unsigned(6)?,
            tasks_failed: row.unsigned(7)?,
            oldest_pending_ms: row.value(8)?,
            tasks_orphaned: row.unsigned(9)?,
        })
    }
}
