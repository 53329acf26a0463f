//! Jobs, their leases and commands; sessions as a whole; completion.

use std::time::Duration;

use domesday_model::{
    Command, DatasourceId, DatasourceSpec, EnumerationSessionId, JobId, JobStatus, ProcessId, Retries,
    SessionStatus, TaskType,
};
use serde_json::json;
use tokio_postgres::Row;

use super::pool::Call;
use super::rows::{column, get, only, text};
use super::transaction::{Tx, params};
use super::{Result, queries, results, retry, targets, tasks};
use crate::decide;
use crate::decide::configuring::missing;
use crate::decide::jobs::{Executed, FencedJob};
use crate::decide::prior::scan_key;
use crate::decide::targets::Known;
use crate::decide::tasks::NewTask;
use crate::error::StoreError;
use crate::queries::statement;
use crate::rows::{FromRow, ended_session};
use crate::types::*;
use crate::values::{millis, to_json};

pub(super) async fn submit(tx: &mut Tx<'_>, job: &NewMasterJob) -> Result<()> {
    const MASTER: &str = statement(queries::JOBS, "insert_master_job");
    const DATASOURCES: &str = statement(queries::JOBS, "upsert_datasources");
    const JOBS: &str = statement(queries::JOBS, "insert_jobs");
    let id = job.id.0.to_vec();
    let template = job.template.clone();
    let master = params![id.clone(), job.request_key.to_vec(), text(&job.description), template];
    tx.wakes_before_it_returns();
    if tx.change(MASTER, master).await? == 0 {
        return Ok(());
    }
    let sources: &[DatasourceSpec] = &job.configuration.datasources;
    tx.run(
        DATASOURCES,
        params![
            column(sources, |source| source.name.clone()),
            column(sources, |source| source.kind.clone()),
            column(sources, |source| source.node_group.clone()),
            column(sources, |source| source.concurrency_limit.map(i64::from)),
            column(sources, |source| source.configuration.to_string()),
            column(sources, |source| source.worker_label.clone()),
            column(sources, |source| source.credential.clone()),
        ],
    );
    let (mut groups, mut shares) = (Vec::new(), Vec::new());
    for (group, share) in decide::jobs::child_jobs(&job.configuration) {
        groups.push(group.to_owned());
        shares.push(to_json(&share)?);
    }
    let key = job.configuration.fingerprint_key.clone();
    tx.run(JOBS, params![id, groups, shares, job.priority, key]);
    Ok(())
}

// ── leases and commands ────────────────────────────────────────────────────────────────────────────

pub(super) async fn claim_job(
    tx: &mut Tx<'_>,
    orchestrator: ProcessId,
    node_group: &str,
    lease: Duration,
) -> Result<Option<OwnedJob>> {
    const CLAIM: &str = statement(queries::JOBS, "claim_job");
    let params = params![orchestrator.0.to_vec(), node_group.to_owned(), millis(lease)];
    let rows = tx.query(CLAIM, params).await?;
    let Some(row) = rows.first() else { return Ok(None) };
    let job = OwnedJob::from_row(row)?;
    let payload = json!({ "orchestrator": orchestrator.to_string(), "status": job.status.as_str() });
    results::event(tx, job.lease.job, "JobClaimed", &payload);
    Ok(Some(job))
}

pub(super) async fn execute_commands(tx: &mut Tx<'_>, lease: &JobLease) -> Result<Option<OwnedJob>> {
    let job = fence(tx, lease).await?.owned;
    apply_commands(tx, job).await
}

pub(super) async fn execute_unowned_commands(tx: &mut Tx<'_>, node_group: &str) -> Result<u64> {
    const UNOWNED: &str = statement(queries::JOBS, "unowned_with_commands");
    let rows = tx.query(UNOWNED, params![node_group.to_owned()]).await?;
    let mut changed = 0;
    for row in rows.iter() {
        if let Some(job) = apply_commands(tx, OwnedJob::from_row(row)?).await? {
            changed += 1;
            // No owner, so no running task: what was to be waited for is already so.
            settle(tx, &job).await?;
        }
    }
    Ok(changed)
}

