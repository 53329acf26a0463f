//! Jobs, their leases and commands; processes; sessions as a whole; completion.

use std::time::Duration;

use domesday_model::{
    Command, DatasourceId, EnumerationSessionId, JobConfiguration, JobId, JobStatus, MasterJobId, ProcessId,
    RuleSetHash, SessionStatus, TaskType,
};
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde_json::json;

use super::{Result, results, targets, tasks};
use crate::decide;
use crate::decide::jobs::{ChildJob, Executed};
use crate::decide::prior::scan_key;
use crate::decide::targets::Known;
use crate::decide::tasks::NewTask;
use crate::error::StoreError;
use crate::queries::statement;
use crate::types::*;
use crate::values::{self, millis, to_json};

pub(super) const FILE: &str = queries_of!("jobs");
pub(super) const ENUMERATION: &str = queries_of!("enumeration");

pub(super) fn put_rule_set(c: &Connection, hash: RuleSetHash, rules: &str) -> Result<()> {
    const PUT: &str = statement(FILE, "put_rule_set");
    c.prepare_cached(PUT)?.execute(params![hash.0, rules])?;
    Ok(())
}

pub(super) fn rule_set(c: &Connection, hash: RuleSetHash) -> Result<Option<String>> {
    const GET: &str = statement(FILE, "rule_set");
    Ok(c.prepare_cached(GET)?.query_row([hash.0], |row| row.get(0)).optional()?)
}

pub(super) fn submit(c: &Connection, job: &NewMasterJob) -> Result<()> {
    const MASTER: &str = statement(FILE, "insert_master_job");
    const DATASOURCE: &str = statement(FILE, "upsert_datasource");
    const JOB: &str = statement(FILE, "insert_job");
    if c.prepare_cached(MASTER)?.execute(params![job.id.0, job.request_key, job.description, job.template])?
        == 0
    {
        return Ok(());
    }
    for source in &job.configuration.datasources {
        c.prepare_cached(DATASOURCE)?.execute(params![
            source.name,
            source.kind,
            source.node_group,
            source.concurrency_limit,
            source.configuration.to_string(),
            source.worker_label,
            source.credential,
        ])?;
    }
    let key = &job.configuration.fingerprint_key;
    for (group, share) in decide::jobs::child_jobs(&job.configuration) {
        c.prepare_cached(JOB)?.execute(params![job.id.0, group, to_json(&share)?, job.priority, key])?;
        results::event(c, JobId(c.last_insert_rowid()), "JobQueued", json!({ "node_group": group }))?;
    }
    Ok(())
}

pub(super) fn unfinished(c: &Connection, request_key: [u8; 16]) -> Result<Option<MasterJob>> {
    const FIND: &str = statement(FILE, "unfinished");
    let id = c.prepare_cached(FIND)?.query_row([request_key], |row| row.get(0)).optional()?;
    match id {
        Some(id) => master_job(c, MasterJobId(id)),
        None => Ok(None),
    }
}

pub(super) fn mark_reported(c: &Connection, master: MasterJobId) -> Result<()> {
    const REPORTED: &str = statement(FILE, "mark_reported");
    c.prepare_cached(REPORTED)?.execute([master.0])?;
    Ok(())
}

pub(super) fn append_command(c: &Connection, master: MasterJobId, command: Command) -> Result<u64> {
    const APPEND: &str = statement(FILE, "append_command");
    Ok(c.prepare_cached(APPEND)?.execute(params![master.0, command.as_str()])? as u64)
}

// ── processes ──────────────────────────────────────────────────────────────────────────────────────

/// Whoever holds the folder's lock knows that every earlier process is gone.
pub(super) fn expire_earlier_processes(c: &Connection) -> Result<()> {
    const STATEMENTS: [&str; 3] = [
        statement(FILE, "expire_all_workers"),
        statement(FILE, "expire_all_orchestrators"),
        statement(FILE, "expire_all_jobs"),
    ];
    for sql in STATEMENTS {
        c.execute(sql, [])?;
    }
    Ok(())
}

pub(super) fn register(c: &Connection, process: &Process, lease: Duration) -> Result<()> {
    const WORKER: &str = statement(FILE, "register_worker");
    const ORCHESTRATOR: &str = statement(FILE, "register_orchestrator");
    let sql = match process.role {
        Role::Worker => WORKER,
        Role::Orchestrator => ORCHESTRATOR,
    };
    let Profile { host, version, slots, labels, fingerprint_key } = &process.profile;
    c.prepare_cached(sql)?.execute(params![
        process.id.0,
        process.node_group,
        millis(lease),
        host,
        version,
        slots,
        to_json(labels)?,
        fingerprint_key,
    ])?;
    Ok(())
}

