//! Jobs, their leases and commands; sessions as a whole; completion.

use std::time::Duration;

use domesday_model::{
    Command, DatasourceId, EnumerationSessionId, JobId, JobStatus, MasterJobId, ProcessId, Retries,
    SessionStatus, TaskType,
};
use rusqlite::{Connection, params};
use serde_json::json;

use super::rows::Statements;
use super::{Result, queries, results, retry, targets, tasks};
use crate::decide;
use crate::decide::configuring::missing;
use crate::decide::jobs::{Executed, FencedJob};
use crate::decide::prior::scan_key;
use crate::decide::targets::Known;
use crate::decide::tasks::NewTask;
use crate::error::StoreError;
use crate::queries::statement;
use crate::rows::ended_session;
use crate::types::*;
use crate::values::{millis, to_json};

pub(super) fn submit(c: &Connection, job: &NewMasterJob) -> Result<()> {
    const MASTER: &str = statement(queries::JOBS, "insert_master_job");
    const DATASOURCE: &str = statement(queries::JOBS, "upsert_datasource");
    const JOB: &str = statement(queries::JOBS, "insert_job");
    if c.change(MASTER, params![job.id.0, job.request_key, job.description, job.template])? == 0 {
        return Ok(());
    }
    for source in &job.configuration.datasources {
        let parameters = params![
            source.name,
            source.kind,
            source.node_group,
            source.concurrency_limit,
            source.configuration.to_string(),
            source.worker_label,
            source.credential,
        ];
        c.change(DATASOURCE, parameters)?;
    }
    let key = &job.configuration.fingerprint_key;
    for (group, share) in decide::jobs::child_jobs(&job.configuration) {
        c.change(JOB, params![job.id.0, group, to_json(&share)?, job.priority, key])?;
        results::event(c, JobId(c.last_insert_rowid()), "JobQueued", json!({ "node_group": group }))?;
    }
    Ok(())
}

// ── leases and commands ────────────────────────────────────────────────────────────────────────────

pub(super) fn claim_job(
    c: &Connection,
    orchestrator: ProcessId,
    node_group: &str,
    lease: Duration,
) -> Result<Option<OwnedJob>> {
    const CLAIM: &str = statement(queries::JOBS, "claim_job");
    let owned: Option<OwnedJob> = c.one(CLAIM, params![orchestrator.0, node_group, millis(lease)])?;
    if let Some(job) = &owned {
        let payload = json!({ "orchestrator": orchestrator.to_string(), "status": job.status.as_str() });
        results::event(c, job.lease.job, "JobClaimed", payload)?;
    }
    Ok(owned)
}

pub(super) fn execute_commands(c: &Connection, lease: &JobLease) -> Result<Option<OwnedJob>> {
    let job = fence(c, lease)?.owned;
    apply_commands(c, job)
}

pub(super) fn execute_unowned_commands(c: &Connection, node_group: &str) -> Result<u64> {
    const UNOWNED: &str = statement(queries::JOBS, "unowned_with_commands");
    let mut changed = 0;
    for job in c.all(UNOWNED, [node_group])? {
        if let Some(job) = apply_commands(c, job)? {
            changed += 1;
            // No owner, so no running task: what was to be waited for is already so.
            settle_job(c, &job.lease)?;
        }
    }
    Ok(changed)
}

/// The status change and the clearing of what was executed are one write.
fn apply_commands(c: &Connection, job: OwnedJob) -> Result<Option<OwnedJob>> {
    const CANCEL: &str = statement(queries::TASKS, "cancel_tasks");
    const FAIL_UNITS: &str = statement(queries::ENUMERATION, "fail_open_units");
    const SET_PENDING: &str = statement(queries::JOBS, "set_pending_commands");
    let (status, pending) = match decide::jobs::execute_commands(&job) {
        Executed::Nothing => return Ok(None),
        Executed::Cleared(pending) => {
            c.change(SET_PENDING, params![job.lease.job.0, job.lease.version, to_json(&pending)?])?;
            return Ok(None);
        }
        Executed::Changed(status, pending) => (status, pending),
    };
    if status == JobStatus::Cancelling {
        c.change(CANCEL, [job.lease.job.0])?;
        c.change(FAIL_UNITS, [job.lease.job.0])?;
        cancel_sessions(c, job.lease.job)?;
    }
    let lease = set_status(c, &job.lease, job.status, status, Some(&pending), None)?;
    Ok(Some(OwnedJob { lease, status, pending, ..job }))
}

pub(super) fn settle_job(c: &Connection, lease: &JobLease) -> Result<Option<JobStatus>> {
    const RUNNING: &str = statement(queries::JOBS, "job_has_running_tasks");
    let job = fence(c, lease)?.owned;
    let Some(settled) = decide::jobs::settles_to(job.status) else { return Ok(None) };
    if c.only(RUNNING, [lease.job.0])? {
        return Ok(None);
    }
    set_status(c, lease, job.status, settled, None, None)?;
    Ok(Some(settled))
}