/// The status change and the clearing of what was executed are one write.
async fn apply_commands(tx: &mut Tx<'_>, job: OwnedJob) -> Result<Option<OwnedJob>> {
    const CANCEL: &str = statement(queries::TASKS, "cancel_tasks");
    const FAIL_UNITS: &str = statement(queries::ENUMERATION, "fail_open_units");
    const END_SESSIONS: &str = statement(queries::ENUMERATION, "cancel_sessions");
    const SET_PENDING: &str = statement(queries::JOBS, "set_pending_commands");
    let JobLease { job: id, version } = job.lease;
    let (status, pending) = match decide::jobs::execute_commands(&job) {
        Executed::Nothing => return Ok(None),
        Executed::Cleared(pending) => {
            tx.run(SET_PENDING, params![id.0, version, to_json(&pending)?]);
            return Ok(None);
        }
        Executed::Changed(status, pending) => (status, pending),
    };
    close(tx, id);
    if status == JobStatus::Cancelling {
        tx.run(CANCEL, params![id.0]);
        tx.run(FAIL_UNITS, params![id.0]);
        tx.run(END_SESSIONS, params![id.0]);
    }
    let lease = set_status(tx, &job.lease, job.status, status, Some(&pending), None).await?;
    Ok(Some(OwnedJob { lease, status, pending, ..job }))
}

pub(super) async fn settle_job(tx: &mut Tx<'_>, lease: &JobLease) -> Result<Option<JobStatus>> {
    let job = fence(tx, lease).await?.owned;
    settle(tx, &job).await
}

async fn settle(tx: &mut Tx<'_>, job: &OwnedJob) -> Result<Option<JobStatus>> {
    const RUNNING: &str = statement(queries::JOBS, "job_has_running_tasks");
    let Some(settled) = decide::jobs::settles_to(job.status) else { return Ok(None) };
    let id = job.lease.job;
    // A look first, which disturbs nobody; what counts is the look once no claim can come in between.
    if get(only(&tx.query(RUNNING, params![id.0]).await?)?, 0)? {
        return Ok(None);
    }
    close(tx, id);
    if get(only(&tx.query(RUNNING, params![id.0]).await?)?, 0)? {
        return Ok(None);
    }
    set_status(tx, &job.lease, job.status, settled, None, None).await?;
    Ok(Some(settled))
}

pub(super) async fn complete_job(
    tx: &mut Tx<'_>,
    lease: &JobLease,
    retries: Retries,
) -> Result<Option<JobStatus>> {
    const ENDED: &str = statement(queries::ENUMERATION, "ended_sessions");
    const OBSTACLES: &str = statement(queries::JOBS, "job_obstacles");
    const OUTCOME: &str = statement(queries::JOBS, "job_outcome");
    let id = lease.job.0;
    let blocked = |rows: &[Row]| get::<bool>(only(rows)?, 0);
    let obstacles_call = || Call { sql: OBSTACLES, params: params![id, TaskType::Tracing.as_str()] };
    let [fence, ended, obstacles] =
        tx.query_all([fence_call(lease), Call { sql: ENDED, params: params![id] }, obstacles_call()]).await?;
    let FencedJob { owned: job, configuration } = fenced(lease, &fence)?;
    end_sessions(tx, lease.job, &ended)?;
    if job.status != JobStatus::Running || blocked(&obstacles)? {
        return Ok(None);
    }
    // Only a job that seems to be done keeps claims and splits out while it is looked at again.
    close(tx, lease.job);
    let outcome = Call { sql: OUTCOME, params: params![id, configuration.options.strict] };
    let passing = retry::passing_call(lease.job, retries);
    let [obstacles, passing, outcome] = tx.query_all([obstacles_call(), passing, outcome]).await?;
    if blocked(&obstacles)? || retry::read_again(tx, lease.job, &passing, retries).await? {
        return Ok(None);
    }
    let row = only(&outcome)?;
    let (status, reason) = decide::jobs::job_outcome(get(row, 0)?, get(row, 1)?, get(row, 2)?);
    set_status(tx, lease, job.status, status, None, reason).await?;
    Ok(Some(status))
}

/// Queues the lock that a change of status needs.
fn close(tx: &mut Tx<'_>, job: JobId) {
    const CLOSE: &str = statement(queries::JOBS, "close_job");
    tx.run(CLOSE, params![job.0]);
}

// ── sessions ───────────────────────────────────────────────────────────────────────────────────────