pub(super) fn renew(c: &Connection, role: Role, id: ProcessId, lease: Duration, load: Load) -> Result<bool> {
    const WORKER: &str = statement(FILE, "renew_worker");
    const ORCHESTRATOR: &str = statement(FILE, "renew_orchestrator");
    let sql = match role {
        Role::Worker => WORKER,
        Role::Orchestrator => ORCHESTRATOR,
    };
    let renewed = c.prepare_cached(sql)?.execute(params![
        id.0,
        millis(lease),
        load.running,
        load.objects.cast_signed(),
        load.bytes.cast_signed(),
        load.findings.cast_signed(),
        load.objects_per_second.cast_signed(),
        load.bytes_per_second.cast_signed(),
    ])?;
    Ok(renewed == 1)
}

pub(super) fn release(c: &Connection, role: Role, id: ProcessId) -> Result<()> {
    const WORKER: &str = statement(FILE, "release_worker");
    const ORCHESTRATOR: &str = statement(FILE, "release_orchestrator");
    const JOBS: &str = statement(FILE, "release_jobs");
    match role {
        Role::Worker => c.prepare_cached(WORKER)?.execute([id.0])?,
        Role::Orchestrator => {
            c.prepare_cached(JOBS)?.execute([id.0])?;
            c.prepare_cached(ORCHESTRATOR)?.execute([id.0])?
        }
    };
    Ok(())
}

// ── leases and commands ────────────────────────────────────────────────────────────────────────────

pub(super) fn claim_job(
    c: &Connection,
    orchestrator: ProcessId,
    node_group: &str,
    lease: Duration,
) -> Result<Option<OwnedJob>> {
    const CLAIM: &str = statement(FILE, "claim_job");
    let owned = c
        .prepare_cached(CLAIM)?
        .query_row(params![orchestrator.0, node_group, millis(lease)], |row| Ok(owned_job(row)))
        .optional()?
        .transpose()?;
    if let Some(job) = &owned {
        let payload = json!({ "orchestrator": orchestrator.to_string(), "status": job.status.as_str() });
        results::event(c, job.lease.job, "JobClaimed", payload)?;
    }
    Ok(owned)
}

pub(super) fn renew_jobs(c: &Connection, orchestrator: ProcessId, lease: Duration) -> Result<Vec<OwnedJob>> {
    const RENEW: &str = statement(FILE, "renew_jobs");
    let mut statement = c.prepare_cached(RENEW)?;
    let rows = statement.query_map(params![orchestrator.0, millis(lease)], |row| Ok(owned_job(row)))?;
    rows.map(|row| row?).collect()
}

pub(super) fn execute_commands(c: &Connection, lease: &JobLease) -> Result<Option<OwnedJob>> {
    let job = fence(c, lease)?.owned;
    apply_commands(c, job)
}