pub(super) fn complete_job(c: &Connection, lease: &JobLease, retries: Retries) -> Result<Option<JobStatus>> {
    const OBSTACLES: &str = statement(queries::JOBS, "job_obstacles");
    const OUTCOME: &str = statement(queries::JOBS, "job_outcome");
    let FencedJob { owned: job, configuration } = fence(c, lease)?;
    end_sessions(c, lease.job)?;
    let obstacles = params![lease.job.0, TaskType::Tracing.as_str()];
    if job.status != JobStatus::Running || c.only(OBSTACLES, obstacles)? {
        return Ok(None);
    }
    if retry::read_again(c, lease.job, retries)? {
        return Ok(None);
    }
    let (enumerated, problems, first) =
        c.only(OUTCOME, params![lease.job.0, configuration.options.strict])?;
    let (status, reason) = decide::jobs::job_outcome(enumerated, problems, first);
    set_status(c, lease, job.status, status, None, reason.as_deref())?;
    Ok(Some(status))
}

// ── sessions ───────────────────────────────────────────────────────────────────────────────────────

/// Of all data sources of the job, or only of one.
pub(super) fn start_sessions(c: &Connection, lease: &JobLease, only: Option<&str>) -> Result<u64> {
    const DATASOURCE: &str = statement(queries::ENUMERATION, "datasource_id");
    const SESSION: &str = statement(queries::ENUMERATION, "insert_session");
    const RESUME: &str = statement(queries::ENUMERATION, "resume_stopped_sessions");
    let fenced = fence(c, lease)?;
    if fenced.owned.status != JobStatus::Running {
        return Ok(0);
    }
    c.change(RESUME, params![lease.job.0, only])?;
    let mut started = 0;
    let wanted = |source: &&domesday_model::DatasourceSpec| only.is_none_or(|name| source.name == name);
    for source in fenced.configuration.datasources.iter().filter(wanted) {
        let id: i64 = c.only(DATASOURCE, [&source.name])?;
        let parameters = params![
            lease.job.0,
            id,
            source.kind,
            source.configuration.to_string(),
            scan_key(&fenced.configuration, source)?,
            fenced.configuration.incremental,
        ];
        let Some(session) = c.one(SESSION, parameters)? else { continue };
        let session = EnumerationSessionId(session);
        tasks::insert(c, &NewTask::root(lease.job, DatasourceId(id), session))?;
        targets::put(c, lease.job, session, &Known::datasource(id, &source.name, &source.kind))?;
        started += 1;
    }
    Ok(started)
}

pub(super) fn open_session(
    c: &Connection,
    lease: &JobLease,
    datasource: &str,
) -> Result<EnumerationSessionId> {
    const SESSION: &str = statement(queries::ENUMERATION, "session_of_datasource");
    start_sessions(c, lease, Some(datasource))?;
    let session = c.one(SESSION, params![lease.job.0, datasource])?.map(EnumerationSessionId);
    session.ok_or_else(|| missing("session of data source", datasource))
}

/// Ends the sessions of which nothing is left to enumerate.
fn end_sessions(c: &Connection, job: JobId) -> Result<()> {
    const ENDED: &str = statement(queries::ENUMERATION, "ended_sessions");
    const END: &str = statement(queries::ENUMERATION, "end_session");
    for (session, status, reason) in c.rows(ENDED, [job.0], |row| ended_session(row))? {
        c.change(END, params![session, status.as_str(), reason])?;
        if status != SessionStatus::Failed {
            targets::note_scan(c, job, session)?;
        }
        results::event(c, job, "SessionEnded", json!({ "session": session, "status": status.as_str() }))?;
    }
    Ok(())
}

/// Ends the sessions of a job that is cancelled.
fn cancel_sessions(c: &Connection, job: JobId) -> Result<()> {
    const CANCEL: &str = statement(queries::ENUMERATION, "cancel_sessions");
    let ended: Vec<(i64, String)> = c.all(CANCEL, [job.0])?;
    for (session, status) in ended {
        results::event(c, job, "SessionEnded", json!({ "session": session, "status": status }))?;
    }
    Ok(())
}

// ── shared ─────────────────────────────────────────────────────────────────────────────────────────

/// The orchestrator's fence: the job is as the lease says, or nothing is written.
pub(super) fn fence(c: &Connection, lease: &JobLease) -> Result<FencedJob> {
    const OWNED: &str = statement(queries::JOBS, "owned_job");
    c.one(OWNED, params![lease.job.0, lease.version])?.ok_or(StoreError::LostLease(lease.job))
}

pub(super) fn set_status(
    c: &Connection,
    lease: &JobLease,
    from: JobStatus,
    to: JobStatus,
    pending: Option<&[Command]>,
    reason: Option<&str>,
) -> Result<JobLease> {
    const SET: &str = statement(queries::JOBS, "set_job_status");
    let to = from.transition(to)?;
    let pending = pending.map(|pending| to_json(&pending)).transpose()?;
    if c.change(SET, params![lease.job.0, lease.version, to.as_str(), pending, reason])? == 0 {
        return Err(StoreError::LostLease(lease.job));
    }
    results::event(c, lease.job, "JobStatusChanged", json!({ "from": from.as_str(), "to": to.as_str() }))?;
    Ok(JobLease { version: lease.version + 1, ..*lease })
}

pub(super) fn master_job(c: &Connection, id: MasterJobId) -> Result<Option<MasterJob>> {
    const GET: &str = statement(queries::JOBS, "master_job");
    Ok(decide::jobs::fold_master_jobs(c.all(GET, [id.0])?).pop())
}