/// Of all data sources of the job, or only of one.
pub(super) async fn start_sessions(tx: &mut Tx<'_>, lease: &JobLease, only: Option<&str>) -> Result<u64> {
    const SESSIONS: &str = statement(queries::ENUMERATION, "insert_sessions");
    const RESUME: &str = statement(queries::ENUMERATION, "resume_stopped_sessions");
    let job = fence(tx, lease).await?;
    if job.owned.status != JobStatus::Running {
        return Ok(0);
    }
    tx.run(RESUME, params![lease.job.0, only.map(str::to_owned)]);
    let sources: Vec<&DatasourceSpec> = job
        .configuration
        .datasources
        .iter()
        .filter(|source| only.is_none_or(|name| source.name == name))
        .collect();
    let scan_keys = sources.iter().map(|source| Ok(scan_key(&job.configuration, source)?.to_vec()));
    let scan_keys = scan_keys.collect::<Result<Vec<_>>>()?;
    let rows = tx
        .query(
            SESSIONS,
            params![
                lease.job.0,
                column(&sources, |source| source.name.clone()),
                column(&sources, |source| source.kind.clone()),
                column(&sources, |source| source.configuration.to_string()),
                scan_keys,
                job.configuration.incremental,
            ],
        )
        .await?;
    let mut sessions = rows
        .iter()
        .map(|row| {
            let known = Known::datasource(get(row, 1)?, get(row, 2)?, get(row, 3)?);
            Ok((EnumerationSessionId(get(row, 0)?), known))
        })
        .collect::<Result<Vec<_>>>()?;
    sessions.sort_unstable_by_key(|(session, _)| *session);
    let root =
        |(session, known): &(_, Known)| NewTask::root(lease.job, DatasourceId(known.target_id), *session);
    let roots = column(&sessions, root);
    tasks::insert(tx, &roots)?;
    targets::put(tx, lease.job, &sessions);
    Ok(roots.len() as u64)
}

pub(super) async fn open_session(
    tx: &mut Tx<'_>,
    lease: &JobLease,
    datasource: &str,
) -> Result<EnumerationSessionId> {
    const SESSION: &str = statement(queries::ENUMERATION, "session_of_datasource");
    start_sessions(tx, lease, Some(datasource)).await?;
    let rows = tx.query(SESSION, params![lease.job.0, datasource.to_owned()]).await?;
    match rows.first() {
        Some(row) => Ok(EnumerationSessionId(get(row, 0)?)),
        None => Err(missing("session of data source", datasource)),
    }
}

/// Ends the sessions of which nothing is left to enumerate.
fn end_sessions(tx: &mut Tx<'_>, job: JobId, ended: &[Row]) -> Result<()> {
    const END: &str = statement(queries::ENUMERATION, "end_session");
    for row in ended {
        let (session, status, reason) = ended_session(row)?;
        tx.run(END, params![session, status.as_str(), reason]);
        if status != SessionStatus::Failed {
            targets::note_scan(tx, job, session);
        }
        let payload = json!({ "session": session, "status": status.as_str() });
        results::event(tx, job, "SessionEnded", &payload);
    }
    Ok(())
}

// ── shared ─────────────────────────────────────────────────────────────────────────────────────────

/// The orchestrator's fence, to be sent together with what only reads.
pub(super) fn fence_call(lease: &JobLease) -> Call {
    const OWNED: &str = statement(queries::JOBS, "owned_job");
    Call { sql: OWNED, params: params![lease.job.0, lease.version] }
}

/// What the fence answered: the job is as the lease says, or nothing is written.
pub(super) fn fenced(lease: &JobLease, rows: &[Row]) -> Result<FencedJob> {
    let row = rows.first().ok_or(StoreError::LostLease(lease.job))?;
    FencedJob::from_row(row)
}

async fn fence(tx: &mut Tx<'_>, lease: &JobLease) -> Result<FencedJob> {
    let [rows] = tx.query_all([fence_call(lease)]).await?;
    fenced(lease, &rows)
}

pub(super) async fn set_status(
    tx: &mut Tx<'_>,
    lease: &JobLease,
    from: JobStatus,
    to: JobStatus,
    pending: Option<&[Command]>,
    reason: Option<String>,
) -> Result<JobLease> {
    const SET: &str = statement(queries::JOBS, "set_job_status");
    let to = from.transition(to)?;
    let pending = pending.map(|pending| to_json(&pending)).transpose()?;
    let params = params![lease.job.0, lease.version, to.as_str(), pending, reason];
    if tx.change(SET, params).await? == 0 {
        return Err(StoreError::LostLease(lease.job));
    }
    let payload = json!({ "from": from.as_str(), "to": to.as_str() });
    results::event(tx, lease.job, "JobStatusChanged", &payload);
    Ok(JobLease { version: lease.version + 1, ..*lease })
}