pub(super) fn execute_unowned_commands(c: &Connection, node_group: &str) -> Result<u64> {
    const UNOWNED: &str = statement(FILE, "unowned_with_commands");
    let jobs: Vec<OwnedJob> = {
        let mut statement = c.prepare_cached(UNOWNED)?;
        let rows = statement.query_map([node_group], |row| Ok(owned_job(row)))?;
        rows.map(|row| row?).collect::<Result<_>>()?
    };
    let mut changed = 0;
    for job in jobs {
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
    const CANCEL: &str = statement(tasks::FILE, "cancel_tasks");
    const FAIL_UNITS: &str = statement(ENUMERATION, "fail_open_units");
    const SET_PENDING: &str = statement(FILE, "set_pending_commands");
    let (status, pending) = match decide::jobs::execute_commands(&job) {
        Executed::Nothing => return Ok(None),
        Executed::Cleared(pending) => {
            let (id, version) = (job.lease.job.0, job.lease.version);
            c.prepare_cached(SET_PENDING)?.execute(params![id, version, to_json(&pending)?])?;
            return Ok(None);
        }
        Executed::Changed(status, pending) => (status, pending),
    };
    if status == JobStatus::Cancelling {
        c.prepare_cached(CANCEL)?.execute([job.lease.job.0])?;
        c.prepare_cached(FAIL_UNITS)?.execute([job.lease.job.0])?;
        cancel_sessions(c, job.lease.job)?;
    }
    let lease = set_status(c, &job.lease, job.status, status, Some(&pending), None)?;
    Ok(Some(OwnedJob { lease, status, pending, ..job }))
}

pub(super) fn settle_job(c: &Connection, lease: &JobLease) -> Result<Option<JobStatus>> {
    const RUNNING: &str = statement(FILE, "job_has_running_tasks");
    let job = fence(c, lease)?.owned;
    let Some(settled) = decide::jobs::settles_to(job.status) else { return Ok(None) };
    if c.prepare_cached(RUNNING)?.query_row([lease.job.0], |row| row.get(0))? {
        return Ok(None);
    }
    set_status(c, lease, job.status, settled, None, None)?;
    Ok(Some(settled))
}

/// A worker holds tasks of few jobs at once: each is looked up by its key.
pub(super) fn stopping(c: &Connection, of: Vec<JobId>) -> Result<Vec<JobId>> {
    const IS: &str = statement(FILE, "job_is_stopping");
    let mut find = c.prepare_cached(IS)?;
    let mut stopping = Vec::new();
    for job in of {
        if find.query_row([job.0], |row| row.get(0))? {
            stopping.push(job);
        }
    }
    Ok(stopping)
}

pub(super) fn complete_job(c: &Connection, lease: &JobLease) -> Result<Option<JobStatus>> {
    const OBSTACLES: &str = statement(FILE, "job_obstacles");
    const OUTCOME: &str = statement(FILE, "job_outcome");
    let job = fence(c, lease)?.owned;
    end_sessions(c, lease.job)?;
    let obstacles = params![lease.job.0, TaskType::Tracing.as_str()];
    if job.status != JobStatus::Running
        || c.prepare_cached(OBSTACLES)?.query_row(obstacles, |row| row.get(0))?
    {
        return Ok(None);
    }
    let (enumerated, problems, first): (bool, bool, Option<String>) = c
        .prepare_cached(OUTCOME)?
        .query_row([lease.job.0], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    let (status, reason) = decide::jobs::job_outcome(enumerated, problems, first);
    set_status(c, lease, job.status, status, None, reason.as_deref())?;
    Ok(Some(status))
}

// ── sessions ───────────────────────────────────────────────────────────────────────────────────────

/// Of all data sources of the job, or only of one.
pub(super) fn start_sessions(c: &Connection, lease: &JobLease, only: Option<&str>) -> Result<u64> {
    const DATASOURCE: &str = statement(ENUMERATION, "datasource_id");
    const SESSION: &str = statement(ENUMERATION, "insert_session");
    const RESUME: &str = statement(ENUMERATION, "resume_stopped_sessions");
    let fenced = fence(c, lease)?;
    if fenced.owned.status != JobStatus::Running {
        return Ok(0);
    }
    c.prepare_cached(RESUME)?.execute(params![lease.job.0, only])?;
    let mut started = 0;
    let wanted = |source: &&domesday_model::DatasourceSpec| only.is_none_or(|name| source.name == name);
    for source in fenced.configuration.datasources.iter().filter(wanted) {
        let id: i64 = c.prepare_cached(DATASOURCE)?.query_row([&source.name], |row| row.get(0))?;
        let session: Option<i64> = c
            .prepare_cached(SESSION)?
            .query_row(
                params![
                    lease.job.0,
                    id,
                    source.kind,
                    source.configuration.to_string(),
                    scan_key(&fenced.configuration, source)?,
                    fenced.configuration.incremental,
                ],
                |row| row.get(0),
            )
            .optional()?;
        let Some(session) = session else { continue };
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
    const SESSION: &str = statement(ENUMERATION, "session_of_datasource");
    start_sessions(c, lease, Some(datasource))?;
    let found = c
        .prepare_cached(SESSION)?
        .query_row(params![lease.job.0, datasource], |row| Ok(EnumerationSessionId(row.get(0)?)))
        .optional()?;
    found.ok_or_else(|| StoreError::Missing { kind: "session of data source", name: datasource.to_owned() })
}

/// Ends the sessions of which nothing is left to enumerate.
fn end_sessions(c: &Connection, job: JobId) -> Result<()> {
    const ENDED: &str = statement(ENUMERATION, "ended_sessions");
    const END: &str = statement(ENUMERATION, "end_session");
    type Ended = (i64, String, bool, bool, Option<String>);
    let ended: Vec<Ended> = {
        let mut statement = c.prepare_cached(ENDED)?;
        let rows = statement.query_map([job.0], |row| {
            Ok((row.get(0)?, row.get(2)?, row.get(3)?, row.get(4)?, row.get(5)?))
        })?;
        rows.collect::<rusqlite::Result<_>>()?
    };
    for (session, status, committed, failed, first) in ended {
        let from = values::session_status(&status)?;
        let (status, reason) = decide::sessions::session_outcome(from, committed, failed, first.as_deref())?;
        c.prepare_cached(END)?.execute(params![session, status.as_str(), reason])?;
        if status != SessionStatus::Failed {
            targets::note_scan(c, job, session)?;
        }
        results::event(c, job, "SessionEnded", json!({ "session": session, "status": status.as_str() }))?;
    }
    Ok(())
}

/// Ends the sessions of a job that is cancelled.
fn cancel_sessions(c: &Connection, job: JobId) -> Result<()> {
    const CANCEL: &str = statement(ENUMERATION, "cancel_sessions");
    let ended: Vec<(i64, String)> = {
        let mut statement = c.prepare_cached(CANCEL)?;
        let rows = statement.query_map([job.0], |row| Ok((row.get(0)?, row.get(1)?)))?;
        rows.collect::<rusqlite::Result<_>>()?
    };
    for (session, status) in ended {
        results::event(c, job, "SessionEnded", json!({ "session": session, "status": status }))?;
    }
    Ok(())
}

pub(super) fn reap_sessions(c: &Connection, node_group: &str, threshold: Duration) -> Result<u64> {
    const STALL: &str = statement(ENUMERATION, "stall_sessions");
    Ok(c.prepare_cached(STALL)?.execute(params![node_group, millis(threshold)])? as u64)
}

// ── shared ─────────────────────────────────────────────────────────────────────────────────────────

/// What a lease holder may act on.
pub(super) struct FencedJob {
    pub owned: OwnedJob,
    pub configuration: JobConfiguration,
}

/// The orchestrator's fence: the job is as the lease says, or nothing is written.
pub(super) fn fence(c: &Connection, lease: &JobLease) -> Result<FencedJob> {
    const OWNED: &str = statement(FILE, "owned_job");
    let (owned, configuration): (Result<OwnedJob>, String) = c
        .prepare_cached(OWNED)?
        .query_row(params![lease.job.0, lease.version], |row| Ok((owned_job(row), row.get(5)?)))
        .optional()?
        .ok_or(StoreError::LostLease(lease.job))?;
    Ok(FencedJob { owned: owned?, configuration: values::configuration(&configuration)? })
}

pub(super) fn set_status(
    c: &Connection,
    lease: &JobLease,
    from: JobStatus,
    to: JobStatus,
    pending: Option<&[Command]>,
    reason: Option<&str>,
) -> Result<JobLease> {
    const SET: &str = statement(FILE, "set_job_status");
    let to = from.transition(to)?;
    let pending = pending.map(|pending| to_json(&pending)).transpose()?;
    let changed =
        c.prepare_cached(SET)?.execute(params![lease.job.0, lease.version, to.as_str(), pending, reason])?;
    if changed == 0 {
        return Err(StoreError::LostLease(lease.job));
    }
    results::event(c, lease.job, "JobStatusChanged", json!({ "from": from.as_str(), "to": to.as_str() }))?;
    Ok(JobLease { version: lease.version + 1, ..*lease })
}

/// Columns: id, version, master_job_id, status, master_pending_commands.
pub(super) fn owned_job(row: &Row<'_>) -> Result<OwnedJob> {
    let status: String = row.get(3)?;
    let pending: String = row.get(4)?;
    Ok(OwnedJob {
        lease: JobLease { job: JobId(row.get(0)?), version: row.get(1)? },
        master_job: MasterJobId(row.get(2)?),
        status: values::job_status(&status)?,
        pending: values::commands(&pending)?,
    })
}

pub(super) fn master_job(c: &Connection, id: MasterJobId) -> Result<Option<MasterJob>> {
    const GET: &str = statement(FILE, "master_job");
    let mut statement = c.prepare_cached(GET)?;
    let mut rows = statement.query([id.0])?;
    let mut children = Vec::new();
    while let Some(row) = rows.next()? {
        let status: String = row.get(3)?;
        children.push(ChildJob {
            master: id,
            description: row.get(1)?,
            created_at_ms: row.get(2)?,
            status: values::job_status(&status)?,
            failure_reason: row.get(4)?,
            finished_at_ms: row.get(5)?,
        });
    }
    Ok(decide::jobs::fold_master_jobs(children).pop())
}

pub(super) fn master_jobs(c: &Connection, max: u32) -> Result<Vec<MasterJob>> {
    const IDS: &str = statement(FILE, "master_job_ids");
    let ids: Vec<[u8; 16]> = {
        let mut statement = c.prepare_cached(IDS)?;
        let rows = statement.query_map([max], |row| row.get(0))?;
        rows.collect::<rusqlite::Result<_>>()?
    };
    ids.into_iter().filter_map(|id| master_job(c, MasterJobId(id)).transpose()).collect()
}
